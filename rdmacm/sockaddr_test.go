package rdmacm

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSockaddrRoundTrip(t *testing.T) {
	lo, err := net.InterfaceByIndex(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ in, want string }{
		{"192.0.2.1:7471", "192.0.2.1:7471"},
		{"0.0.0.0:0", "0.0.0.0:0"},
		{"255.255.255.255:65535", "255.255.255.255:65535"},
		{"[2001:db8::1]:7471", "[2001:db8::1]:7471"},
		{"[::]:0", "[::]:0"},
		{"[::ffff:192.0.2.1]:5", "192.0.2.1:5"},
		{"[fe80::1%" + lo.Name + "]:9", "[fe80::1%" + lo.Name + "]:9"},
		{"[fe80::1%1]:9", "[fe80::1%" + lo.Name + "]:9"},
		{"[fe80::1%123456]:9", "[fe80::1%123456]:9"},
	} {
		sa, err := toSockaddr(netip.MustParseAddrPort(tc.in))
		if err != nil {
			t.Errorf("toSockaddr(%s): %v", tc.in, err)
			continue
		}
		if got := fromSockaddr(sa).String(); got != tc.want {
			t.Errorf("%s came back as %s, want %s", tc.in, got, tc.want)
		}
	}
}

func TestSockaddrLayout(t *testing.T) {
	sa, err := toSockaddr(netip.MustParseAddrPort("192.0.2.1:258"))
	if err != nil {
		t.Fatal(err)
	}
	if family := binary.NativeEndian.Uint16(sa[:]); family != unix.AF_INET {
		t.Errorf("family %d, want AF_INET", family)
	}
	if sa[2] != 1 || sa[3] != 2 {
		t.Errorf("port bytes % x, want 01 02", sa[2:4])
	}
	if [4]byte(sa[4:8]) != [4]byte{192, 0, 2, 1} {
		t.Errorf("address bytes % x", sa[4:8])
	}
}

func TestSockaddrNone(t *testing.T) {
	sa, err := toSockaddr(netip.AddrPort{})
	if err != nil || sa != (sockaddr{}) {
		t.Errorf("the zero AddrPort became % x, %v", sa, err)
	}
	if got := fromSockaddr(sockaddr{}); got.IsValid() {
		t.Errorf("no address became %v", got)
	}
}

func TestSockaddrZone(t *testing.T) {
	_, err := toSockaddr(netip.MustParseAddrPort("[fe80::1%nosuchif]:9"))
	var addrErr *net.AddrError
	if !errors.As(err, &addrErr) || addrErr.Addr != "nosuchif" {
		t.Errorf("unknown zone: %v, want a *net.AddrError that names it", err)
	}
}

// FuzzSockaddr: whatever C wrote, converting it back and forth is stable.
func FuzzSockaddr(f *testing.F) {
	for _, s := range []string{"192.0.2.1:7471", "[2001:db8::1]:1", "[fe80::1%7]:2"} {
		sa, err := toSockaddr(netip.MustParseAddrPort(s))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(sa[:])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var sa sockaddr
		copy(sa[:], b)
		ap := fromSockaddr(sa)
		again, err := toSockaddr(ap)
		if err != nil {
			t.Fatalf("%v: %v", ap, err)
		}
		if got := fromSockaddr(again); got != ap {
			t.Fatalf("%v became %v", ap, got)
		}
	})
}
