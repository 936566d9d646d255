package verbsnet

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/rnic"
)

func device(name string, protocol rnic.Protocol, state rnic.PortState) rnic.RNIC {
	return rnic.RNIC{Name: name, Ports: []rnic.Port{{Number: 1, Protocol: protocol, State: state, Netdev: name + "-net"}}}
}

func TestChooseAddress(t *testing.T) {
	const active, down = rnic.PortStateActive, rnic.PortStateDown
	addrs := func(netdev string) ([]netip.Addr, error) {
		switch netdev {
		case "rxe0-net":
			return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}, nil
		case "rxe1-net":
			return []netip.Addr{netip.MustParseAddr("192.0.2.2")}, nil
		case "siw0-net":
			return []netip.Addr{netip.MustParseAddr("192.0.2.3")}, nil
		case "bare-net":
			return nil, nil
		}
		return nil, errors.New("no such interface")
	}
	rxe0, rxe1 := device("rxe0", rnic.ProtocolRoCE, active), device("rxe1", rnic.ProtocolRoCE, active)
	siw0 := device("siw0", rnic.ProtocolIWARP, active)
	for _, tt := range []struct {
		name      string
		transport string
		rnics     []rnic.RNIC
		near      string
		want, err string
	}{
		{name: "first", transport: "roce", rnics: []rnic.RNIC{siw0, rxe0, rxe1}, want: "192.0.2.1"},
		{name: "other kind", transport: "iwarp", rnics: []rnic.RNIC{rxe0, siw0}, want: "192.0.2.3"},
		{name: "where the client is", transport: "roce", rnics: []rnic.RNIC{rxe0, rxe1}, near: "192.0.2.2", want: "192.0.2.2"},
		{name: "where the client is, IPv6", transport: "roce", rnics: []rnic.RNIC{rxe1, rxe0}, near: "2001:db8::1", want: "2001:db8::1"},
		{name: "client elsewhere", transport: "roce", rnics: []rnic.RNIC{rxe0, rxe1}, near: "198.51.100.1", want: "192.0.2.1"},
		{name: "none", transport: "roce", rnics: []rnic.RNIC{siw0}, err: "no RoCE v2 device: add one (rnic add rxe0 --type rxe"},
		{name: "none at all", transport: "iwarp", err: "no iWARP device: add one (rnic add siw0 --type siw"},
		{name: "down", transport: "roce", rnics: []rnic.RNIC{device("rxe0", rnic.ProtocolRoCE, down)}, err: "port 1 of rxe0 is"},
		{name: "no address", transport: "roce", rnics: []rnic.RNIC{device("bare", rnic.ProtocolRoCE, active)}, err: "bare has no IP address"},
		{name: "no netdev", transport: "roce", rnics: []rnic.RNIC{device("gone", rnic.ProtocolRoCE, active)}, err: "gone has no IP address"},
		{name: "one useless, one not", transport: "roce", rnics: []rnic.RNIC{device("bare", rnic.ProtocolRoCE, active), rxe1}, want: "192.0.2.2"},
	} {
		var near netip.Addr
		if tt.near != "" {
			near = netip.MustParseAddr(tt.near)
		}
		got, err := chooseAddress(tt.transport, tt.rnics, addrs, near)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, %v, want an error about %q", tt.name, got, err, tt.err)
			}
		case err != nil || got.String() != tt.want:
			t.Errorf("%s: %v, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

// TestArrived: the last byte of a message, wherever it is in its word, and nothing else.
func TestArrived(t *testing.T) {
	const off = 64
	for size := 1; size <= 64; size++ {
		c := &Conn{Buffers: bench.Buffers{Sink: make([]byte, 192)}}
		for i := range c.Sink {
			c.Sink[i] = 0xff
		}
		if !c.arrived(off, size) {
			t.Fatalf("size %d: not seen", size)
		}
		c.expect(off, size)
		if c.arrived(off, size) {
			t.Errorf("size %d: seen before it was there", size)
		}
		for i, b := range c.Sink {
			if last := i == off+size-1; (b == 0) != last {
				t.Errorf("size %d: byte %d is %#x", size, i, b)
			}
		}
		c.Sink[off+size-1] = 1
		if !c.arrived(off, size) {
			t.Errorf("size %d: not seen", size)
		}
	}
}

func TestAttachRefuses(t *testing.T) {
	c := &Conn{Buffers: bench.Buffers{Sink: make([]byte, 64)}}
	for _, bad := range []string{"", "null", "[]", "{}", `{"region":128}`, `{"region":-1}`, `{"source_addr":-1,"region":64}`} {
		if err := c.Attach([]byte(bad)); err == nil {
			t.Errorf("%q: accepted", bad)
		}
	}
	if err := c.Attach([]byte(`{"source_addr":1,"source_key":2,"sink_addr":3,"sink_key":4,"region":64}`)); err != nil {
		t.Error(err)
	}
}
