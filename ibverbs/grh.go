package ibverbs

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
)

// GRHSize is the room that a UD receive needs in front of its data, in bytes:
// for the global route header, or for what stands in its place.
const GRHSize = 40

// Next headers of a GRH.
const (
	NextHeaderUDP = 17   // RoCE v2
	NextHeaderIBA = 0x1b // InfiniBand and RoCE v1
)

// GRH is the global route header in front of a UD message (struct ibv_grh):
// InfiniBand's, which has the form of an IPv6 header; on RoCE v2 the message's
// IPv6 header; or its IPv4 header, which stands in the last 20 of the 40
// bytes.
type GRH struct {
	Version       uint8 // 6, or 4 where it is an IPv4 header
	TrafficClass  uint8 // DSCP and ECN bits; see DSCP
	FlowLabel     uint32
	PayloadLength uint16 // bytes behind the header, up to the end of the packet
	NextHeader    uint8  // NextHeaderUDP, NextHeaderIBA
	HopLimit      uint8  // what was left of it
	SGID          GID    // the sender's
	DGID          GID    // its destination: one's own, or a multicast group
}

// ParseGRH reads the 40 bytes in front of a UD message, if the completion has
// WCGRH; without, they hold nothing. It tells IPv4 from IPv6 as the kernel does:
// by the version, and by the IPv4 header's checksum where both have one. More
// bytes may follow. EINVAL means that it is no such header.
func ParseGRH(b []byte) (GRH, error) {
	g, err := parseGRH(b)
	return g, wrap("parse GRH", "", err)
}

func parseGRH(b []byte) (GRH, error) {
	if len(b) < GRHSize {
		return GRH{}, hint(syscall.EINVAL, "%d bytes of GRH: it has %d", len(b), GRHSize)
	}
	switch ip4 := b[20:GRHSize]; {
	case b[0]>>4 != 6 && ip4[0]>>4 == 4:
		return parseIPv4(ip4)
	case b[0]>>4 != 6:
		return GRH{}, hint(syscall.EINVAL, "neither a GRH nor an IPv4 header (version %d and %d)", b[0]>>4, ip4[0]>>4)
	case ip4[0] == ip4NoOptions && ipChecksum(ip4) == 0:
		return parseIPv4(ip4) // what comes before it is left over from something else
	}
	word := binary.BigEndian.Uint32(b)
	return GRH{
		Version:       6,
		TrafficClass:  uint8(word >> flowLabelBits),
		FlowLabel:     word & (1<<flowLabelBits - 1),
		PayloadLength: binary.BigEndian.Uint16(b[4:]),
		NextHeader:    b[6],
		HopLimit:      b[7],
		SGID:          GID(b[8:24]),
		DGID:          GID(b[24:40]),
	}, nil
}

// ip4NoOptions begins an IPv4 header of 20 bytes.
const ip4NoOptions = 4<<4 | 20/4

func parseIPv4(h []byte) (GRH, error) {
	length := binary.BigEndian.Uint16(h[2:])
	if h[0] != ip4NoOptions || length < 20 {
		return GRH{}, hint(syscall.EINVAL, "an IPv4 header of %d bytes in a packet of %d: RoCE v2 has no options", 4*(h[0]&0xf), length)
	}
	return GRH{
		Version:       4,
		TrafficClass:  h[1],
		PayloadLength: length - 20,
		HopLimit:      h[8],
		NextHeader:    h[9],
		SGID:          GIDFromAddr(netip.AddrFrom4([4]byte(h[12:16]))),
		DGID:          GIDFromAddr(netip.AddrFrom4([4]byte(h[16:20]))),
	}, nil
}

// ipChecksum is the checksum of an IPv4 header; 0 for one that holds the right
// checksum.
func ipChecksum(h []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(h); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// AppendBinary appends the header's 40 bytes to b; those of an IPv4 header
// begin with 20 zeros. Fields that the header has no room for give EINVAL.
func (g GRH) AppendBinary(b []byte) ([]byte, error) {
	if err := g.check(); err != nil {
		return b, wrap("append GRH", "", err)
	}
	if g.Version == 4 {
		return g.appendIPv4(b), nil
	}
	b = binary.BigEndian.AppendUint32(b, 6<<28|uint32(g.TrafficClass)<<flowLabelBits|g.FlowLabel)
	b = binary.BigEndian.AppendUint16(b, g.PayloadLength)
	b = append(b, g.NextHeader, g.HopLimit)
	return append(append(b, g.SGID[:]...), g.DGID[:]...), nil
}

func (g GRH) appendIPv4(b []byte) []byte {
	var h [20]byte
	h[0], h[1] = ip4NoOptions, g.TrafficClass
	binary.BigEndian.PutUint16(h[2:], g.PayloadLength+20)
	h[6] = 0x40 // don't fragment
	h[8], h[9] = g.HopLimit, g.NextHeader
	copy(h[12:], g.SGID[12:])
	copy(h[16:], g.DGID[12:])
	binary.BigEndian.PutUint16(h[10:], ipChecksum(h[:]))
	return append(append(b, make([]byte, 20)...), h[:]...)
}

func (g GRH) check() error {
	is4 := g.SGID.Addr().Is4() && g.DGID.Addr().Is4()
	switch {
	case g.Version != 4 && g.Version != 6:
		return hint(syscall.EINVAL, "there is no version %d", g.Version)
	case g.FlowLabel>>flowLabelBits != 0:
		return hint(syscall.EINVAL, "FlowLabel %#x: it has %d bits", g.FlowLabel, flowLabelBits)
	case g.Version == 4 && (!is4 || g.FlowLabel != 0 || g.PayloadLength > 0xffff-20):
		return hint(syscall.EINVAL, "an IPv4 header has IPv4 addresses, no flow label and at most %d bytes behind it", 0xffff-20)
	}
	return nil
}

// String reads "192.0.2.1 > 192.0.2.2 class 0x28 hops 64".
func (g GRH) String() string {
	s := fmt.Sprintf("%v > %v class %#02x hops %d", g.SGID.Addr(), g.DGID.Addr(), g.TrafficClass, g.HopLimit)
	if g.FlowLabel != 0 {
		s += fmt.Sprintf(" flow %#05x", g.FlowLabel)
	}
	return s
}

// checkAnswerable refuses what names no address to answer from.
func (g *GRH) checkAnswerable() error {
	if g.DGID.IsMulticast() {
		return hint(syscall.EINVAL, "it was sent to the multicast group %v: choose the GID to answer from (ChooseGID)", g.DGID.Addr())
	}
	if g.NextHeader != NextHeaderUDP && (g.Version == 4 || g.NextHeader != NextHeaderIBA) {
		return hint(syscall.EINVAL, "next header %d: neither RoCE nor InfiniBand", g.NextHeader)
	}
	return nil
}

// ReversePath gives the path back to the sender of a UD message, as
// Device.InitAHFromWC does, but from a GID table that the caller has read
// (Device.GIDTable) and without a system call. wc is the message's completion,
// which only InfiniBand needs: elsewhere it may be nil.
// The answer has the message's traffic class and flow label, and HopLimit 255:
// what is left of the message's need not be enough for the way back.
//
// Where several netdevs of the port have the GID that the message was sent to,
// the error is ENOTUNIQ: leave the others out of table. A message to a multicast
// group gives EINVAL.
func (g GRH) ReversePath(table []GIDEntry, port int, wc *WC) (AHAttr, error) {
	attr, err := g.reversePath(table, port, wc)
	return attr, wrap("reverse path", "", err)
}

func (g *GRH) reversePath(table []GIDEntry, port int, wc *WC) (AHAttr, error) {
	if err := g.checkAnswerable(); err != nil {
		return AHAttr{}, err
	}
	types := []GIDType{GIDTypeRoCEv2}
	if g.NextHeader == NextHeaderIBA {
		types = []GIDType{GIDTypeIB, GIDTypeRoCEv1}
	}
	var own GIDEntry
	var err error
	for _, typ := range types {
		if own, err = findGID(table, port, typ, g.DGID, 0); err == nil {
			break
		}
	}
	if err != nil {
		return AHAttr{}, err
	}
	if own.Index > 0xff {
		return AHAttr{}, hint(syscall.ERANGE, "the GID %v has the index %d: an AH can name the first 256", g.DGID.Addr(), own.Index)
	}
	attr := AHAttr{
		DGID: g.SGID, FlowLabel: g.FlowLabel, SGIDIndex: uint8(own.Index), HopLimit: 255, TrafficClass: g.TrafficClass,
		IsGlobal: true, Port: uint8(port),
	}
	if wc != nil {
		attr.DLID, attr.SL, attr.SrcPathBits = wc.SLID, wc.SL, wc.DLIDPathBits
	}
	return attr, nil
}
