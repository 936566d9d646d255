package rnic

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

func TestParsers(t *testing.T) {
	tests := []struct {
		parse string
		in    string
		want  any // nil: an error
	}{
		{"enum", "4: ACTIVE", uint8(4)},
		{"enum", "255: ", uint8(255)},
		{"enum", "256: X", nil},
		{"enum", "-1: X", nil},
		{"enum", "4", nil},
		{"enum", "", nil},
		{"rate", "100 Gb/sec (4X EDR)", 100.0},
		{"rate", "2.5 Gb/sec (1X SDR)", 2.5},
		{"rate", "0 Gb/sec", 0.0},
		{"rate", "-1 Gb/sec", nil},
		{"rate", "NaN Gb/sec", nil},
		{"rate", "Inf Gb/sec", nil},
		{"rate", "100 Mb/sec", nil},
		{"rate", "", nil},
		{"numa", "-1", -1},
		{"numa", "3", 3},
		{"numa", "-2", nil},
		{"numa", "", nil},
		{"int", "65536", 65536},
		{"int", "-1", nil},
		{"int", "2147483648", nil},
		{"lid", "0x1a", uint32(26)},
		{"lid", "26", uint32(26)},
		{"lid", "0x100000000", nil},
		{"dev", "231:192", DevNum{231, 192}},
		{"dev", "231", nil},
		{"dev", "231:-1", nil},
		{"index", "255", 255},
		{"index", "007", nil},
		{"index", "65536", nil},
		{"index", "..", nil},
		{"pci", "0000:3b:00.1", true},
		{"pci", "10000:e1:00.0", true},
		{"pci", "0000:3b:00.8", false},
		{"pci", "0000:3b:00", false},
		{"pci", "0000:3B:00.1", false},
		{"pci", "virtio0", false},
	}
	for _, tt := range tests {
		t.Run(tt.parse+" "+tt.in, func(t *testing.T) {
			got, err := parseAs(tt.parse, tt.in)
			switch {
			case tt.want == nil && err == nil:
				t.Errorf("got %v, want an error", got)
			case tt.want != nil && tt.want != got:
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

func parseAs(parser, in string) (any, error) {
	switch parser {
	case "enum":
		return parseEnum(in)
	case "rate":
		return parseRate(in)
	case "numa":
		return parseNUMA(in)
	case "int":
		return parseInt(in)
	case "lid":
		return parseLID(in)
	case "dev":
		return parseDevNum(in)
	case "index":
		return parseIndex(in)
	}
	return isPCIAddress(in), nil
}

func TestGID(t *testing.T) {
	tests := []struct{ gid, addr string }{
		{"0000:0000:0000:0000:0000:ffff:c000:0211", "192.0.2.17"},
		{"fe80:0000:0000:0000:ba59:9fff:fed1:0a2c", "fe80::ba59:9fff:fed1:a2c"},
	}
	for _, tt := range tests {
		g, err := ParseGID(tt.gid)
		if err != nil {
			t.Fatal(err)
		}
		if g.Addr().String() != tt.addr || g.String() != tt.gid || GIDFromAddr(netip.MustParseAddr(tt.addr)) != g {
			t.Errorf("%s: Addr %v, String %v", tt.gid, g.Addr(), g)
		}
	}
}

func TestEnumStrings(t *testing.T) {
	if got := PortState(9).String(); got != "PortState(9)" {
		t.Errorf("unknown state prints %q", got)
	}
	for v := range 256 {
		var back PortState
		if err := back.UnmarshalText([]byte(PortState(v).String())); err != nil || back != PortState(v) {
			t.Fatalf("%v came back as %v, %v", PortState(v), back, err)
		}
	}
	for _, s := range []string{"", "ACTIV", "PortState(256)", "PhysState(9)"} {
		var v PortState
		if err := v.UnmarshalText([]byte(s)); err == nil {
			t.Errorf("%q: got %v, want an error", s, v)
		}
	}
	if got := driverName(14); got != "rxe" {
		t.Errorf("RDMA_DRIVER_RXE is %q", got)
	}
	if got := driverName(18); got != "siw" {
		t.Errorf("RDMA_DRIVER_SIW is %q", got)
	}
	if got := driverName(4000000000); got != "driver(4000000000)" {
		t.Errorf("unknown driver is %q", got)
	}
}

func TestActiveMTU(t *testing.T) {
	tests := []struct {
		driver string
		p      Protocol
		netdev int
		want   int
	}{
		{"rxe", ProtocolRoCE, 1500, 1024},
		{"rxe", ProtocolRoCE, 4200, 4096},
		{"rxe", ProtocolRoCE, 4176, 4096},
		{"rxe", ProtocolRoCE, 4175, 2048},
		{"mlx5", ProtocolRoCE, 4192, 4096},
		{"mlx5", ProtocolRoCE, 4191, 2048},
		{"siw", ProtocolIWARP, 4096, 4096},
		{"siw", ProtocolIWARP, 1500, 1024},
		{"rxe", ProtocolRoCE, 68, 256},
		{"mlx5", ProtocolRoCE, 65535, 4096},
		{"mlx5", ProtocolIB, 2044, 0},
		{"rxe", ProtocolRoCE, 0, 0},
	}
	for _, tt := range tests {
		if got := activeMTU(tt.driver, tt.p, tt.netdev); got != tt.want {
			t.Errorf("%s, %v, netdev MTU %d: %d, want %d", tt.driver, tt.p, tt.netdev, got, tt.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	tests := map[string]string{
		"eth0": "eth0", "a b": "a b", "": `""`, "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, "\xff": `"\xff"`, "µ": "µ", "\u202e": `"\u202e"`,
	}
	for in, want := range tests {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
}

func FuzzSysfsValues(f *testing.F) {
	for _, s := range []string{"4: ACTIVE", "100 Gb/sec (4X EDR)", "-1", "0x1a", "231:192", "255", "0000:3b:00.1", "",
		"fe80:0000:0000:0000:ba59:9fff:fed1:0a2c", "5054:00ff:fe12:3456", "RoCE v2", "IB/RoCE v1", "Ethernet", "1e400 Gb/sec", "18446744073709551615"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if g, err := ParseGID(s); err == nil && g.String() != strings.ToLower(s) {
			t.Errorf("GID %q prints as %v", s, g)
		}
		if g, err := ParseGUID(s); err == nil && g.String() != strings.ToLower(s) {
			t.Errorf("GUID %q prints as %v", s, g)
		}
		if v, err := parseRate(s); err == nil && !(v >= 0 && v <= 1e6) {
			t.Errorf("rate %q is %v", s, v)
		}
		if v, err := parseNUMA(s); v < -1 || err != nil && v != -1 {
			t.Errorf("NUMA node %q is %v, %v", s, v, err)
		}
		if v, err := parseIndex(s); err == nil && (v < 0 || v > 65535) {
			t.Errorf("index %q is %v", s, v)
		}
		if isPCIAddress(s) && checkName("PCI", s, maxName) != nil {
			t.Errorf("PCI address %q is no path element", s)
		}
		if d, err := parseDevNum(s); err == nil && d.String() != s && !strings.ContainsAny(s, "+0") {
			t.Errorf("device number %q is %v", s, d)
		}
		for p := range Protocol(6) {
			if v, err := parseGIDType(s, p); err != nil && v != GIDTypeUnknown {
				t.Errorf("GID type %q is %v with error %v", s, v, err)
			}
		}
		if v, err := parseCounter(s); err == nil && strconv.FormatUint(v, 10) != strings.TrimLeft(s, "0") && v != 0 {
			t.Errorf("counter %q is %d", s, v)
		}
		_, _ = parseLinkLayer(s)
		_, _ = parseLID(s)
		if strings.ContainsAny(printable(s), "\n\x1b\r") {
			t.Errorf("printable(%q) = %q", s, printable(s))
		}
	})
}
