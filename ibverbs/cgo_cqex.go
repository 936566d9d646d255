package ibverbs

// #cgo noescape gv_poll_cq_ex
// #cgo nocallback gv_poll_cq_ex
// #include "shim_cq.h"
import "C"

import "unsafe"

type cCQEx = C.struct_ibv_cq_ex

// The layouts are C's, or this does not compile.
const (
	_ = -(unsafe.Sizeof(WCEx{}) ^ C.sizeof_struct_gv_wc_ex)
	_ = -(unsafe.Offsetof(WCEx{}.CompletionTS) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.completion_ts))
	_ = -(unsafe.Offsetof(WCEx{}.CompletionWallclockNS) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.wallclock_ns))
	_ = -(unsafe.Offsetof(WCEx{}.TMTag) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.tm_tag))
	_ = -(unsafe.Offsetof(WCEx{}.Status) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.status))
	_ = -(unsafe.Offsetof(WCEx{}.Opcode) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.opcode))
	_ = -(unsafe.Offsetof(WCEx{}.VendorErr) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.vendor_err))
	_ = -(unsafe.Offsetof(WCEx{}.ByteLen) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.byte_len))
	_ = -(unsafe.Offsetof(WCEx{}.imm) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.imm))
	_ = -(unsafe.Offsetof(WCEx{}.QPN) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.qp_num))
	_ = -(unsafe.Offsetof(WCEx{}.SrcQP) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.src_qp))
	_ = -(unsafe.Offsetof(WCEx{}.Flags) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.flags))
	_ = -(unsafe.Offsetof(WCEx{}.SLID) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.slid))
	_ = -(unsafe.Offsetof(WCEx{}.FlowTag) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.flow_tag))
	_ = -(unsafe.Offsetof(WCEx{}.TMPriv) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.tm_priv))
	_ = -(unsafe.Offsetof(WCEx{}.CVLAN) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.cvlan))
	_ = -(unsafe.Offsetof(WCEx{}.SL) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.sl))
	_ = -(unsafe.Offsetof(WCEx{}.DLIDPathBits) ^ unsafe.Offsetof(C.struct_gv_wc_ex{}.dlid_path_bits))
)

// cqExAttrToC says with comp_mask which of the optional fields are set.
func cqExAttrToC(a *CQExInitAttr, ch *cCompChannel) C.struct_ibv_cq_init_attr_ex {
	c := C.struct_ibv_cq_init_attr_ex{
		cqe:         C.uint32_t(a.CQE),
		channel:     ch,
		comp_vector: C.uint32_t(a.CompVector),
		wc_flags:    C.uint64_t(a.Fields),
		flags:       C.uint32_t(a.Flags),
	}
	if a.Flags != 0 {
		c.comp_mask |= C.IBV_CQ_INIT_ATTR_MASK_FLAGS
	}
	if a.ParentDomain != nil {
		c.comp_mask |= C.IBV_CQ_INIT_ATTR_MASK_PD
		c.parent_domain = a.ParentDomain.pd
	}
	return c
}

func createCQEx(ctx *cContext, attr *C.struct_ibv_cq_init_attr_ex, id uintptr) (*cCQEx, error) {
	cq, errno := C.gv_create_cq_ex(ctx, attr, C.uintptr_t(id))
	return cq, nullErr(cq == nil, errno)
}

// cqExToCQ is ibv_cq_ex_to_cq: the structs begin alike.
func cqExToCQ(cq *cCQEx) *cCQ { return C.ibv_cq_ex_to_cq(cq) }

func pollCQEx(cq *cCQEx, fields WCExFlags, singly bool, wcs []WCEx) (int, error) {
	single := C.int(0)
	if singly {
		single = 1
	}
	n := C.gv_poll_cq_ex(cq, C.uint64_t(fields), single, C.int(len(wcs)), (*C.struct_gv_wc_ex)(unsafe.Pointer(&wcs[0])))
	if n < 0 {
		return 0, retErr(int(n), nil)
	}
	return int(n), nil
}

// resizeCQ returns the room that the CQ has now.
func resizeCQ(cq *cCQ, cqe int) (int, error) {
	ret, errno := C.ibv_resize_cq(cq, C.int(cqe))
	return int(cq.cqe), retErr(int(ret), errno)
}

func modifyCQ(cq *cCQ, m CQModeration) error {
	attr := moderationToC(m)
	ret, errno := C.gv_modify_cq(cq, &attr)
	return retErr(int(ret), errno)
}

func moderationToC(m CQModeration) C.struct_ibv_modify_cq_attr {
	return C.struct_ibv_modify_cq_attr{
		attr_mask: C.IBV_CQ_ATTR_MODERATE,
		moderate:  C.struct_ibv_moderate_cq{cq_count: C.uint16_t(m.Count), cq_period: C.uint16_t(m.Period)},
	}
}
