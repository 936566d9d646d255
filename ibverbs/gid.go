package ibverbs

import (
	"fmt"
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
// An error says which entries the port has.
func ChooseGID(table []GIDEntry, port int, typ GIDType, addr netip.Addr) (GIDEntry, error) {
	want := GIDFromAddr(addr.Unmap().WithZone(""))
	var have []string
	for _, e := range table {
		if e.Port != port {
			continue
		}
		if e.Type == typ && e.GID == want {
			return e, nil
		}
		have = append(have, fmt.Sprintf("%v (%v)", e.GID.Addr(), e.Type))
	}
	return GIDEntry{}, wrap("choose GID", "", hint(syscall.EADDRNOTAVAIL,
		"no %v GID for %v on port %d; it has %v", typ, addr, port, have))
}
