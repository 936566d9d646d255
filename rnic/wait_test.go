package rnic

import (
	"context"
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

func addr(t *testing.T, cidr string, flags int) netlink.Addr {
	ip, n, err := net.ParseCIDR(cidr)
	if err != nil {
		t.Fatal(err)
	}
	return netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: n.Mask}, Flags: flags}
}

const (
	rxePort = `class/infiniband/rxe0/ports/1/link_layer = Ethernet
class/infiniband/rxe0/ports/1/gids/[0-3] = 0000:0000:0000:0000:0000:0000:0000:0000
class/infiniband/rxe0/ports/1/gid_attrs/types/[0-3] = RoCE v2
class/net/eth0/mtu = 1500
`
	rxeGIDs = rxePort + `class/infiniband/rxe0/ports/1/gids/0 = fe80:0000:0000:0000:5054:00ff:fe12:3456
class/infiniband/rxe0/ports/1/gids/1 = 0000:0000:0000:0000:0000:ffff:c000:0201
`
	rxeFull = rxePort + "class/infiniband/rxe0/ports/1/gids/[0-3] = fe80:0000:0000:0000:5054:00ff:fe12:3456\n"
)

func TestMissing(t *testing.T) {
	v4, v6 := addr(t, "192.0.2.1/24", 0), addr(t, "fd77::1/64", 0)
	ptp := addr(t, "203.0.113.1/32", 0)
	ptp.Peer = &net.IPNet{IP: net.ParseIP("203.0.113.2"), Mask: net.CIDRMask(32, 32)}
	tests := []struct {
		name  string
		tree  string
		state uint8
		addrs []netlink.Addr
		want  string // of the error; empty: usable
	}{
		{name: "usable", tree: rxeGIDs, state: 4, addrs: []netlink.Addr{v4}},
		{name: "no address", tree: rxeGIDs, state: 4},
		{name: "down", tree: rxeGIDs, state: 1, addrs: []netlink.Addr{v4},
			want: "port 1: state is DOWN, not ACTIVE (is netdev eth0 up, with a carrier?)"},
		{name: "no GID", tree: rxePort, state: 4, want: "port 1: no GID in the table"},
		{name: "no GID and down", tree: rxePort, state: 2,
			want: "port 1: state is INIT, not ACTIVE (is netdev eth0 up, with a carrier?); port 1: no GID in the table"},
		{name: "an address without GID", tree: rxeGIDs, state: 4, addrs: []netlink.Addr{v4, v6}, want: "port 1: the GID of address fd77::1"},
		{name: "tentative", tree: rxeGIDs, state: 4,
			addrs: []netlink.Addr{addr(t, "fe80::5054:ff:fe12:3456/64", unix.IFA_F_TENTATIVE)},
			want:  "port 1: address fe80::5054:ff:fe12:3456 is tentative (duplicate address detection)"},
		{name: "optimistic", tree: rxeGIDs, state: 4,
			addrs: []netlink.Addr{addr(t, "fe80::5054:ff:fe12:3456/64", unix.IFA_F_TENTATIVE|unix.IFA_F_OPTIMISTIC)}},
		{name: "duplicate elsewhere", tree: rxeGIDs, state: 4, addrs: []netlink.Addr{addr(t, "fd77::2/64", unix.IFA_F_DADFAILED)}},
		{name: "point to point", tree: rxeGIDs, state: 4, addrs: []netlink.Addr{ptp}},
		{name: "table full", tree: rxeFull, state: 4, addrs: []netlink.Addr{v4}},
		{name: "not in sysfs", tree: "class /", state: 4, want: "port 1: no GID in the table; " +
			"unreadable: class/infiniband/rxe0/ports/1/link_layer: no such file or directory; " +
			"unreadable: class/net/eth0/mtu: no such file or directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, f := fakeHost(t)
			h.Sysfs = treeOf(t, tt.tree).Sysfs
			f.ports[1] = [][]byte{portMessage(1, 1, tt.state, 5, "eth0", 2)}
			h.fake.addrs = func(ifindex int) ([]netlink.Addr, error) {
				if ifindex != 2 {
					t.Errorf("addresses of netdev %d are asked for, want 2", ifindex)
				}
				return tt.addrs, nil
			}
			checkMissing(t, h, "rxe0", tt.want)
		})
	}
}

// checkMissing lets WaitUsable look once.
func checkMissing(t *testing.T, h Host, name, want string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := h.WaitUsable(ctx, name)
	if want == "" {
		if err != nil {
			t.Errorf("%v, want it usable", err)
		}
		return
	}
	checkOpError(t, err, "wait", name, context.Canceled, nil)
	if got := trimRoot(h, err.Error()); got != "rnic: wait "+name+": context canceled: still missing: "+want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMissingDevice(t *testing.T) {
	h, f := fakeHost(t)
	checkMissing(t, h, "rxe9", "the RNIC itself (`rnic add` makes rxe and siw links)")
	f.ports[1] = nil
	checkMissing(t, h, "rxe0", "a port")
	f.err[nl.RDMA_NLDEV_CMD_GET] = unix.EPERM
	checkMissing(t, h, "rxe0", "knowledge of the RNIC: operation not permitted")
	checkOpError(t, h.WaitUsable(t.Context(), "../x"), "wait", "../x", unix.EINVAL, nil)
}

// One usable port is enough: the other may have no cable.
func TestMissingPorts(t *testing.T) {
	h, f := fakeHost(t)
	h.Sysfs = treeOf(t, `class/infiniband/mlx5_0/ports/1/gids/0 = fe80:0000:0000:0000:0000:0000:0000:0001
class/infiniband/mlx5_0/ports/2/gids/0 = fe80:0000:0000:0000:0000:0000:0000:0002`).Sysfs
	f.ports[2] = [][]byte{portMessage(2, 1, 1, 3, "", 0), portMessage(2, 2, 4, 5, "", 0)}
	checkMissing(t, h, "mlx5_0", "")
}

// WaitUsable sees each step of a link's way up, with no event to wake it.
func TestWaitUsableSteps(t *testing.T) {
	h, f := fakeHost(t)
	sysfs := treeOf(t, rxeGIDs)
	steps := []func(){
		func() { f.devices = nil },
		func() { f.devices = [][]byte{deviceMessage(1, "rxe0", "roce", 1)} },
		func() { f.ports[1] = [][]byte{portMessage(1, 1, 1, 3, "eth0", 2)} },
		func() { f.ports[1] = [][]byte{portMessage(1, 1, 4, 5, "eth0", 2)} },
		func() { h.fake.addrs = func(int) ([]netlink.Addr, error) { return nil, nil } },
	}
	h.Sysfs = sysfs.Sysfs
	h.fake.addrs = func(int) ([]netlink.Addr, error) { return []netlink.Addr{addr(t, "192.0.2.9/24", 0)}, nil }
	h.fake.query = func(cmd, flags int, req ...*nl.RtAttr) ([][]byte, error) {
		if cmd == nl.RDMA_NLDEV_CMD_GET && len(steps) > 0 {
			steps[0]()
			steps = steps[1:]
		}
		return f.query(cmd, flags, req...)
	}
	if err := h.WaitUsable(t.Context(), "rxe0"); err != nil {
		t.Fatal(err)
	}
	if len(steps) > 0 {
		t.Errorf("usable with %d steps to go", len(steps))
	}
}
