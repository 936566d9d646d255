package ibverbs

// Flow rules: specs laid out one after the other in C memory.

// #include "shim_flow.h"
// #include <stdlib.h>
import "C"

import (
	"math/bits"
	"net/netip"
	"unsafe"
)

type (
	cFlow       = C.struct_ibv_flow
	cFlowAction = C.struct_ibv_flow_action
	cCounters   = C.struct_ibv_counters
)

// specAt is where a spec is laid out: zeroed C memory, on a multiple of 4. The
// gaps in C's structs must stay zero, since libibverbs takes some for fields
// of a newer version's; so fields are set one by one, and structs never copied.
type specAt unsafe.Pointer

// maxSpec is the size of the largest spec.
const maxSpec = C.sizeof_struct_ibv_flow_spec

// flowAttrToC lays a rule out in C memory, for freeFlowAttr.
func flowAttrToC(a *FlowAttr) *C.struct_ibv_flow_attr {
	const header = C.sizeof_struct_ibv_flow_attr
	mem := C.calloc(1, C.size_t(header+len(a.Specs)*maxSpec))
	size := header
	for _, s := range a.Specs {
		size += s.put(specAt(unsafe.Add(mem, size)))
	}
	c := (*C.struct_ibv_flow_attr)(mem)
	c._type = uint32(a.Type)
	c.size = C.uint16_t(size)
	c.priority = C.uint16_t(a.Priority)
	c.num_of_specs = C.uint8_t(len(a.Specs))
	c.port = C.uint8_t(a.Port)
	c.flags = C.uint32_t(a.Flags)
	return c
}

func freeFlowAttr(c *C.struct_ibv_flow_attr) { C.free(unsafe.Pointer(c)) }

func createFlow(qp *cQP, attr *FlowAttr) (*cFlow, error) {
	c := flowAttrToC(attr)
	defer freeFlowAttr(c)
	flow, errno := C.gv_create_flow(qp, c)
	return flow, nullErr(flow == nil, errno)
}

func flowNumber(flow *cFlow) uint32 { return uint32(flow.handle) }

func destroyFlow(flow *cFlow) error {
	ret, errno := C.gv_destroy_flow(flow)
	return retErr(int(ret), errno)
}

// be16 converts between host and network order.
func be16(v uint16) C.uint16_t {
	if hostLittleEndian {
		v = bits.ReverseBytes16(v)
	}
	return C.uint16_t(v)
}

// ip4 is an address in network order.
func ip4(a netip.Addr) C.uint32_t {
	if !a.IsValid() {
		return 0
	}
	b := a.Unmap().As4()
	return *(*C.uint32_t)(unsafe.Pointer(&b))
}

func putIP6(to *[16]C.uint8_t, a netip.Addr) {
	if !a.IsValid() {
		return
	}
	for i, b := range a.As16() {
		to[i] = C.uint8_t(b)
	}
}

func putMAC(to *[6]C.uint8_t, m MAC) {
	for i, b := range m {
		to[i] = C.uint8_t(b)
	}
}

// specHead sets what all specs begin with.
func specHead(at specAt, t FlowSpecType, size int) int {
	c := (*C.struct_gv_flow_spec_head)(at)
	c._type = C.uint32_t(t)
	c.size = C.uint16_t(size)
	return size
}

// specPointer sets the pointer of an action's spec. The spec may stand on an odd
// multiple of 4, where a pointer must not be.
func specPointer(at specAt, offset uintptr, p unsafe.Pointer) {
	*(*[unsafe.Sizeof(p)]byte)(unsafe.Add(unsafe.Pointer(at), offset)) = *(*[unsafe.Sizeof(p)]byte)(unsafe.Pointer(&p))
}

func (f *FlowEthFilter) put(c *C.struct_ibv_flow_eth_filter) {
	putMAC(&c.dst_mac, f.DstMAC)
	putMAC(&c.src_mac, f.SrcMAC)
	c.ether_type = be16(f.EtherType)
	c.vlan_tag = be16(f.VLANTag)
}

func (s FlowSpecEth) put(at specAt) int {
	c := (*C.struct_ibv_flow_spec_eth)(at)
	s.Val.put(&c.val)
	s.Mask.put(&c.mask)
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_eth)
}

func (f *FlowIPv4Filter) put(c *C.struct_ibv_flow_ipv4_filter) {
	c.src_ip, c.dst_ip = ip4(f.SrcIP), ip4(f.DstIP)
}

func (s FlowSpecIPv4) put(at specAt) int {
	c := (*C.struct_ibv_flow_spec_ipv4)(at)
	s.Val.put(&c.val)
	s.Mask.put(&c.mask)
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_ipv4)
}

func (f *FlowIPv4ExtFilter) put(c *C.struct_ibv_flow_ipv4_ext_filter) {
	c.src_ip, c.dst_ip = ip4(f.SrcIP), ip4(f.DstIP)
	c.proto = C.uint8_t(f.Proto)
	c.tos = C.uint8_t(f.TOS)
	c.ttl = C.uint8_t(f.TTL)
	c.flags = C.uint8_t(f.Flags)
}

func (s FlowSpecIPv4Ext) put(at specAt) int {
	c := (*C.struct_ibv_flow_spec_ipv4_ext)(at)
	s.Val.put(&c.val)
	s.Mask.put(&c.mask)
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_ipv4_ext)
}

func (f *FlowIPv6Filter) put(c *C.struct_ibv_flow_ipv6_filter) {
	putIP6(&c.src_ip, f.SrcIP)
	putIP6(&c.dst_ip, f.DstIP)
	c.flow_label = C.uint32_t(be32(f.FlowLabel))
	c.next_hdr = C.uint8_t(f.NextHdr)
	c.traffic_class = C.uint8_t(f.TrafficClass)
	c.hop_limit = C.uint8_t(f.HopLimit)
}

func (s FlowSpecIPv6) put(at specAt) int {
	c := (*C.struct_ibv_flow_spec_ipv6)(at)
	s.Val.put(&c.val)
	s.Mask.put(&c.mask)
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_ipv6)
}

func putPorts(at specAt, val, mask FlowTCPUDPFilter) {
	c := (*C.struct_ibv_flow_spec_tcp_udp)(at)
	c.val.dst_port, c.val.src_port = be16(val.DstPort), be16(val.SrcPort)
	c.mask.dst_port, c.mask.src_port = be16(mask.DstPort), be16(mask.SrcPort)
}

func (s FlowSpecTCP) put(at specAt) int {
	putPorts(at, s.Val, s.Mask)
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_tcp_udp)
}

func (s FlowSpecUDP) put(at specAt) int {
	putPorts(at, s.Val, s.Mask)
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_tcp_udp)
}

func (f *FlowESPFilter) put(c *C.struct_ibv_flow_esp_filter) {
	c.spi, c.seq = C.uint32_t(be32(f.SPI)), C.uint32_t(be32(f.Seq))
}

func (s FlowSpecESP) put(at specAt) int {
	c := (*C.struct_ibv_flow_spec_esp)(at)
	s.Val.put(&c.val)
	s.Mask.put(&c.mask)
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_esp)
}

func (s FlowSpecVXLANTunnel) put(at specAt) int {
	c := (*C.struct_ibv_flow_spec_tunnel)(at)
	c.val.tunnel_id = C.uint32_t(be32(s.Val.TunnelID))
	c.mask.tunnel_id = C.uint32_t(be32(s.Mask.TunnelID))
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_tunnel)
}

func (f *FlowGREFilter) put(c *C.struct_ibv_flow_gre_filter) {
	c.c_ks_res0_ver = be16(f.CKSRes0Ver)
	c.protocol = be16(f.Protocol)
	c.key = C.uint32_t(be32(f.Key))
}

func (s FlowSpecGRE) put(at specAt) int {
	c := (*C.struct_ibv_flow_spec_gre)(at)
	s.Val.put(&c.val)
	s.Mask.put(&c.mask)
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_gre)
}

func (s FlowSpecMPLS) put(at specAt) int {
	c := (*C.struct_ibv_flow_spec_mpls)(at)
	c.val.label = C.uint32_t(be32(s.Val.Label))
	c.mask.label = C.uint32_t(be32(s.Mask.Label))
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_mpls)
}

func (s FlowSpecActionTag) put(at specAt) int {
	(*C.struct_ibv_flow_spec_action_tag)(at).tag_id = C.uint32_t(s.TagID) // host order
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_action_tag)
}

func (s FlowSpecActionDrop) put(at specAt) int {
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_action_drop)
}

func (s FlowSpecActionHandle) put(at specAt) int {
	specPointer(at, unsafe.Offsetof(C.struct_ibv_flow_spec_action_handle{}.action), unsafe.Pointer(s.Action.action))
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_action_handle)
}

func (s FlowSpecActionCount) put(at specAt) int {
	specPointer(at, unsafe.Offsetof(C.struct_ibv_flow_spec_counter_action{}.counters), unsafe.Pointer(s.Counters.counters))
	return specHead(at, s.Type(), C.sizeof_struct_ibv_flow_spec_counter_action)
}
