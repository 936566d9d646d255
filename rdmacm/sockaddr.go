package rdmacm

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// sockaddr holds a struct sockaddr_in, sockaddr_in6 or sockaddr_ib as C lays it
// out; all zero means "no address".
type sockaddr [sizeofSockaddrIB]byte

// Offsets in struct sockaddr_in and sockaddr_in6.
const (
	offPort    = 2
	offAddr4   = 4
	offAddr6   = 8
	offScopeID = 24
)

// toSockaddr converts ap. The zero AddrPort becomes "no address". A zone may
// be an interface's name or its number.
func toSockaddr(ap netip.AddrPort) (sockaddr, error) {
	var sa sockaddr
	addr := ap.Addr()
	if !addr.IsValid() {
		return sa, nil
	}
	// ::ffff:192.0.2.1 is an IPv4 host to every part of the RDMA stack.
	addr = addr.Unmap()
	binary.BigEndian.PutUint16(sa[offPort:], ap.Port())
	if addr.Is4() {
		binary.NativeEndian.PutUint16(sa[:], unix.AF_INET)
		b := addr.As4()
		copy(sa[offAddr4:], b[:])
		return sa, nil
	}
	scope, err := scopeID(addr.Zone())
	if err != nil {
		return sa, err
	}
	binary.NativeEndian.PutUint16(sa[:], unix.AF_INET6)
	b := addr.As16()
	copy(sa[offAddr6:], b[:])
	binary.NativeEndian.PutUint32(sa[offScopeID:], scope)
	return sa, nil
}

// fromSockaddr converts what C wrote. An address family other than IP, and
// "no address", become the zero AddrPort.
func fromSockaddr(sa sockaddr) netip.AddrPort {
	port := binary.BigEndian.Uint16(sa[offPort:])
	switch binary.NativeEndian.Uint16(sa[:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(sa[offAddr4:])), port)
	case unix.AF_INET6:
		addr := netip.AddrFrom16([16]byte(sa[offAddr6:])).Unmap()
		if scope := binary.NativeEndian.Uint32(sa[offScopeID:]); addr.Is6() && scope != 0 {
			addr = addr.WithZone(zoneName(scope))
		}
		return netip.AddrPortFrom(addr, port)
	}
	return netip.AddrPort{}
}

// scopeID is the interface index that a zone stands for; 0 for no zone.
func scopeID(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	ifi, err := net.InterfaceByName(zone)
	if err == nil {
		return uint32(ifi.Index), nil
	}
	n, numErr := strconv.ParseUint(zone, 10, 32)
	if numErr != nil {
		return 0, &net.AddrError{Err: "no network interface is called", Addr: zone}
	}
	return uint32(n), nil
}

func zoneName(scope uint32) string {
	if ifi, err := net.InterfaceByIndex(int(scope)); err == nil {
		return ifi.Name
	}
	return strconv.FormatUint(uint64(scope), 10)
}

// sockaddrOf lays out whichever address there is, at its own length.
func sockaddrOf(ap netip.AddrPort, ib *IBAddr) ([]byte, error) {
	if ib != nil {
		sa := ib.sockaddr()
		return sa[:], nil
	}
	sa, err := toSockaddr(ap)
	switch {
	case err != nil || !ap.IsValid():
		return nil, err
	case ap.Addr().Unmap().Is4():
		return sa[:unix.SizeofSockaddrInet4], nil
	}
	return sa[:unix.SizeofSockaddrInet6], nil
}
