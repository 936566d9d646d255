package ibverbs_test

import (
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// ip runs ip(8).
func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// awaitGIDs reads the GID table, which follows the netdevs a moment later,
// until it is as it must become.
func awaitGIDs(t *testing.T, dev *ibverbs.Device, ready func([]ibverbs.GIDEntry) bool) []ibverbs.GIDEntry {
	t.Helper()
	for ctx := verbstest.Context(t); ; time.Sleep(5 * time.Millisecond) {
		table := verbstest.Must[[]ibverbs.GIDEntry](t)(dev.GIDTable())
		if ready(table) {
			return table
		}
		if ctx.Err() != nil {
			t.Fatalf("the GID table stays %v", table)
		}
	}
}

// addVLAN puts a VLAN with an IPv4 address and the link-local one of its netdev
// on a target's port until the test ends, and gives its interface index.
func addVLAN(t *testing.T, target *verbstest.Target, name, addr string) int {
	t.Helper()
	ip(t, "link", "add", "link", target.Netdev, "name", name, "type", "vlan", "id", "5")
	ip(t, "address", "add", addr+"/24", "dev", name)
	ip(t, "link", "set", name, "up")
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	on := func(e ibverbs.GIDEntry) bool { return e.NetdevIndex == ifi.Index }
	t.Cleanup(func() {
		ip(t, "link", "del", name)
		awaitGIDs(t, target.Dev, func(table []ibverbs.GIDEntry) bool { return !slices.ContainsFunc(table, on) })
	})
	return ifi.Index
}

// A port with a VLAN has the same link-local GID twice: only the netdev tells
// one from the other, and a message goes out with the tag of the one that was
// chosen.
func TestGIDNetdev(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const name, own, peer, mac = "gvlan5", "10.55.5.1", "10.55.5.2", "02:00:5e:55:05:02"
		base, err := net.InterfaceByName(target.Netdev)
		if err != nil {
			t.Fatal(err)
		}
		vlan := addVLAN(t, target, name, own)
		local := linkLocal(t, target)
		find := func(table []ibverbs.GIDEntry, addr netip.Addr, netdev int) (ibverbs.GIDEntry, error) {
			return ibverbs.ChooseGID(table, target.Port, ibverbs.GIDTypeRoCEv2, addr, netdev)
		}
		table := awaitGIDs(t, target.Dev, func(table []ibverbs.GIDEntry) bool {
			_, err4 := find(table, netip.MustParseAddr(own), vlan)
			_, err6 := find(table, local, vlan)
			return err4 == nil && err6 == nil
		})
		_, err = find(table, local, 0)
		refused(t, "a GID of two netdevs", err, syscall.ENOTUNIQ, "say which")
		for zone, want := range map[string]int{name: vlan, target.Netdev: base.Index} {
			for what, got := range map[string]ibverbs.GIDEntry{
				"by zone":   verbstest.Must[ibverbs.GIDEntry](t)(find(table, local.WithZone(zone), 0)),
				"by netdev": verbstest.Must[ibverbs.GIDEntry](t)(find(table, local, want)),
			} {
				if got.NetdevIndex != want || got.GID != ibverbs.GIDFromAddr(local) {
					t.Errorf("%s %s: %v, want netdev %d", what, zone, got, want)
				}
			}
		}
		_, err = find(table, netip.MustParseAddr(own), base.Index)
		refused(t, "the VLAN's address on its base", err, syscall.EADDRNOTAVAIL, own)

		ip(t, "neigh", "replace", peer, "lladdr", mac, "nud", "permanent", "dev", name)
		entry := verbstest.Must[ibverbs.GIDEntry](t)(find(table, netip.MustParseAddr(own), 0))
		attr := ibverbs.AHAttr{
			DGID: verbstest.Must[ibverbs.GID](t)(ibverbs.ParseGID(peer)), SGIDIndex: uint8(entry.Index), IsGlobal: true, Port: uint8(target.Port),
		}
		got, tag, err := target.Dev.ResolveEthL2FromGID(attr)
		if err != nil || got.String() != mac || tag != 5 {
			t.Errorf("%v, VLAN %d, %v; want %s in VLAN 5", got, tag, err, mac)
		}
		overVLAN(t, target, entry)
	}, verbstest.Datagrams)
}

// linkLocal is the address that a target's netdev and all on top of it share.
func linkLocal(t *testing.T, target *verbstest.Target) netip.Addr {
	t.Helper()
	for _, e := range verbstest.Must[[]ibverbs.GIDEntry](t)(target.Dev.GIDTable()) {
		if addr := e.GID.Addr(); addr.IsLinkLocalUnicast() && !addr.Is4() {
			return addr
		}
	}
	t.Fatalf("%s has no link-local GID", target.Dev.Name())
	return netip.Addr{}
}

// overVLAN sends a message from a VLAN's GID to itself, and back to its sender.
func overVLAN(t *testing.T, target *verbstest.Target, own ibverbs.GIDEntry) {
	t.Helper()
	a, b := verbstest.UD(t, target, verbstest.PairCap), verbstest.UD(t, target, verbstest.PairCap)
	mr := verbstest.MR(t, b.PD, 2048)
	attr := verbstest.AHAttr(t, target, own.GID.Addr())
	answer(t, a, b, mr, verbstest.AH(t, a.PD, attr), "over the VLAN")
	grh := verbstest.Must[ibverbs.GRH](t)(ibverbs.ParseGRH(mr.Bytes()[1024:]))
	back := verbstest.Must[ibverbs.AHAttr](t)(grh.ReversePath(verbstest.Must[[]ibverbs.GIDEntry](t)(target.Dev.GIDTable()), target.Port, nil))
	if int(back.SGIDIndex) != own.Index {
		t.Errorf("the answer goes out from GID %d, want %v", back.SGIDIndex, own)
	}
	answer(t, b, a, verbstest.MR(t, a.PD, 2048), verbstest.AH(t, b.PD, back), "and back")
}
