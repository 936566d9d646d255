package rdmacm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"reflect"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
)

var somePath = PathRecord{
	ServiceID: 0x0102030405060708, DGID: ibverbs.GID{1, 15: 2}, SGID: ibverbs.GID{3, 15: 4}, DLID: 0x1122, SLID: 0x3344,
	FlowLabel: 0xfedcb, HopLimit: 64, TrafficClass: 0x28, Reversible: true, NumPath: 0x7f, PKey: 0xffff, QoSClass: 0xabc, SL: 9,
	MTUSelector: 2, MTU: ibverbs.MTU4096, RateSelector: 1, Rate: 3, LifeSelector: 3, PacketLifeTime: 18, Preference: 5,
}

// TestPathRecord: each field stands where the specification has it
// (InfiniBand 15.2.5.16), and comes back.
func TestPathRecord(t *testing.T) {
	b, err := somePath.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	want = append(append(want, somePath.DGID[:]...), somePath.SGID[:]...)
	want = append(want, 0x11, 0x22, 0x33, 0x44, 0x0f, 0xed, 0xcb, 64, 0x28, 0xff, 0xff, 0xff, 0xab, 0xc9, 0x85, 0x43, 0xd2, 5, 0, 0, 0, 0, 0, 0)
	if !bytes.Equal(b, want) {
		t.Errorf("got  % x\nwant % x", b, want)
	}
	if got, err := ParsePathRecord(b); err != nil || got != somePath {
		t.Errorf("came back as %+v, %v", got, err)
	}
	for _, bad := range []PathRecord{{FlowLabel: 1 << 20}, {NumPath: 128}, {QoSClass: 1 << 12}, {SL: 16}, {MTU: 64}, {Rate: 64}, {PacketLifeTime: 64}, {MTUSelector: 4}, {RateSelector: 4}, {LifeSelector: 4}} {
		if _, err := bad.AppendBinary(nil); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%+v: %v, want EINVAL", bad, err)
		}
	}
	for _, n := range []int{0, 63, 65} {
		if _, err := ParsePathRecord(make([]byte, n)); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%d bytes: %v, want EINVAL", n, err)
		}
	}
	if _, err := parsePathData(make([]byte, pathDataSize+1)); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("paths of a wrong length: %v, want EINVAL", err)
	}
}

func FuzzParsePathRecord(f *testing.F) {
	b, _ := somePath.AppendBinary(nil)
	f.Add(b)
	f.Add(make([]byte, pathRecordSize))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePathRecord(b)
		if err != nil {
			if len(b) == pathRecordSize {
				t.Fatal(err)
			}
			return
		}
		again, err := p.AppendBinary(nil)
		if err != nil {
			t.Fatalf("%+v does not go back: %v", p, err)
		}
		// All but the reserved bits, which are the flow label's first four and
		// the last six bytes.
		b = bytes.Clone(b)
		b[44] &= 0x0f
		copy(b[58:], make([]byte, 6))
		if !bytes.Equal(again, b) {
			t.Fatalf("% x came back as % x", b, again)
		}
	})
}

func FuzzParsePathData(f *testing.F) {
	b, _ := appendPathData(nil, []PathData{{PathUsual, somePath}, {PathAlternate, PathRecord{}}})
	f.Add(b)
	f.Add(b[:10])
	f.Fuzz(func(t *testing.T, b []byte) {
		paths, err := parsePathData(b)
		if (err == nil) != (len(b)%pathDataSize == 0) {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		again, err := appendPathData(nil, paths)
		if err != nil || len(again) != len(paths)*pathDataSize {
			t.Fatalf("%d bytes came back as %d, %v", len(b), len(again), err)
		}
		for i := range paths {
			if got := binary.NativeEndian.Uint32(again[i*pathDataSize:]); got != uint32(paths[i].Flags) {
				t.Fatalf("flags %#x, want %#x", got, paths[i].Flags)
			}
		}
	})
}

func TestIBAddrSockaddr(t *testing.T) {
	addr := IBAddr{PKey: 0x8001, FlowInfo: 0x12345, GID: ibverbs.GID{0: 0xfe, 1: 0x80, 15: 7}, ServiceID: IBServiceID(PortSpaceTCP, 7471), ServiceIDMask: ^uint64(0), ScopeID: 3}
	if addr.ServiceID != 0x01061d2f || addr.Port() != 7471 {
		t.Errorf("service id %#x, port %d", addr.ServiceID, addr.Port())
	}
	sa := addr.sockaddr()
	if got := ibFromSockaddr(sa); got == nil || *got != addr {
		t.Errorf("came back as %+v", got)
	}
	if got := fromSockaddr(sa); got.IsValid() {
		t.Errorf("taken for the IP address %v", got)
	}
	ip, _ := toSockaddr(netip.MustParseAddrPort("192.0.2.1:1"))
	if got := ibFromSockaddr(ip); got != nil {
		t.Errorf("an IP address was taken for %v", got)
	}
	if got, want := addr.String(), "[fe80::7]/0x1061d2f pkey 0x8001"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzIBFromSockaddr(f *testing.F) {
	sa := IBAddr{PKey: 1, ServiceID: 2}.sockaddr()
	f.Add(sa[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var sa sockaddr
		copy(sa[:], b)
		if addr := ibFromSockaddr(sa); addr != nil && addr.sockaddr() != sa {
			t.Fatalf("% x came back as % x", sa, addr.sockaddr())
		}
	})
}

// TestAddrInfoToC: what goes to C comes back.
func TestAddrInfoToC(t *testing.T) {
	for _, want := range []AddrInfo{
		{},
		{
			Flags: AddrInfoPassive | AddrInfoNoRoute, Family: syscall.AF_INET, QPType: ibverbs.QPTypeUD, PortSpace: PortSpaceUDP,
			Src: netip.MustParseAddrPort("192.0.2.1:1"), Dst: netip.MustParseAddrPort("192.0.2.2:65535"),
			SrcName: "here", DstName: "there", Route: []PathData{{PathUsual, somePath}, {PathInbound, PathRecord{}}}, Connect: []byte{1, 2, 3},
		},
		{
			Family: syscall.AF_INET6, QPType: ibverbs.QPTypeRC, PortSpace: PortSpaceTCP,
			Dst: netip.MustParseAddrPort("[2001:db8::1]:7471"),
		},
		{Family: afIB, PortSpace: PortSpaceIB, SrcIB: &IBAddr{PKey: 1}, DstIB: &IBAddr{GID: ibverbs.GID{15: 1}, ServiceID: 9}},
	} {
		c, free, err := addrInfoToC(&want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := addrInfoFromC(c)
		free()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	if _, _, err := addrInfoToC(&AddrInfo{Route: []PathData{{Path: PathRecord{SL: 16}}}}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a path that does not fit: %v, want EINVAL", err)
	}
}

// TestRoutePaths: every field of a path that C gives.
func TestRoutePaths(t *testing.T) {
	var r cRoute
	r.num_paths = 1
	c := &r.paths[0]
	set(&c.dlid, swap16(uint16(0x1122)))
	set(&c.slid, swap16(uint16(0x3344)))
	set(&c.flow_label, swap32(uint32(0xfedcb)))
	set(&c.pkey, swap16(uint16(0xffff)))
	set(&c.raw_traffic, int32(1))
	set(&c.reversible, int32(1))
	for i, p := range []interface{ set(uint8) }{
		field(&c.hop_limit), field(&c.traffic_class), field(&c.numb_path), field(&c.sl), field(&c.mtu_selector), field(&c.mtu),
		field(&c.rate_selector), field(&c.rate), field(&c.packet_life_time_selector), field(&c.packet_life_time), field(&c.preference),
	} {
		p.set(uint8(i + 1))
	}
	c.dgid[0], c.sgid[15] = 1, 2
	want := PathRecord{
		DGID: ibverbs.GID{0: 1}, SGID: ibverbs.GID{15: 2}, DLID: 0x1122, SLID: 0x3344, RawTraffic: true, FlowLabel: 0xfedcb,
		HopLimit: 1, TrafficClass: 2, Reversible: true, NumPath: 3, PKey: 0xffff, SL: 4, MTUSelector: 5, MTU: 6,
		RateSelector: 7, Rate: 8, LifeSelector: 9, PacketLifeTime: 10, Preference: 11,
	}
	if got := routeFromC(&r).paths; len(got) != 1 || got[0] != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// byteField sets a C uint8_t, whose type a test cannot name.
type byteField[T ~uint8] struct{ p *T }

func (f byteField[T]) set(v uint8) { *f.p = T(v) }

func field[T ~uint8](p *T) byteField[T] { return byteField[T]{p} }
