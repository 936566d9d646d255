package rnic

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// GUID is a 64-bit EUI of a node, port or system image, in network byte order.
// The zero GUID means that there is none. GUIDs compare with ==.
type GUID [8]byte

// ParseGUID reads the form of sysfs and ibv_devinfo(1), four groups of four
// hexadecimal digits: "5054:00ff:fe12:3456".
func ParseGUID(s string) (GUID, error) {
	var g GUID
	if err := parseGroups(g[:], s); err != nil {
		return GUID{}, fmt.Errorf("GUID %.60q: %w", s, err)
	}
	return g, nil
}

// guidFromUint64 converts RDMA netlink's form, a number in host order.
func guidFromUint64(v uint64) (g GUID) {
	binary.BigEndian.PutUint64(g[:], v)
	return g
}

// IsZero reports whether g is unset.
func (g GUID) IsZero() bool { return g == GUID{} }

// String is the form that ParseGUID reads.
func (g GUID) String() string { return formatGroups(g[:]) }

// MarshalText is String.
func (g GUID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText is ParseGUID.
func (g *GUID) UnmarshalText(b []byte) (err error) {
	*g, err = ParseGUID(string(b))
	return err
}

// GID is a 128-bit port address, in network byte order: an IPv6 address, an
// IPv4 address mapped into one, or (iWARP) the MAC in its first six bytes.
// The zero GID is an empty table entry. GIDs compare with ==.
type GID [16]byte

// ParseGID reads the form of sysfs, eight groups of four hexadecimal digits.
func ParseGID(s string) (GID, error) {
	var g GID
	if err := parseGroups(g[:], s); err != nil {
		return GID{}, fmt.Errorf("GID %.60q: %w", s, err)
	}
	return g, nil
}

// GIDFromAddr is the GID that RoCE gives to an IP address.
func GIDFromAddr(a netip.Addr) GID { return a.As16() }

// IsZero reports whether g is an empty entry.
func (g GID) IsZero() bool { return g == GID{} }

// Addr is the IP address behind the GID; IPv4 comes unmapped. It means
// something for RoCE and InfiniBand only.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// String is the form of sysfs, in full: GIDs in logs and in `rdma` and
// `ibv_devinfo` output must be found with one grep.
func (g GID) String() string { return formatGroups(g[:]) }

// MarshalText is String.
func (g GID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText is ParseGID.
func (g *GID) UnmarshalText(b []byte) (err error) {
	*g, err = ParseGID(string(b))
	return err
}

func parseGroups(dst []byte, s string) error {
	groups := strings.Split(s, ":")
	if len(groups) != len(dst)/2 {
		return fmt.Errorf("want %d groups of four hexadecimal digits", len(dst)/2)
	}
	for i, g := range groups {
		if len(g) != 4 {
			return fmt.Errorf("group %d is not four hexadecimal digits", i+1)
		}
		if _, err := hex.Decode(dst[2*i:], []byte(g)); err != nil {
			return fmt.Errorf("group %d: %w", i+1, err)
		}
	}
	return nil
}

func formatGroups(b []byte) string {
	var s strings.Builder
	for i := 0; i < len(b); i += 2 {
		if i > 0 {
			s.WriteByte(':')
		}
		fmt.Fprintf(&s, "%02x%02x", b[i], b[i+1])
	}
	return s.String()
}
