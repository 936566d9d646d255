package rnic

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// fakeHost is a host on which rxe0 is an rxe link on eth0 and mlx5_0 hardware
// on ens1, and whose module rdma_rxe is loaded.
func fakeHost(t *testing.T) (Host, *fakeNetlink) {
	f := &fakeNetlink{
		devices: [][]byte{deviceMessage(1, "rxe0", "roce", 1), deviceMessage(2, "mlx5_0", "roce", 1)},
		ports: map[uint32][][]byte{
			1: {portMessage(1, 1, 4, 5, "eth0", 2)},
			2: {portMessage(2, 1, 4, 5, "ens1", 3)},
		},
		uverbs: map[uint32][]byte{1: uverbsMessage(14), 2: uverbsMessage(1)},
		err:    map[int]error{},
	}
	h := withNetlink(treeOf(t, "module/rdma_rxe /"), f)
	h.fake.netAdmin = func() bool { return true }
	h.fake.add = func(name, typ, netdev string) error {
		t.Errorf("add(%q, %q, %q) is not expected", name, typ, netdev)
		return nil
	}
	h.fake.del = func(name string) error {
		t.Errorf("del(%q) is not expected", name)
		return nil
	}
	return h, f
}

func TestAddLink(t *testing.T) {
	rxe := func(name, netdev string) Link { return Link{name, "rxe", netdev} }
	tests := []struct {
		name   string
		link   Link
		kernel error // of the request, where one is made
		noRoot bool
		want   error // nil: success
		says   []string
	}{
		{name: "new", link: rxe("rxe1", "eth1")},
		{name: "there already", link: rxe("rxe0", "eth0"), kernel: errNotAsked},
		{name: "there on another netdev", link: rxe("rxe0", "eth1"), kernel: errNotAsked, want: fs.ErrExist,
			says: []string{"type rxe on eth0", "rnic del rxe0"}},
		{name: "there with another type", link: Link{"rxe0", "siw", "eth0"}, kernel: errNotAsked, want: fs.ErrExist,
			says: []string{"type rxe on eth0"}},
		{name: "hardware of that name", link: rxe("mlx5_0", "ens1"), kernel: errNotAsked, want: fs.ErrExist,
			says: []string{"type mlx5 on ens1"}},
		{name: "netdev taken", link: rxe("rxe1", "eth0"), kernel: unix.EEXIST, want: fs.ErrExist,
			says: []string{"eth0 already carries rxe0"}},
		{name: "name in another namespace", link: rxe("rxe1", "eth1"), kernel: unix.ENFILE, want: fs.ErrExist,
			says: []string{"another network namespace"}},
		{name: "no netdev", link: rxe("rxe1", "eth9"), kernel: unix.ENODEV, want: unix.ENODEV, says: []string{"no netdev eth9", "ip link"}},
		{name: "not root", link: rxe("rxe1", "eth1"), kernel: unix.EPERM, noRoot: true, want: fs.ErrPermission,
			says: []string{"root", "sudo"}},
		{name: "VLAN", link: rxe("rxe1", "eth1.7"), kernel: unix.EPERM, want: fs.ErrPermission, says: []string{"VLAN"}},
		{name: "no siw module", link: Link{"siw0", "siw", "eth1"}, kernel: unix.EINVAL, want: ErrNoModule,
			says: []string{"siw.ko", "Debian does not build it", "modprobe siw"}},
		{name: "no ib_core", link: rxe("rxe1", "eth1"), kernel: unix.EPROTONOSUPPORT, want: ErrNoModule,
			says: []string{"modprobe rdma_rxe", "linux-image-amd64"}},
		{name: "not Ethernet", link: rxe("rxe1", "tun0"), kernel: unix.EINVAL, want: unix.EINVAL, says: []string{"tun0", "Ethernet"}},
		{name: "no crc32", link: rxe("rxe1", "eth1"), kernel: unix.ENOENT, want: unix.ENOENT, says: []string{"modprobe crc32_generic"}},
		{name: "out of memory", link: rxe("rxe1", "eth1"), kernel: unix.ENOMEM, want: unix.ENOMEM, says: []string{"dmesg"}},
		{name: "unknown type", link: Link{"x0", "mlx5", "eth1"}, kernel: errNotAsked, want: unix.EINVAL, says: []string{"rxe", "siw"}},
		{name: "no name", link: rxe("", "eth1"), kernel: errNotAsked, want: unix.EINVAL, says: []string{"empty"}},
		{name: "percent", link: rxe("rxe%d", "eth1"), kernel: errNotAsked, want: unix.EINVAL, says: []string{"%"}},
		{name: "control character", link: rxe("rxe\n0", "eth1"), kernel: errNotAsked, want: unix.EINVAL},
		{name: "path", link: rxe("..", "eth1"), kernel: errNotAsked, want: unix.EINVAL},
		{name: "long name", link: rxe(strings.Repeat("x", 64), "eth1"), kernel: errNotAsked, want: unix.EINVAL, says: []string{"63"}},
		{name: "long netdev", link: rxe("rxe1", "a-much-too-long-netdev"), kernel: errNotAsked, want: unix.EINVAL, says: []string{"15"}},
		{name: "no netdev name", link: rxe("rxe1", ""), kernel: errNotAsked, want: unix.EINVAL},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := fakeHost(t)
			h.fake.netAdmin = func() bool { return !tt.noRoot }
			asked := 0
			if tt.kernel != errNotAsked {
				h.fake.add = func(name, typ, netdev string) error {
					asked++
					if got := (Link{name, typ, netdev}); got != tt.link {
						t.Errorf("the kernel is asked for %v, want %v", got, tt.link)
					}
					return tt.kernel
				}
			}
			err := h.AddLink(t.Context(), tt.link)
			checkOpError(t, err, "add", tt.link.Name, tt.want, tt.says)
			if want := tt.kernel != errNotAsked; (asked == 1) != want {
				t.Errorf("the kernel was asked %d times", asked)
			}
		})
	}
}

var errNotAsked = errors.New("the kernel is not asked")

func checkOpError(t *testing.T, err error, op, object string, want error, says []string) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Errorf("%v, want success", err)
		}
		return
	}
	var oe *OpError
	if !errors.As(err, &oe) || oe.Op != op || oe.Object != object || oe.Err == nil {
		t.Fatalf("%#v, want an *OpError of %s %s", err, op, object)
	}
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

// Two processes that add the same link both succeed.
func TestAddLinkRace(t *testing.T) {
	for _, errno := range []error{unix.EEXIST, unix.ENFILE} {
		h, f := fakeHost(t)
		h.fake.add = func(name, _, netdev string) error {
			f.devices = append(f.devices, deviceMessage(3, name, "roce", 1))
			f.ports[3] = [][]byte{portMessage(3, 1, 4, 5, netdev, 4)}
			f.uverbs[3] = uverbsMessage(14)
			return errno
		}
		if err := h.AddLink(t.Context(), Link{"rxe1", "rxe", "eth1"}); err != nil {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

func TestAddLinkCanceled(t *testing.T) {
	h, _ := fakeHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checkOpError(t, h.AddLink(ctx, Link{"rxe1", "rxe", "eth1"}), "add", "rxe1", context.Canceled, nil)
	checkOpError(t, h.DelLink(ctx, "rxe0"), "del", "rxe0", context.Canceled, nil)
}

func TestAddLinkCannotLook(t *testing.T) {
	h, f := fakeHost(t)
	f.err[nldevCmdPortGet] = unix.EACCES
	checkOpError(t, h.AddLink(t.Context(), Link{"rxe0", "rxe", "eth0"}), "add", "rxe0", unix.EACCES, []string{"cannot be examined"})
	f.err[nl.RDMA_NLDEV_CMD_GET] = unix.EIO
	checkOpError(t, h.AddLink(t.Context(), Link{"rxe0", "rxe", "eth0"}), "add", "rxe0", unix.EIO, []string{"cannot see"})
	checkOpError(t, h.DelLink(t.Context(), "rxe0"), "del", "rxe0", unix.EIO, []string{"cannot see"})
}

func TestDelLink(t *testing.T) {
	tests := []struct {
		name   string
		link   string
		kernel error
		vanish bool // somebody else deletes it first
		noRoot bool
		want   error
		says   []string
	}{
		{name: "there", link: "rxe0"},
		{name: "not there", link: "rxe9", kernel: errNotAsked},
		{name: "somebody else was faster", link: "rxe0", kernel: unix.ENODEV, vanish: true},
		{name: "hardware", link: "mlx5_0", kernel: unix.EINVAL, want: unix.EINVAL, says: []string{"hardware"}},
		{name: "not root", link: "rxe0", kernel: unix.EPERM, noRoot: true, want: fs.ErrPermission, says: []string{"root", "sudo"}},
		{name: "other", link: "rxe0", kernel: unix.EIO, want: unix.EIO, says: []string{"dmesg"}},
		{name: "path", link: "../rxe0", kernel: errNotAsked, want: unix.EINVAL},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, f := fakeHost(t)
			h.fake.netAdmin = func() bool { return !tt.noRoot }
			if tt.kernel != errNotAsked {
				h.fake.del = func(name string) error {
					if tt.vanish {
						f.devices = nil
					}
					return tt.kernel
				}
			}
			checkOpError(t, h.DelLink(t.Context(), tt.link), "del", tt.link, tt.want, tt.says)
		})
	}
}
