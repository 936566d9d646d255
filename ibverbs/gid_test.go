package ibverbs

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
)

func TestGID(t *testing.T) {
	v4 := netip.MustParseAddr("192.0.2.1")
	g := GIDFromAddr(v4)
	if got, want := g.String(), "0000:0000:0000:0000:0000:ffff:c000:0201"; got != want {
		t.Errorf("GID %s, want %s", got, want)
	}
	if g.Addr() != v4 {
		t.Errorf("address %v, want %v", g.Addr(), v4)
	}
	if g.IsZero() || !(GID{}).IsZero() {
		t.Error("IsZero is wrong")
	}
}

func TestChooseGID(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.1")
	v6 := netip.MustParseAddr("fe80::1%eth0")
	table := []GIDEntry{
		{GID: GIDFromAddr(v6), Port: 1, Index: 0, Type: GIDTypeRoCEv1},
		{GID: GIDFromAddr(v6), Port: 1, Index: 1, Type: GIDTypeRoCEv2},
		{GID: GIDFromAddr(addr), Port: 2, Index: 0, Type: GIDTypeRoCEv2},
		{GID: GIDFromAddr(addr), Port: 1, Index: 2, Type: GIDTypeRoCEv1},
		{GID: GIDFromAddr(addr), Port: 1, Index: 5, Type: GIDTypeRoCEv2},
	}
	for _, tc := range []struct {
		addr netip.Addr
		typ  GIDType
		port int
		want int
	}{
		{addr, GIDTypeRoCEv2, 1, 5},
		{addr, GIDTypeRoCEv1, 1, 2},
		{addr, GIDTypeRoCEv2, 2, 0},
		{v6, GIDTypeRoCEv2, 1, 1},
		{netip.AddrFrom16(addr.As16()), GIDTypeRoCEv2, 1, 5},
	} {
		if e, err := ChooseGID(table, tc.port, tc.typ, tc.addr); err != nil || e.Index != tc.want || e.Port != tc.port {
			t.Errorf("%v %v port %d: index %d, %v; want %d", tc.addr, tc.typ, tc.port, e.Index, err, tc.want)
		}
	}
	_, err := ChooseGID(table, 2, GIDTypeRoCEv1, addr)
	if !errors.Is(err, syscall.EADDRNOTAVAIL) || !strings.Contains(err.Error(), "192.0.2.1 (RoCE v2)") {
		t.Errorf("no such GID: %v, want EADDRNOTAVAIL and what the port has", err)
	}
}
