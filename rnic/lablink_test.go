package rnic_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/rnic"
)

func TestLabAddDel(t *testing.T) {
	for _, typ := range labLinkTypes(t) {
		t.Run(typ, func(t *testing.T) {
			dev := dummyNetdev(t, 1500, "198.51.100.1/24", "fd77:99::1/64")
			name := addLink(t, typ, dev)
			l := rnic.Link{Name: name, Type: typ, Netdev: dev}
			for range 3 {
				if err := rnic.AddLink(t.Context(), l); err != nil {
					t.Errorf("added again: %v", err)
				}
			}
			ready(t, name)
			r, err := rnic.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			if r.Driver != typ || len(r.Ports) != 1 || r.Ports[0].Netdev != dev || r.Ports[0].State != rnic.PortStateActive {
				t.Errorf("got %+v", r)
			}
			checkConflicts(t, l)
			for range 3 {
				if err := rnic.DelLink(t.Context(), name); err != nil {
					t.Errorf("deleted: %v", err)
				}
			}
			if _, err := rnic.Find(name); !errors.Is(err, rnic.ErrNotFound) {
				t.Errorf("after DelLink: %v, want ErrNotFound", err)
			}
		})
	}
}

// checkConflicts asks for links that l stands in the way of.
func checkConflicts(t *testing.T, l rnic.Link) {
	t.Helper()
	other := dummyNetdev(t, 1500)
	otherType := map[string]string{"rxe": "siw", "siw": "rxe"}[l.Type]
	conflicts := map[string]struct {
		link rnic.Link
		says string
	}{
		"name on another netdev":    {rnic.Link{Name: l.Name, Type: l.Type, Netdev: other}, "type " + l.Type + " on " + l.Netdev},
		"name with another type":    {rnic.Link{Name: l.Name, Type: otherType, Netdev: l.Netdev}, "type " + l.Type + " on " + l.Netdev},
		"second link on the netdev": {rnic.Link{Name: unique("second"), Type: l.Type, Netdev: l.Netdev}, "already carries " + l.Name},
	}
	for what, c := range conflicts {
		err := rnic.AddLink(t.Context(), c.link)
		if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want fs.ErrExist that says %q", what, err, c.says)
		}
	}
}

// rxe and siw may share a netdev.
func TestLabShareNetdev(t *testing.T) {
	dev := ""
	for _, typ := range labLinkTypes(t) {
		if dev == "" {
			dev = dummyNetdev(t, 1500, "198.51.100.2/24")
		}
		name := addLink(t, typ, dev)
		ready(t, name)
	}
}

func TestLabRefusals(t *testing.T) {
	for _, typ := range labLinkTypes(t) {
		t.Run(typ, func(t *testing.T) {
			err := rnic.AddLink(t.Context(), rnic.Link{Name: unique(typ), Type: typ, Netdev: "nosuchdev"})
			if !errors.Is(err, unix.ENODEV) || !strings.Contains(err.Error(), "nosuchdev") {
				t.Errorf("no such netdev: %v", err)
			}
			dev, there := dummyNetdev(t, 1500), labRNICs(t)[0].Name
			for op, err := range withoutCaps(func() (add, del error) {
				return rnic.AddLink(t.Context(), rnic.Link{Name: unique(typ), Type: typ, Netdev: dev}),
					rnic.DelLink(t.Context(), there)
			}) {
				if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "root") {
					t.Errorf("%s without CAP_NET_ADMIN: %v, want fs.ErrPermission that says root", op, err)
				}
			}
		})
	}
}

// withoutCaps runs add and del on a thread that has lost its capabilities and
// ends with them.
func withoutCaps(do func() (add, del error)) map[string]error {
	done := make(chan map[string]error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends here
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&hdr, &none[0]); err != nil {
			done <- map[string]error{"capset": err}
			return
		}
		add, del := do()
		done <- map[string]error{"add": add, "del": del}
	}()
	return <-done
}

// rxe refuses VLANs with an EPERM that is not about being root.
func TestLabVLAN(t *testing.T) {
	if !slices.Contains(labLinkTypes(t), "rxe") {
		return // the other driver takes VLANs
	}
	parent := dummyNetdev(t, 1500)
	name := unique("vlan")
	addNetdev(t, &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: name, ParentIndex: netdev(t, parent).Attrs().Index}, VlanId: 7})
	link := unique("rxe")
	err := rnic.AddLink(t.Context(), rnic.Link{Name: link, Type: "rxe", Netdev: name})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "VLAN") {
		t.Errorf("rxe on a VLAN: %v, want fs.ErrPermission that says VLAN", err)
		rnic.DelLink(t.Context(), link)
	}
}

// The link goes when its netdev goes; deleting it then is no error.
func TestLabNetdevDeleted(t *testing.T) {
	for _, typ := range labLinkTypes(t) {
		dev := unique("rnictest")
		l := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: dev}}
		if err := netlink.LinkAdd(l); err != nil {
			t.Fatal(err)
		}
		name := addLink(t, typ, dev)
		if err := netlink.LinkDel(l); err != nil {
			t.Fatal(err)
		}
		if err := rnic.DelLink(t.Context(), name); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// The rule that active_mtu is derived by is the drivers'.
func TestLabActiveMTU(t *testing.T) {
	for _, typ := range labLinkTypes(t) {
		t.Run(typ, func(t *testing.T) {
			dev := dummyNetdev(t, 1500, "198.51.100.3/24")
			name := addLink(t, typ, dev)
			for _, mtu := range []int{1500, 600, 1103, 4096, 4176, 4175, 9000} {
				if err := netlink.LinkSetMTU(netdev(t, dev), mtu); err != nil {
					t.Fatal(err)
				}
				ready(t, name)
				r, err := rnic.Find(name)
				if err != nil {
					t.Fatal(err)
				}
				p := r.Ports[0]
				if want := readDevinfo(t, name).Ports[1].ActiveMTU; p.ActiveMTU != want || p.NetdevMTU != mtu {
					t.Errorf("netdev MTU %d: active MTU %d, netdev MTU %d; ibv_devinfo says %d", mtu, p.ActiveMTU, p.NetdevMTU, want)
				}
			}
		})
	}
}

// What WaitUsable expects is what the kernel makes: each address gets its GID,
// and it does not wait for one that never comes. TestMissing has the logic; the
// kernel's delay is too short to be caught reliably here.
func TestLabWaitForGIDs(t *testing.T) {
	const addrs = 20
	for _, typ := range labLinkTypes(t) {
		t.Run(typ, func(t *testing.T) {
			dev := dummyNetdev(t, 1500)
			l := netdev(t, dev)
			name := addLink(t, typ, dev)
			var want []rnic.GID
			for i := range addrs {
				a := netip.AddrFrom4([4]byte{198, 51, 100, byte(i + 1)})
				want = append(want, rnic.GIDFromAddr(a))
				if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(24, 32)}}); err != nil {
					t.Fatal(err)
				}
			}
			addAddr(t, dev, "fd77:98::1/64")
			want = append(want, rnic.GIDFromAddr(netip.MustParseAddr("fd77:98::1")))
			ready(t, name)
			r, err := rnic.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			if r.Protocol == rnic.ProtocolRoCE {
				checkGIDs(t, r.Ports[0], want)
			} else if len(r.Ports[0].GIDs) != 1 {
				t.Errorf("GIDs %+v, want one, the MAC", r.Ports[0].GIDs)
			}
		})
	}
}

func checkGIDs(t *testing.T, p rnic.Port, want []rnic.GID) {
	t.Helper()
	for _, gid := range want {
		if !slices.ContainsFunc(p.GIDs, func(g rnic.GIDEntry) bool {
			return g.GID == gid && g.Type == rnic.GIDTypeRoCEv2 && g.Netdev == p.Netdev
		}) {
			t.Errorf("usable without a GID for %v", gid.Addr())
		}
	}
}

// A netdev that is down: the error says so; and WaitUsable sees it come up.
func TestLabWaitForLink(t *testing.T) {
	for _, typ := range labLinkTypes(t) {
		t.Run(typ, func(t *testing.T) {
			dev := dummyNetdev(t, 1500, "198.51.100.21/24")
			setUp(t, dev, false)
			name := addLink(t, typ, dev)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err := rnic.WaitUsable(ctx, name)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not ACTIVE (is netdev "+dev+" up") {
				t.Errorf("netdev down: %v", err)
			}
			done := make(chan error)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				done <- rnic.WaitUsable(ctx, name)
			}()
			setUp(t, dev, true)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLabMonitor(t *testing.T) {
	labLinkTypes(t)
	events, sources, closeAll := rnic.MonitorEvents()
	defer closeAll()
	if sources == 0 {
		t.Fatal("no source of events")
	}
	dummyNetdev(t, 1500)
	select {
	case <-events:
	case <-time.After(30 * time.Second):
		t.Error("a new netdev makes no event")
	}
}

// In a network namespace without RDMA devices the list is empty, although the
// sysfs that is mounted shows those of another.
func TestLabOtherNamespace(t *testing.T) {
	labLinkTypes(t)
	if len(labRNICs(t)) == 0 {
		t.Fatal("no RNIC")
	}
	if err := netlink.RdmaSystemSetNetnsMode("exclusive"); err != nil {
		t.Fatal(err)
	}
	defer shareNamespaces(t)
	type result struct {
		rnics []rnic.RNIC
		err   error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread, and its namespace, end here
		if unix.Gettid() == unix.Getpid() {
			// But the main thread never ends: it would keep the namespace.
			t.Error("on the main thread, which mainthread_test.go should keep away")
		}
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- result{err: err}
			return
		}
		rnics, err := rnic.List()
		done <- result{rnics, err}
	}()
	if r := <-done; r.err != nil || len(r.rnics) != 0 {
		t.Errorf("%+v, %v, want an empty list", r.rnics, r.err)
	}
}

// shareNamespaces puts the default mode back, once the kernel has let go of
// the namespace of the test.
func shareNamespaces(t *testing.T) {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := netlink.RdmaSystemSetNetnsMode("shared")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("back to shared mode: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
