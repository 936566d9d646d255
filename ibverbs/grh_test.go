package ibverbs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	grh4 = GRH{
		Version: 4, TrafficClass: 0x2a, PayloadLength: 300, NextHeader: NextHeaderUDP, HopLimit: 9,
		SGID: GIDFromAddr(netip.MustParseAddr("192.0.2.1")), DGID: GIDFromAddr(netip.MustParseAddr("192.0.2.200")),
	}
	grh6 = GRH{
		Version: 6, TrafficClass: 0xfe, FlowLabel: 0xabcde, PayloadLength: 65535, NextHeader: NextHeaderUDP, HopLimit: 255,
		SGID: GIDFromAddr(netip.MustParseAddr("2001:db8::1")), DGID: GIDFromAddr(netip.MustParseAddr("2001:db8:1:2:3:4:5:6")),
	}
)

// header is a GRH's bytes, changed.
func header(t *testing.T, g GRH, change func(b []byte)) []byte {
	t.Helper()
	b, err := g.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(b)
	}
	return b
}

func TestParseGRH(t *testing.T) {
	// The checksum that IPv4 specifies, by an example that others have worked
	// out (RFC 1071's method on a well-known header).
	known := []byte{0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7}
	for _, tc := range []struct {
		name string
		b    []byte
		want GRH
	}{
		{"IPv6", header(t, grh6, nil), grh6},
		{"IPv4", header(t, grh4, nil), grh4},
		{"more bytes behind", append(header(t, grh4, nil), 1, 2, 3), grh4},
		{"known IPv4 header", append(make([]byte, 20), known...), GRH{
			Version: 4, PayloadLength: 0x73 - 20, NextHeader: 17, HopLimit: 64,
			SGID: GIDFromAddr(netip.MustParseAddr("192.168.0.1")), DGID: GIDFromAddr(netip.MustParseAddr("192.168.0.199")),
		}},
		// rxe leaves the checksum out on the way to itself.
		{"IPv4 without checksum", header(t, grh4, func(b []byte) { b[30], b[31] = 0, 0 }), grh4},
		{"IPv4 behind the rest of an IPv6 header", header(t, grh4, func(b []byte) { b[0] = 0x60 }), grh4},
		{"IPv6 whose end looks like IPv4", header(t, grh6, func(b []byte) { b[20] = 0x45 }), func() GRH {
			g := grh6
			g.SGID[12] = 0x45
			return g
		}()},
	} {
		g, err := ParseGRH(tc.b)
		if diff := cmp.Diff(tc.want, g); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tc.name, err, diff)
		}
	}
	if got := header(t, grh6, nil); binary.BigEndian.Uint32(got) != 0x6feabcde || !bytes.Equal(got[8:24], grh6.SGID[:]) {
		t.Errorf("an IPv6 header of % x", got)
	}
}

func TestParseGRHErrors(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"39 bytes":          header(t, grh6, nil)[:39],
		"zeros":             make([]byte, 40),
		"version 5":         header(t, grh6, func(b []byte) { b[0] = 0x50 }),
		"IPv4 with options": header(t, grh4, func(b []byte) { b[20] = 0x46 }),
		"IPv4 of 19 bytes":  header(t, grh4, func(b []byte) { b[22], b[23] = 0, 19 }),
	} {
		g, err := ParseGRH(b)
		var op *OpError
		if !errors.As(err, &op) || !errors.Is(err, syscall.EINVAL) || g != (GRH{}) {
			t.Errorf("%s: %+v, %v; want EINVAL", name, g, err)
		}
	}
	for name, change := range map[string]func(*GRH){
		"version":         func(g *GRH) { g.Version = 5 },
		"IPv4 flow label": func(g *GRH) { g.FlowLabel = 1 },
		"IPv4 length":     func(g *GRH) { g.PayloadLength = 65516 },
		"IPv6 sender":     func(g *GRH) { g.SGID = grh6.SGID },
		"IPv6 receiver":   func(g *GRH) { g.DGID = grh6.DGID },
		"flow label":      func(g *GRH) { *g = grh6; g.FlowLabel = 1 << 20 },
	} {
		g := grh4
		change(&g)
		if b, err := g.AppendBinary([]byte{7}); !errors.Is(err, syscall.EINVAL) || len(b) != 1 {
			t.Errorf("append %s: % x, %v; want EINVAL", name, b, err)
		}
	}
}

func TestGRHString(t *testing.T) {
	if got, want := grh4.String(), "192.0.2.1 > 192.0.2.200 class 0x2a hops 9"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := grh6.String(); !strings.HasSuffix(got, " flow 0xabcde") {
		t.Errorf("%q has no flow label", got)
	}
}

func TestReversePath(t *testing.T) {
	table := []GIDEntry{
		{GID: grh4.DGID, Port: 1, Index: 3, Type: GIDTypeRoCEv1},
		{GID: grh4.DGID, Port: 2, Index: 4, Type: GIDTypeRoCEv2},
		{GID: grh4.DGID, Port: 1, Index: 5, Type: GIDTypeRoCEv2},
		{GID: grh6.DGID, Port: 1, Index: 6, Type: GIDTypeRoCEv1},
		{GID: grh6.DGID, Port: 1, Index: 7, Type: GIDTypeRoCEv2, NetdevIndex: 2},
		{GID: grh6.DGID, Port: 3, Index: 0, Type: GIDTypeIB},
		{GID: grh6.SGID, Port: 1, Index: 300, Type: GIDTypeRoCEv2},
	}
	v1, toSelf := grh6, grh6
	v1.NextHeader = NextHeaderIBA
	toSelf.DGID = grh6.SGID
	wc := WC{SLID: 77, SL: 3, DLIDPathBits: 5}
	for _, tc := range []struct {
		name string
		g    GRH
		port int
		want AHAttr
	}{
		{"IPv4", grh4, 1, AHAttr{DGID: grh4.SGID, SGIDIndex: 5, TrafficClass: 0x2a}},
		{"IPv4, other port", grh4, 2, AHAttr{DGID: grh4.SGID, SGIDIndex: 4, TrafficClass: 0x2a}},
		{"IPv6", grh6, 1, AHAttr{DGID: grh6.SGID, SGIDIndex: 7, TrafficClass: 0xfe, FlowLabel: 0xabcde}},
		{"RoCE v1", v1, 1, AHAttr{DGID: grh6.SGID, SGIDIndex: 6, TrafficClass: 0xfe, FlowLabel: 0xabcde}},
		{"InfiniBand", v1, 3, AHAttr{DGID: grh6.SGID, SGIDIndex: 0, TrafficClass: 0xfe, FlowLabel: 0xabcde}},
	} {
		want := tc.want
		want.IsGlobal, want.HopLimit, want.Port = true, 255, uint8(tc.port)
		attr, err := tc.g.ReversePath(table, tc.port, nil)
		if diff := cmp.Diff(want, attr); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tc.name, err, diff)
		}
		want.DLID, want.SL, want.SrcPathBits = 77, 3, 5
		attr, err = tc.g.ReversePath(table, tc.port, &wc)
		if diff := cmp.Diff(want, attr); err != nil || diff != "" {
			t.Errorf("%s with a completion: %v\n%s", tc.name, err, diff)
		}
	}
	twice := append(table, GIDEntry{GID: grh6.DGID, Port: 1, Index: 9, Type: GIDTypeRoCEv2, NetdevIndex: 5})
	for _, tc := range []struct {
		name  string
		g     GRH
		table []GIDEntry
		port  int
		is    error
	}{
		{"not ours", grh4, table, 3, syscall.EADDRNOTAVAIL},
		{"index above 255", toSelf, table, 1, syscall.ERANGE},
		{"on two netdevs", grh6, twice, 1, syscall.ENOTUNIQ},
		{"TCP", GRH{Version: 6, NextHeader: 6, DGID: grh6.DGID}, table, 1, syscall.EINVAL},
		{"multicast", GRH{Version: 6, NextHeader: 17, DGID: GID{0xff, 0x15}}, table, 1, syscall.EINVAL},
		{"IPv4 multicast", GRH{Version: 4, NextHeader: 17, DGID: GID{10: 0xff, 11: 0xff, 12: 224, 15: 1}}, table, 1, syscall.EINVAL},
	} {
		var op *OpError
		if _, err := tc.g.ReversePath(tc.table, tc.port, &wc); !errors.As(err, &op) || !errors.Is(err, tc.is) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.is)
		}
	}
}

// What is read is written the same, and reads the same again.
func FuzzParseGRH(f *testing.F) {
	for _, g := range []GRH{grh4, grh6} {
		b, err := g.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := ParseGRH(b)
		if err != nil {
			return
		}
		again, err := g.AppendBinary(nil)
		if err != nil {
			t.Fatalf("%+v: %v", g, err)
		}
		if g.Version == 6 && !bytes.Equal(again, b[:GRHSize]) {
			t.Errorf("% x is written as % x", b[:GRHSize], again)
		}
		if back, err := ParseGRH(again); err != nil || back != g {
			t.Errorf("%+v reads as %+v, %v", g, back, err)
		}
	})
}

func FuzzParseGID(f *testing.F) {
	for _, s := range []string{"192.0.2.1", "fe80::1", "fe80::1%eth0", grh6.SGID.String()} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := ParseGID(s)
		if err != nil {
			return
		}
		if back, err := ParseGID(g.String()); err != nil || back != g {
			t.Errorf("%q is %v, which is %v, %v", s, g, back, err)
		}
		if back, err := ParseGID(g.Addr().String()); err != nil || back != g {
			t.Errorf("%q is the address %v, which is %v, %v", s, g.Addr(), back, err)
		}
	})
}
