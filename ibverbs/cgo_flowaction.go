package ibverbs

// Flow actions and counters.

// #include "shim_flow.h"
// #include <stdlib.h>
import "C"

import (
	"syscall"
	"unsafe"
)

type cESP = C.struct_gv_esp

// specLayouts tells where in a spec the value is, and how long; the mask is
// behind it. Only what can stand before an ESP packet is here.
var specLayouts = map[FlowSpecType]struct{ at, size uintptr }{
	FlowSpecTypeEth:         {unsafe.Offsetof(C.struct_ibv_flow_spec_eth{}.val), C.sizeof_struct_ibv_flow_eth_filter},
	FlowSpecTypeIPv4:        {unsafe.Offsetof(C.struct_ibv_flow_spec_ipv4{}.val), C.sizeof_struct_ibv_flow_ipv4_filter},
	FlowSpecTypeIPv4Ext:     {unsafe.Offsetof(C.struct_ibv_flow_spec_ipv4_ext{}.val), C.sizeof_struct_ibv_flow_ipv4_ext_filter},
	FlowSpecTypeIPv6:        {unsafe.Offsetof(C.struct_ibv_flow_spec_ipv6{}.val), C.sizeof_struct_ibv_flow_ipv6_filter},
	FlowSpecTypeTCP:         {unsafe.Offsetof(C.struct_ibv_flow_spec_tcp_udp{}.val), C.sizeof_struct_ibv_flow_tcp_udp_filter},
	FlowSpecTypeUDP:         {unsafe.Offsetof(C.struct_ibv_flow_spec_tcp_udp{}.val), C.sizeof_struct_ibv_flow_tcp_udp_filter},
	FlowSpecTypeVXLANTunnel: {unsafe.Offsetof(C.struct_ibv_flow_spec_tunnel{}.val), C.sizeof_struct_ibv_flow_tunnel_filter},
	FlowSpecTypeGRE:         {unsafe.Offsetof(C.struct_ibv_flow_spec_gre{}.val), C.sizeof_struct_ibv_flow_gre_filter},
	FlowSpecTypeMPLS:        {unsafe.Offsetof(C.struct_ibv_flow_spec_mpls{}.val), C.sizeof_struct_ibv_flow_mpls_filter},
}

// espToC lays an ESP action's attributes out in C memory that the caller
// frees; they have been checked.
func espToC(a *FlowActionESPAttr) (*cESP, error) {
	size := C.sizeof_struct_gv_esp + len(a.Encap)*C.sizeof_struct_gv_esp_encap
	c := (*cESP)(C.calloc(1, C.size_t(size)))
	if a.Attr != nil {
		c.esp.spi, c.esp.seq, c.esp.tfc_pad = C.__u32(a.Attr.SPI), C.__u32(a.Attr.Seq), C.__u32(a.Attr.TFCPad)
		c.esp.flags = C.__u32(a.Attr.Flags)
		c.esp.hard_limit_pkts = C.__u64(a.Attr.HardLimitPkts)
		c.attr.esp_attr = &c.esp
	}
	if a.Keymat != nil {
		putKeymat(c, a.Keymat)
	}
	if a.Replay != nil {
		c.replay.size = C.__u32(a.Replay.Size)
		C.gv_esp_set_replay(c, C.uint32_t(a.Replay.Type))
	}
	if a.ESN != nil {
		c.attr.comp_mask |= C.IBV_FLOW_ACTION_ESP_MASK_ESN
		c.attr.esn = C.uint32_t(*a.ESN)
	}
	if err := putEncap(c, a.Encap); err != nil {
		C.gv_esp_free(c)
		return nil, err
	}
	return c, nil
}

func putKeymat(c *cESP, k *ESPAESGCM) {
	c.keymat.iv = C.__u64(k.IV)
	c.keymat.iv_algo = C.__u32(k.IVAlgo)
	c.keymat.salt = C.__u32(k.Salt)
	c.keymat.icv_len = C.__u32(k.ICVLen)
	c.keymat.key_len = C.__u32(len(k.Key))
	room := unsafe.Slice((*byte)(unsafe.Pointer(&c.keymat.aes_key)), unsafe.Sizeof(c.keymat.aes_key))
	copy(room, k.Key)
	C.gv_esp_set_keymat(c)
}

// putEncap lays out the headers, each with its spec's room for a mask.
func putEncap(c *cESP, specs []FlowSpec) error {
	list := unsafe.Add(unsafe.Pointer(c), C.sizeof_struct_gv_esp)
	for i, s := range specs {
		layout, ok := specLayouts[s.Type()]
		if !ok {
			return hint(syscall.EINVAL, "Encap spec %d: %v is no header before ESP", i, s.Type())
		}
		e := (*C.struct_gv_esp_encap)(unsafe.Add(list, i*C.sizeof_struct_gv_esp_encap))
		at := unsafe.Pointer(&e.spec)
		s.put(specAt(at))
		for _, b := range unsafe.Slice((*byte)(unsafe.Add(at, layout.at+layout.size)), layout.size) {
			if b != 0 {
				return hint(syscall.EINVAL, "Encap spec %d: there is nothing to match, and no Mask", i)
			}
		}
		C.gv_esp_link_encap(c, C.int(i), C.int(layout.at), C.int(layout.size))
	}
	return nil
}

func createFlowActionESP(ctx *cContext, attr *FlowActionESPAttr) (*cFlowAction, error) {
	c, err := espToC(attr)
	if err != nil {
		return nil, err
	}
	defer C.gv_esp_free(c)
	action, errno := C.gv_create_flow_action_esp(ctx, c)
	return action, nullErr(action == nil, errno)
}

func modifyFlowActionESP(action *cFlowAction, attr *FlowActionESPAttr) error {
	c, err := espToC(attr)
	if err != nil {
		return err
	}
	defer C.gv_esp_free(c)
	ret, errno := C.gv_modify_flow_action_esp(action, c)
	return retErr(int(ret), errno)
}

func destroyFlowAction(action *cFlowAction) error {
	ret, errno := C.gv_destroy_flow_action(action)
	return retErr(int(ret), errno)
}

func createCounters(ctx *cContext) (*cCounters, error) {
	c, errno := C.gv_create_counters(ctx)
	return c, nullErr(c == nil, errno)
}

func destroyCounters(c *cCounters) error {
	ret, errno := C.gv_destroy_counters(c)
	return retErr(int(ret), errno)
}

func counterAttachAttrToC(what CounterDescription, index uint32) C.struct_ibv_counter_attach_attr {
	return C.struct_ibv_counter_attach_attr{counter_desc: uint32(what), index: C.uint32_t(index)}
}

// attachCounters attaches to flows that will have the counters as an action
// where flow is nil.
func attachCounters(c *cCounters, what CounterDescription, index uint32, flow *cFlow) error {
	attr := counterAttachAttrToC(what, index)
	ret, errno := C.gv_attach_counters_point_flow(c, &attr, flow)
	return retErr(int(ret), errno)
}

// readCounters is given room for at least one value.
func readCounters(c *cCounters, values []uint64, flags ReadCountersFlags) error {
	ret, errno := C.gv_read_counters(c, (*C.uint64_t)(&values[0]), C.uint32_t(len(values)), C.uint32_t(flags))
	return retErr(int(ret), errno)
}
