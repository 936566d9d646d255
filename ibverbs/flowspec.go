package ibverbs

import (
	"fmt"
	"net/netip"
	"syscall"
)

// FlowSpec is a part of a flow rule: what one of a packet's headers must look
// like, or what is to be done with the packet. FlowSpecEth and its kin are
// FlowSpecs.
//
// A header matches where all bits that Mask has are as in Val. Most devices
// only take masks that have all bits of a field, or none. Numbers are in host
// byte order. Inner says that the header is that of the packet within a tunnel.
type FlowSpec interface {
	// Type is the kind, with FlowSpecTypeInner where that is set.
	Type() FlowSpecType

	check() error
	put(specAt) int // in cgo_flow.go: lays it out in C memory, and returns its size
}

// MAC is an Ethernet address.
type MAC [6]byte

// String is the usual form: "52:54:00:12:34:56".
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// FlowEthFilter are an Ethernet header's fields (struct ibv_flow_eth_filter).
type FlowEthFilter struct {
	DstMAC    MAC
	SrcMAC    MAC
	EtherType uint16 // what follows the last VLAN tag
	VLANTag   uint16 // priority 3 bits, CFI 1 bit, VLAN ID 12 bits
}

// FlowSpecEth matches an Ethernet header.
type FlowSpecEth struct {
	Val, Mask FlowEthFilter
	Inner     bool
}

// FlowIPv4Filter are an IPv4 header's addresses (struct ibv_flow_ipv4_filter).
// The zero Addr is 0.0.0.0; FlowMask makes masks.
type FlowIPv4Filter struct {
	SrcIP, DstIP netip.Addr
}

// FlowSpecIPv4 matches an IPv4 header.
type FlowSpecIPv4 struct {
	Val, Mask FlowIPv4Filter
	Inner     bool
}

// FlowIPv4ExtFilter are an IPv4 header's fields (struct
// ibv_flow_ipv4_ext_filter).
type FlowIPv4ExtFilter struct {
	SrcIP, DstIP netip.Addr
	Proto        uint8
	TOS          uint8
	TTL          uint8
	Flags        uint8 // 2 don't fragment, 4 more fragments
}

// FlowSpecIPv4Ext matches an IPv4 header, with more of its fields.
type FlowSpecIPv4Ext struct {
	Val, Mask FlowIPv4ExtFilter
	Inner     bool
}

// FlowIPv6Filter are an IPv6 header's fields (struct ibv_flow_ipv6_filter).
type FlowIPv6Filter struct {
	SrcIP, DstIP netip.Addr
	FlowLabel    uint32 // 20 bits
	NextHdr      uint8
	TrafficClass uint8
	HopLimit     uint8
}

// FlowSpecIPv6 matches an IPv6 header.
type FlowSpecIPv6 struct {
	Val, Mask FlowIPv6Filter
	Inner     bool
}

// FlowTCPUDPFilter are a TCP or UDP header's ports (struct
// ibv_flow_tcp_udp_filter).
type FlowTCPUDPFilter struct {
	DstPort, SrcPort uint16
}

// FlowSpecTCP matches a TCP header.
type FlowSpecTCP struct {
	Val, Mask FlowTCPUDPFilter
	Inner     bool
}

// FlowSpecUDP matches a UDP header.
type FlowSpecUDP struct {
	Val, Mask FlowTCPUDPFilter
	Inner     bool
}

// FlowESPFilter are an ESP header's fields (struct ibv_flow_esp_filter).
type FlowESPFilter struct {
	SPI, Seq uint32
}

// FlowSpecESP matches an ESP (IPsec) header.
type FlowSpecESP struct {
	Val, Mask FlowESPFilter
	Inner     bool
}

// FlowTunnelFilter is a VXLAN header's field (struct ibv_flow_tunnel_filter).
type FlowTunnelFilter struct {
	TunnelID uint32 // the VNI, 24 bits
}

// FlowSpecVXLANTunnel matches a VXLAN header: what is in the tunnel are the
// specs with Inner.
type FlowSpecVXLANTunnel struct {
	Val, Mask FlowTunnelFilter
}

// FlowGREFilter are a GRE header's fields (struct ibv_flow_gre_filter).
type FlowGREFilter struct {
	CKSRes0Ver uint16 // the header's first 16 bits: 1<<15 checksum, 1<<13 key, 1<<12 sequence number present; version in the lowest 3
	Protocol   uint16
	Key        uint32
}

// FlowSpecGRE matches a GRE header: what is in the tunnel are the specs with
// Inner.
type FlowSpecGRE struct {
	Val, Mask FlowGREFilter
}

// FlowMPLSFilter is an MPLS label (struct ibv_flow_mpls_filter).
type FlowMPLSFilter struct {
	Label uint32 // label<<12, traffic class<<9, bottom of stack<<8, TTL
}

// FlowSpecMPLS matches an MPLS label. In a rule with one, the specs stand in
// the order of the headers.
type FlowSpecMPLS struct {
	Val, Mask FlowMPLSFilter
	Inner     bool
}

// FlowSpecActionTag gives the packet's completion a tag (WCEx.FlowTag).
type FlowSpecActionTag struct {
	TagID uint32 // 24 bits on some devices
}

// FlowSpecActionDrop drops the packet.
type FlowSpecActionDrop struct{}

// FlowSpecActionHandle carries an action out: decryption, say.
type FlowSpecActionHandle struct {
	Action *FlowAction
}

// FlowSpecActionCount counts the packet (struct
// ibv_flow_spec_counter_action).
type FlowSpecActionCount struct {
	Counters *Counters
}

func inner(t FlowSpecType, is bool) FlowSpecType {
	if is {
		return t | FlowSpecTypeInner
	}
	return t
}

// Type is FlowSpecTypeEth, perhaps with FlowSpecTypeInner.
func (s FlowSpecEth) Type() FlowSpecType { return inner(FlowSpecTypeEth, s.Inner) }

// Type is FlowSpecTypeIPv4, perhaps with FlowSpecTypeInner.
func (s FlowSpecIPv4) Type() FlowSpecType { return inner(FlowSpecTypeIPv4, s.Inner) }

// Type is FlowSpecTypeIPv4Ext, perhaps with FlowSpecTypeInner.
func (s FlowSpecIPv4Ext) Type() FlowSpecType { return inner(FlowSpecTypeIPv4Ext, s.Inner) }

// Type is FlowSpecTypeIPv6, perhaps with FlowSpecTypeInner.
func (s FlowSpecIPv6) Type() FlowSpecType { return inner(FlowSpecTypeIPv6, s.Inner) }

// Type is FlowSpecTypeTCP, perhaps with FlowSpecTypeInner.
func (s FlowSpecTCP) Type() FlowSpecType { return inner(FlowSpecTypeTCP, s.Inner) }

// Type is FlowSpecTypeUDP, perhaps with FlowSpecTypeInner.
func (s FlowSpecUDP) Type() FlowSpecType { return inner(FlowSpecTypeUDP, s.Inner) }

// Type is FlowSpecTypeESP, perhaps with FlowSpecTypeInner.
func (s FlowSpecESP) Type() FlowSpecType { return inner(FlowSpecTypeESP, s.Inner) }

// Type is FlowSpecTypeVXLANTunnel.
func (s FlowSpecVXLANTunnel) Type() FlowSpecType { return FlowSpecTypeVXLANTunnel }

// Type is FlowSpecTypeGRE.
func (s FlowSpecGRE) Type() FlowSpecType { return FlowSpecTypeGRE }

// Type is FlowSpecTypeMPLS, perhaps with FlowSpecTypeInner.
func (s FlowSpecMPLS) Type() FlowSpecType { return inner(FlowSpecTypeMPLS, s.Inner) }

// Type is FlowSpecTypeActionTag.
func (s FlowSpecActionTag) Type() FlowSpecType { return FlowSpecTypeActionTag }

// Type is FlowSpecTypeActionDrop.
func (s FlowSpecActionDrop) Type() FlowSpecType { return FlowSpecTypeActionDrop }

// Type is FlowSpecTypeActionHandle.
func (s FlowSpecActionHandle) Type() FlowSpecType { return FlowSpecTypeActionHandle }

// Type is FlowSpecTypeActionCount.
func (s FlowSpecActionCount) Type() FlowSpecType { return FlowSpecTypeActionCount }

// FlowMask is a netmask as an address: that of prefix. A filter's Val is
// prefix.Addr(), its Mask FlowMask(prefix).
func FlowMask(prefix netip.Prefix) netip.Addr {
	ones := netip.IPv6Unspecified()
	if prefix.Addr().Is4() {
		ones = netip.IPv4Unspecified()
	}
	b := ones.AsSlice()
	for i := range prefix.Bits() {
		b[i/8] |= 0x80 >> (i % 8)
	}
	mask, _ := netip.AddrFromSlice(b)
	return mask
}

// is4 and is6 see that the addresses of a spec are of its family, and
// complete: a zone can't be matched.
func is4(addrs ...netip.Addr) error {
	for _, a := range addrs {
		if a.IsValid() && !a.Unmap().Is4() {
			return hint(syscall.EINVAL, "%v is no IPv4 address", a)
		}
	}
	return nil
}

func is6(addrs ...netip.Addr) error {
	for _, a := range addrs {
		if a.IsValid() && (!a.Is6() || a.Zone() != "") {
			return hint(syscall.EINVAL, "%v is no IPv6 address without a zone", a)
		}
	}
	return nil
}

func (s FlowSpecIPv4) check() error {
	return is4(s.Val.SrcIP, s.Val.DstIP, s.Mask.SrcIP, s.Mask.DstIP)
}

func (s FlowSpecIPv4Ext) check() error {
	return is4(s.Val.SrcIP, s.Val.DstIP, s.Mask.SrcIP, s.Mask.DstIP)
}

func (s FlowSpecIPv6) check() error {
	if over := max(s.Val.FlowLabel, s.Mask.FlowLabel); over >= 1<<20 {
		return hint(syscall.EINVAL, "flow label %#x: there are 20 bits", over)
	}
	return is6(s.Val.SrcIP, s.Val.DstIP, s.Mask.SrcIP, s.Mask.DstIP)
}

func (s FlowSpecVXLANTunnel) check() error {
	if over := max(s.Val.TunnelID, s.Mask.TunnelID); over >= 1<<24 {
		return hint(syscall.EINVAL, "VNI %#x: there are 24 bits", over)
	}
	return nil
}

func (s FlowSpecActionHandle) check() error {
	if s.Action == nil || s.Action.action == nil {
		return hint(syscall.EINVAL, "no Action")
	}
	return nil
}

func (s FlowSpecActionCount) check() error {
	if s.Counters == nil || s.Counters.counters == nil {
		return hint(syscall.EINVAL, "no Counters")
	}
	return nil
}

func (s FlowSpecEth) check() error        { return nil }
func (s FlowSpecTCP) check() error        { return nil }
func (s FlowSpecUDP) check() error        { return nil }
func (s FlowSpecESP) check() error        { return nil }
func (s FlowSpecGRE) check() error        { return nil }
func (s FlowSpecMPLS) check() error       { return nil }
func (s FlowSpecActionTag) check() error  { return nil }
func (s FlowSpecActionDrop) check() error { return nil }
