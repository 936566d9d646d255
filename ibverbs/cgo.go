package ibverbs

// #cgo pkg-config: libibverbs
// #cgo CFLAGS: -Wall -Wextra -Wno-unused-parameter
// #include "shim.h"
import "C"

import (
	"bytes"
	"unsafe"

	"github.com/goverbs/goverbs/internal/bridge"
)

// The C objects, named so that files without cgo can hold them.
type (
	cContext     = C.struct_ibv_context
	cPD          = C.struct_ibv_pd
	cMR          = C.struct_ibv_mr
	cCompChannel = C.struct_ibv_comp_channel
	cCQ          = C.struct_ibv_cq
	cQP          = C.struct_ibv_qp
)

func init() {
	bridge.QPAttrFromC = func(attr unsafe.Pointer) any {
		return qpAttrFromC((*C.struct_ibv_qp_attr)(attr))
	}
	bridge.AHAttrFromC = func(attr unsafe.Pointer) any {
		return ahAttrFromC((*C.struct_ibv_ah_attr)(attr))
	}
	bridge.LendDevice = func(ctx unsafe.Pointer) any {
		c := (*cContext)(ctx)
		d := newDevice(c, deviceInfoFromC(c.device))
		d.lent = true
		return d
	}
	bridge.CreateQP = func(pd, attr any, maker bridge.Maker) (any, error) {
		return pd.(*PD).createQP(attr.(QPInitAttr), &maker)
	}
	bridge.CreateSRQ = func(pd, attr any, maker bridge.Maker) (any, error) {
		return pd.(*PD).createSRQ(attr.(SRQInitAttr), &maker)
	}
	bridge.QPMoved = func(qp, attr, mask any) {
		q, a, m := qp.(*QP), attr.(QPAttr), mask.(QPAttrMask)
		q.noteModified(&a, m)
		q.modified(&a, m)
	}
	bridge.SetReadDepth = func(qp any, depth uint8) {
		qp.(*QP).readDepth.Store(int32(depth))
	}
}

func deviceAttrFromC(a *C.struct_ibv_device_attr) DeviceAttr {
	return DeviceAttr{
		FWVer:           fromChars(a.fw_ver[:]),
		NodeGUID:        guidFromC(a.node_guid),
		SysImageGUID:    guidFromC(a.sys_image_guid),
		MaxMRSize:       uint64(a.max_mr_size),
		PageSizeCap:     uint64(a.page_size_cap),
		VendorID:        uint32(a.vendor_id),
		VendorPartID:    uint32(a.vendor_part_id),
		HWVer:           uint32(a.hw_ver),
		MaxQP:           int(a.max_qp),
		MaxQPWR:         int(a.max_qp_wr),
		CapFlags:        DeviceCapFlags(a.device_cap_flags),
		MaxSGE:          int(a.max_sge),
		MaxSGERD:        int(a.max_sge_rd),
		MaxCQ:           int(a.max_cq),
		MaxCQE:          int(a.max_cqe),
		MaxMR:           int(a.max_mr),
		MaxPD:           int(a.max_pd),
		MaxQPRDAtom:     int(a.max_qp_rd_atom),
		MaxResRDAtom:    int(a.max_res_rd_atom),
		MaxQPInitRDAtom: int(a.max_qp_init_rd_atom),
		AtomicCap:       AtomicCap(a.atomic_cap),
		MaxMW:           int(a.max_mw),
		MaxMcastGrp:     int(a.max_mcast_grp),
		MaxMcastQPs:     int(a.max_mcast_qp_attach),
		MaxAH:           int(a.max_ah),
		MaxSRQ:          int(a.max_srq),
		MaxSRQWR:        int(a.max_srq_wr),
		MaxSRQSGE:       int(a.max_srq_sge),
		MaxPKeys:        int(a.max_pkeys),
		LocalACKDelay:   uint8(a.local_ca_ack_delay),
		PhysPortCount:   int(a.phys_port_cnt),
	}
}

func portAttrFromC(a *C.struct_ibv_port_attr) PortAttr {
	return PortAttr{
		State:         PortState(a.state),
		MaxMTU:        MTU(a.max_mtu),
		ActiveMTU:     MTU(a.active_mtu),
		GIDTableLen:   int(a.gid_tbl_len),
		CapFlags:      PortCapFlags(a.port_cap_flags),
		CapFlags2:     PortCapFlags2(a.port_cap_flags2),
		MaxMsgSize:    uint32(a.max_msg_sz),
		BadPKeyCntr:   uint32(a.bad_pkey_cntr),
		QKeyViolCntr:  uint32(a.qkey_viol_cntr),
		PKeyTableLen:  int(a.pkey_tbl_len),
		LID:           uint16(a.lid),
		SMLID:         uint16(a.sm_lid),
		LMC:           uint8(a.lmc),
		MaxVLNum:      uint8(a.max_vl_num),
		SMSL:          uint8(a.sm_sl),
		SubnetTimeout: uint8(a.subnet_timeout),
		InitTypeReply: uint8(a.init_type_reply),
		ActiveWidth:   PortWidth(a.active_width),
		ActiveSpeed:   PortSpeed(a.active_speed),
		PhysState:     PhysState(a.phys_state),
		LinkLayer:     LinkLayer(a.link_layer),
		Flags:         uint8(a.flags),
	}
}

func gidEntryFromC(e *C.struct_ibv_gid_entry) GIDEntry {
	return GIDEntry{
		GID:         gidFromC(&e.gid),
		Port:        int(e.port_num),
		Index:       int(e.gid_index),
		Type:        GIDType(e.gid_type),
		NetdevIndex: int(e.ndev_ifindex),
	}
}

// fromChars reads a string that ends at a zero byte, or where its room does.
func fromChars(c []C.char) string {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&c[0])), len(c))
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}

// gidFromC copies the 16 bytes, which are in network order already.
func gidFromC(g *C.union_ibv_gid) GID { return GID(*g) }

func gidToC(g GID) C.union_ibv_gid { return C.union_ibv_gid(g) }

// guidFromC keeps the bytes in the order in which they stand in memory:
// network order.
func guidFromC(g C.__be64) GUID { return *(*GUID)(unsafe.Pointer(&g)) }

func qpAttrFromC(a *C.struct_ibv_qp_attr) QPAttr {
	return QPAttr{
		State:            QPState(a.qp_state),
		CurState:         QPState(a.cur_qp_state),
		PathMTU:          MTU(a.path_mtu),
		PathMigState:     MigState(a.path_mig_state),
		QKey:             uint32(a.qkey),
		RQPSN:            uint32(a.rq_psn),
		SQPSN:            uint32(a.sq_psn),
		DestQPN:          uint32(a.dest_qp_num),
		AccessFlags:      Access(a.qp_access_flags),
		Cap:              qpCapFromC(&a.cap),
		AH:               ahAttrFromC(&a.ah_attr),
		AltAH:            ahAttrFromC(&a.alt_ah_attr),
		PKeyIndex:        uint16(a.pkey_index),
		AltPKeyIndex:     uint16(a.alt_pkey_index),
		EnSQDAsyncNotify: a.en_sqd_async_notify != 0,
		SQDraining:       a.sq_draining != 0,
		MaxQPRDAtomic:    uint8(a.max_rd_atomic),
		MaxDestRDAtomic:  uint8(a.max_dest_rd_atomic),
		MinRNRTimer:      uint8(a.min_rnr_timer),
		Port:             uint8(a.port_num),
		Timeout:          uint8(a.timeout),
		RetryCnt:         uint8(a.retry_cnt),
		RNRRetry:         uint8(a.rnr_retry),
		AltPort:          uint8(a.alt_port_num),
		AltTimeout:       uint8(a.alt_timeout),
		RateLimit:        uint32(a.rate_limit),
	}
}

func qpAttrToC(a *QPAttr) C.struct_ibv_qp_attr {
	return C.struct_ibv_qp_attr{
		qp_state:            uint32(a.State),
		cur_qp_state:        uint32(a.CurState),
		path_mtu:            uint32(a.PathMTU),
		path_mig_state:      uint32(a.PathMigState),
		qkey:                C.uint32_t(a.QKey),
		rq_psn:              C.uint32_t(a.RQPSN),
		sq_psn:              C.uint32_t(a.SQPSN),
		dest_qp_num:         C.uint32_t(a.DestQPN),
		qp_access_flags:     C.uint(a.AccessFlags),
		cap:                 qpCapToC(a.Cap),
		ah_attr:             ahAttrToC(&a.AH),
		alt_ah_attr:         ahAttrToC(&a.AltAH),
		pkey_index:          C.uint16_t(a.PKeyIndex),
		alt_pkey_index:      C.uint16_t(a.AltPKeyIndex),
		en_sqd_async_notify: boolToC(a.EnSQDAsyncNotify),
		sq_draining:         boolToC(a.SQDraining),
		max_rd_atomic:       C.uint8_t(a.MaxQPRDAtomic),
		max_dest_rd_atomic:  C.uint8_t(a.MaxDestRDAtomic),
		min_rnr_timer:       C.uint8_t(a.MinRNRTimer),
		port_num:            C.uint8_t(a.Port),
		timeout:             C.uint8_t(a.Timeout),
		retry_cnt:           C.uint8_t(a.RetryCnt),
		rnr_retry:           C.uint8_t(a.RNRRetry),
		alt_port_num:        C.uint8_t(a.AltPort),
		alt_timeout:         C.uint8_t(a.AltTimeout),
		rate_limit:          C.uint32_t(a.RateLimit),
	}
}

func boolToC(b bool) C.uint8_t {
	if b {
		return 1
	}
	return 0
}

func qpCapFromC(c *C.struct_ibv_qp_cap) QPCap {
	return QPCap{
		MaxSendWR:     uint32(c.max_send_wr),
		MaxRecvWR:     uint32(c.max_recv_wr),
		MaxSendSGE:    uint32(c.max_send_sge),
		MaxRecvSGE:    uint32(c.max_recv_sge),
		MaxInlineData: uint32(c.max_inline_data),
	}
}

func qpCapToC(c QPCap) C.struct_ibv_qp_cap {
	return C.struct_ibv_qp_cap{
		max_send_wr:     C.uint32_t(c.MaxSendWR),
		max_recv_wr:     C.uint32_t(c.MaxRecvWR),
		max_send_sge:    C.uint32_t(c.MaxSendSGE),
		max_recv_sge:    C.uint32_t(c.MaxRecvSGE),
		max_inline_data: C.uint32_t(c.MaxInlineData),
	}
}

func ahAttrFromC(a *C.struct_ibv_ah_attr) AHAttr {
	return AHAttr{
		DGID:         gidFromC(&a.grh.dgid),
		FlowLabel:    uint32(a.grh.flow_label),
		SGIDIndex:    uint8(a.grh.sgid_index),
		HopLimit:     uint8(a.grh.hop_limit),
		TrafficClass: uint8(a.grh.traffic_class),
		DLID:         uint16(a.dlid),
		SL:           uint8(a.sl),
		SrcPathBits:  uint8(a.src_path_bits),
		StaticRate:   uint8(a.static_rate),
		IsGlobal:     a.is_global != 0,
		Port:         uint8(a.port_num),
	}
}

func ahAttrToC(a *AHAttr) C.struct_ibv_ah_attr {
	return C.struct_ibv_ah_attr{
		grh: C.struct_ibv_global_route{
			dgid:          gidToC(a.DGID),
			flow_label:    C.uint32_t(a.FlowLabel),
			sgid_index:    C.uint8_t(a.SGIDIndex),
			hop_limit:     C.uint8_t(a.HopLimit),
			traffic_class: C.uint8_t(a.TrafficClass),
		},
		dlid:          C.uint16_t(a.DLID),
		sl:            C.uint8_t(a.SL),
		src_path_bits: C.uint8_t(a.SrcPathBits),
		static_rate:   C.uint8_t(a.StaticRate),
		is_global:     boolToC(a.IsGlobal),
		port_num:      C.uint8_t(a.Port),
	}
}
