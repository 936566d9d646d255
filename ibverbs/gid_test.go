package ibverbs

import (
	"errors"
	"fmt"
	"net"
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
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	here, elsewhere := lo.Index, lo.Index+7
	addr := netip.MustParseAddr("192.0.2.1")
	v6, zoned := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::1%lo")
	table := []GIDEntry{
		{GID: GIDFromAddr(v6), Port: 1, Index: 0, Type: GIDTypeRoCEv1, NetdevIndex: here},
		{GID: GIDFromAddr(v6), Port: 1, Index: 1, Type: GIDTypeRoCEv2, NetdevIndex: elsewhere},
		{GID: GIDFromAddr(v6), Port: 1, Index: 2, Type: GIDTypeRoCEv2, NetdevIndex: here},
		{GID: GIDFromAddr(addr), Port: 2, Index: 0, Type: GIDTypeRoCEv2, NetdevIndex: elsewhere},
		{GID: GIDFromAddr(addr), Port: 1, Index: 3, Type: GIDTypeRoCEv1, NetdevIndex: here},
		{GID: GIDFromAddr(addr), Port: 1, Index: 5, Type: GIDTypeRoCEv2, NetdevIndex: here},
	}
	for _, tc := range []struct {
		addr   netip.Addr
		typ    GIDType
		port   int
		netdev int
		want   int
	}{
		{addr, GIDTypeRoCEv2, 1, 0, 5},
		{addr, GIDTypeRoCEv2, 1, here, 5},
		{addr, GIDTypeRoCEv1, 1, 0, 3},
		{addr, GIDTypeRoCEv2, 2, 0, 0},
		{v6, GIDTypeRoCEv1, 1, 0, 0},
		{v6, GIDTypeRoCEv2, 1, here, 2},
		{v6, GIDTypeRoCEv2, 1, elsewhere, 1},
		{zoned, GIDTypeRoCEv2, 1, 0, 2},
		{zoned, GIDTypeRoCEv2, 1, elsewhere, 1}, // netdev counts before the zone
		{netip.AddrFrom16(addr.As16()), GIDTypeRoCEv2, 1, 0, 5},
	} {
		e, err := ChooseGID(table, tc.port, tc.typ, tc.addr, tc.netdev)
		if err != nil || e.Index != tc.want || e.Port != tc.port {
			t.Errorf("%v %v port %d netdev %d: index %d, %v; want %d", tc.addr, tc.typ, tc.port, tc.netdev, e.Index, err, tc.want)
		}
	}
	for _, tc := range []struct {
		name   string
		addr   netip.Addr
		port   int
		netdev int
		is     error
		word   string
	}{
		{"no such GID", netip.MustParseAddr("192.0.2.9"), 2, 0, syscall.EADDRNOTAVAIL, "192.0.2.1 (RoCE v2, index 0, netdev "},
		{"not on this netdev", addr, 2, here, syscall.EADDRNOTAVAIL, fmt.Sprintf("on netdev %d", here)},
		{"on two netdevs", v6, 1, 0, syscall.ENOTUNIQ, fmt.Sprintf("index 2, netdev %d", here)},
		{"no such zone", v6.WithZone("no-such-netdev"), 1, 0, syscall.ENODEV, "no-such-netdev"},
		{"no address", netip.Addr{}, 1, 0, syscall.EINVAL, "no address"},
	} {
		_, err := ChooseGID(table, tc.port, GIDTypeRoCEv2, tc.addr, tc.netdev)
		var op *OpError
		if !errors.As(err, &op) || !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.word) {
			t.Errorf("%s: %v; want %v and a word on %q", tc.name, err, tc.is, tc.word)
		}
	}
}

func TestParseGID(t *testing.T) {
	for text, want := range map[string]string{
		"fe80:0000:0000:0000:5054:00ff:fe12:3456": "fe80:0000:0000:0000:5054:00ff:fe12:3456",
		"fe80::5054:ff:fe12:3456":                 "fe80:0000:0000:0000:5054:00ff:fe12:3456",
		"0000:0000:0000:0000:0000:ffff:c000:0201": "0000:0000:0000:0000:0000:ffff:c000:0201",
		"192.0.2.1": "0000:0000:0000:0000:0000:ffff:c000:0201",
	} {
		g, err := ParseGID(text)
		if err != nil || g.String() != want {
			t.Errorf("%q: %v, %v; want %s", text, g, err, want)
		}
	}
	for _, text := range []string{"", "rxe0", "fe80::1%eth0", "1:2:3", "192.0.2.256"} {
		if g, err := ParseGID(text); !errors.Is(err, syscall.EINVAL) || g != (GID{}) {
			t.Errorf("%q: %v, %v; want EINVAL", text, g, err)
		}
	}
}

func TestMcastGID(t *testing.T) {
	for _, tc := range []struct {
		group string
		typ   GIDType
		want  string
	}{
		{"239.1.2.3", GIDTypeRoCEv2, "0000:0000:0000:0000:0000:ffff:ef01:0203"},
		{"::ffff:239.1.2.3", GIDTypeRoCEv2, "0000:0000:0000:0000:0000:ffff:ef01:0203"},
		{"239.1.2.3", GIDTypeRoCEv1, "ff0e:0000:0000:0000:0000:ffff:ef01:0203"},
		{"ff15::1234", GIDTypeRoCEv2, "ff15:0000:0000:0000:0000:0000:0000:1234"},
		{"ff02::1%eth0", GIDTypeRoCEv1, "ff02:0000:0000:0000:0000:0000:0000:0001"},
	} {
		g, err := McastGID(netip.MustParseAddr(tc.group), tc.typ)
		if err != nil || g.String() != tc.want || !g.IsMulticast() {
			t.Errorf("%s on %v: %v, %v; want %s", tc.group, tc.typ, g, err, tc.want)
		}
	}
	for _, group := range []netip.Addr{{}, netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1")} {
		if _, err := McastGID(group, GIDTypeRoCEv2); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%v: %v, want EINVAL", group, err)
		}
		if group.IsValid() && GIDFromAddr(group).IsMulticast() {
			t.Errorf("%v is said to be multicast", group)
		}
	}
	if _, err := McastGID(netip.MustParseAddr("239.1.2.3"), GIDTypeIB); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("for InfiniBand: %v, want EINVAL", err)
	}
}
