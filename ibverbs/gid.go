package ibverbs

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// GID is a global identifier: 16 bytes in network byte order, with the form of
// an IPv6 address. A RoCE v2 GID is an IPv6 address, or an IPv4 one mapped
// into IPv6.
type GID [16]byte

// Addr is the GID as an address, IPv4 where it is a mapped one.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// GIDFromAddr is the GID that stands for an address.
func GIDFromAddr(a netip.Addr) GID { return GID(a.As16()) }

// ParseGID reads a GID from a text of 32 hexadecimal digits in groups of four, as
// rdma(8) and sysfs print it and String gives it, or from an IP address.
func ParseGID(s string) (GID, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return GID{}, wrap("parse GID", "", hint(syscall.EINVAL, "%q is no GID", s))
	}
	return GIDFromAddr(addr), nil
}

// IsMulticast reports whether the GID is a multicast group's; see McastGID.
func (g GID) IsMulticast() bool { return g.Addr().IsMulticast() }

// IsZero reports an empty entry of a GID table.
func (g GID) IsZero() bool { return g == GID{} }

// String is the form that rdma(8) prints: "fe80:0000:0000:0000:5054:00ff:fe12:3456".
func (g GID) String() string { return netip.AddrFrom16(g).StringExpanded() }

// GIDEntry is an entry of a device's GID table (struct ibv_gid_entry).
type GIDEntry struct {
	GID         GID
	Port        int
	Index       int // within the port's table
	Type        GIDType
	NetdevIndex int // interface index of the netdev; 0 for none
}

// String reads "192.0.2.1 (RoCE v2, index 1, netdev 4)".
func (e GIDEntry) String() string {
	return fmt.Sprintf("%v (%v, index %d, netdev %d)", e.GID.Addr(), e.Type, e.Index, e.NetdevIndex)
}

// QueryGID reads one entry of a port's GID table: ibv_query_gid(3).
func (d *Device) QueryGID(port, index int) (GID, error) {
	var gid GID
	err := d.call("ibv_query_gid", func() error {
		number, err := d.portNumber(port)
		if err == nil {
			gid, err = queryGID(d.ctx, number, index)
		}
		return err
	})
	return gid, err
}

// GIDTable reads the valid entries of all ports' GID tables:
// ibv_query_gid_table(3).
//
// The table follows the netdev's addresses, a moment later: after an address
// was added its GID may still be missing.
func (d *Device) GIDTable() ([]GIDEntry, error) {
	var entries []GIDEntry
	err := d.call("ibv_query_gid_table", func() error {
		room, err := d.gidTableRoom()
		if err == nil {
			entries, err = queryGIDTable(d.ctx, room)
		}
		return err
	})
	return entries, err
}

// gidTableRoom is how many entries all ports can have.
func (d *Device) gidTableRoom() (int, error) {
	attr, err := d.limits()
	if err != nil {
		return 0, err
	}
	room := 0
	for port := 1; port <= attr.PhysPortCount; port++ {
		p, err := queryPort(d.ctx, uint8(port))
		if err != nil {
			return 0, err
		}
		room += p.GIDTableLen
	}
	return room, nil
}

// ChooseGID picks the entry of a GID table that a QP of a RoCE port should
// use to send from addr: same port, same type, the address's own GID. A fixed
// index is never right for long, since the table changes with the addresses.
//
// A port has the GIDs of its netdev and of those on top of it, such as VLANs,
// and several of them may have the same address: all link-local ones do.
// netdev, an interface index, says which one; 0 stands for the one that addr's
// zone names, or for the only one. If there are more, the error is ENOTUNIQ.
//
// EADDRNOTAVAIL means that there is no such entry, and the error says which
// ones the port has.
func ChooseGID(table []GIDEntry, port int, typ GIDType, addr netip.Addr, netdev int) (GIDEntry, error) {
	e, err := chooseGID(table, port, typ, addr, netdev)
	return e, wrap("choose GID", "", err)
}

func chooseGID(table []GIDEntry, port int, typ GIDType, addr netip.Addr, netdev int) (GIDEntry, error) {
	if !addr.IsValid() {
		return GIDEntry{}, hint(syscall.EINVAL, "no address")
	}
	if zone := addr.Zone(); zone != "" && netdev == 0 {
		ifi, err := net.InterfaceByName(zone)
		if err != nil {
			return GIDEntry{}, hint(syscall.ENODEV, "zone of %v: %v", addr, err)
		}
		netdev = ifi.Index
	}
	return findGID(table, port, typ, GIDFromAddr(addr.Unmap().WithZone("")), netdev)
}

func findGID(table []GIDEntry, port int, typ GIDType, want GID, netdev int) (GIDEntry, error) {
	var found, have []GIDEntry
	for _, e := range table {
		switch {
		case e.Port != port:
		case e.Type == typ && e.GID == want && (netdev == 0 || e.NetdevIndex == netdev):
			found = append(found, e)
		default:
			have = append(have, e)
		}
	}
	switch len(found) {
	case 0:
		on := ""
		if netdev != 0 {
			on = fmt.Sprintf(" on netdev %d", netdev)
		}
		return GIDEntry{}, hint(syscall.EADDRNOTAVAIL, "no %v GID for %v%s on port %d; it has %v", typ, want.Addr(), on, port, have)
	case 1:
		return found[0], nil
	}
	return GIDEntry{}, hint(syscall.ENOTUNIQ, "several netdevs have the GID: say which; %v", found)
}
