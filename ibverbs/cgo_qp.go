package ibverbs

// QPs beyond ibv_create_qp: extended creation, and calls that few providers
// have.

// #include "shim_qp.h"
// #include "shim_wr.h"
// #include <stdlib.h>
import "C"

import (
	"sync"
	"syscall"
	"unsafe"

	"github.com/goverbs/goverbs/internal/bridge"
	"github.com/goverbs/goverbs/internal/gate"
)

type (
	cQPEx       = C.struct_ibv_qp_ex
	cQPInitAttr = C.struct_ibv_qp_init_attr_ex
)

// qpInitAttrToC converts all but the objects, which are not plain values.
func qpInitAttrToC(attr *QPInitAttr) cQPInitAttr {
	c := cQPInitAttr{
		cap:       qpCapToC(attr.Cap),
		qp_type:   uint32(attr.Type),
		comp_mask: C.IBV_QP_INIT_ATTR_PD,
	}
	if attr.SigAll {
		c.sq_sig_all = 1
	}
	if attr.SendOps != 0 {
		c.comp_mask |= C.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
		c.send_ops_flags = C.uint64_t(attr.SendOps)
	}
	if attr.MaxTSOHeader != 0 {
		c.comp_mask |= C.IBV_QP_INIT_ATTR_MAX_TSO_HEADER
		c.max_tso_header = C.uint16_t(attr.MaxTSOHeader)
	}
	c.create_flags = C.uint32_t(attr.CreateFlags)
	if attr.SourceQPN != 0 {
		c.create_flags |= C.IBV_QP_CREATE_SOURCE_QPN
		c.source_qpn = C.uint32_t(attr.SourceQPN)
	}
	if c.create_flags != 0 {
		c.comp_mask |= C.IBV_QP_INIT_ATTR_CREATE_FLAGS
	}
	return c
}

// qpInitAttrFromC is the way back.
func qpInitAttrFromC(c *cQPInitAttr) QPInitAttr {
	attr := QPInitAttr{
		Type:   QPType(c.qp_type),
		Cap:    qpCapFromC(&c.cap),
		SigAll: c.sq_sig_all != 0,
	}
	if c.comp_mask&C.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS != 0 {
		attr.SendOps = SendOps(c.send_ops_flags)
	}
	if c.comp_mask&C.IBV_QP_INIT_ATTR_CREATE_FLAGS != 0 {
		attr.CreateFlags = QPCreateFlags(c.create_flags)
		if attr.CreateFlags&QPCreateSourceQPN != 0 {
			attr.SourceQPN = uint32(c.source_qpn)
		}
	}
	if c.comp_mask&C.IBV_QP_INIT_ATTR_MAX_TSO_HEADER != 0 {
		attr.MaxTSOHeader = uint16(c.max_tso_header)
	}
	return attr
}

// createQP fills in the objects. The struct is C memory, since it points to
// them.
func createQP(pd *cPD, attr *QPInitAttr, maker *bridge.Maker) (*cQP, QPCap, error) {
	defer gate.Control.Enter()()
	c := (*cQPInitAttr)(C.calloc(1, C.sizeof_struct_ibv_qp_init_attr_ex))
	defer C.free(unsafe.Pointer(c))
	*c = qpInitAttrToC(attr)
	c.pd = pd
	if attr.SendCQ != nil {
		c.send_cq = attr.SendCQ.cq
	}
	if attr.RecvCQ != nil {
		c.recv_cq = attr.RecvCQ.cq
	}
	if attr.SRQ != nil {
		c.srq = attr.SRQ.srq
	}
	if attr.RWQIndTable != nil {
		c.comp_mask |= C.IBV_QP_INIT_ATTR_IND_TABLE | C.IBV_QP_INIT_ATTR_RX_HASH
		c.rwq_ind_tbl = attr.RWQIndTable.table
		defer attr.RXHash.toC(&c.rx_hash_conf)()
	}
	if attr.Type == QPTypeXRCRecv {
		// It belongs to an XRC domain, and to no PD.
		c.pd = nil
		c.comp_mask &^= C.IBV_QP_INIT_ATTR_PD
		c.comp_mask |= C.IBV_QP_INIT_ATTR_XRCD
		c.xrcd = attr.XRCD.xrcd
	}
	if maker != nil {
		qp, err := maker.Create(unsafe.Pointer(c))
		return (*cQP)(qp), qpCapFromC(&c.cap), err
	}
	qp, errno := C.gv_create_qp(pd.context, c)
	return qp, qpCapFromC(&c.cap), nullErr(qp == nil, errno)
}

// qpToEx gives the QP's ibv_wr_* side: ibv_qp_to_qp_ex(3).
func qpToEx(qp *cQP) (*cQPEx, error) {
	if ex := C.ibv_qp_to_qp_ex(qp); ex != nil {
		return ex, nil
	}
	return nil, syscall.EOPNOTSUPP
}

// queryQPInit is ibv_query_qp's other answer.
func queryQPInit(qp *cQP) (QPInitAttr, error) {
	var attr C.struct_ibv_qp_attr
	var init C.struct_ibv_qp_init_attr
	ret, errno := C.ibv_query_qp(qp, &attr, C.IBV_QP_CAP, &init)
	if err := retErr(int(ret), errno); err != nil {
		return QPInitAttr{}, err
	}
	return QPInitAttr{Type: QPType(init.qp_type), Cap: qpCapFromC(&init.cap), SigAll: init.sq_sig_all != 0}, nil
}

// fixedRXELists tells whether rxe's provider gets ibv_wr_set_sge_list and
// ibv_wr_set_inline_data_list right: rdma-core 64's does (the commits "rxe: Fix
// dma.length computation in wr_set_sge_list" and "providers/rxe: Fix missing
// length accumulation in wr_set_inline_data_list"), which is also the first with
// ibv_alloc_buf. Providers and library come from one build.
var fixedRXELists = sync.OnceValue(func() bool { return hasVerb("ibv_alloc_buf") })

func rateLimitToC(l QPRateLimit) C.struct_ibv_qp_rate_limit_attr {
	return C.struct_ibv_qp_rate_limit_attr{
		rate_limit:     C.uint32_t(l.Rate),
		max_burst_sz:   C.uint32_t(l.MaxBurst),
		typical_pkt_sz: C.uint16_t(l.TypicalPacket),
	}
}

func rateLimitFromC(c *C.struct_ibv_qp_rate_limit_attr) QPRateLimit {
	return QPRateLimit{Rate: uint32(c.rate_limit), MaxBurst: uint32(c.max_burst_sz), TypicalPacket: uint16(c.typical_pkt_sz)}
}

func modifyRateLimit(qp *cQP, l QPRateLimit) error {
	c := rateLimitToC(l)
	ret, errno := C.gv_modify_qp_rate_limit(qp, &c)
	return retErr(int(ret), errno)
}

func eceToC(e ECE) C.struct_ibv_ece {
	return C.struct_ibv_ece{vendor_id: C.uint32_t(e.VendorID), options: C.uint32_t(e.Options)}
}

func eceFromC(c *C.struct_ibv_ece) ECE {
	return ECE{VendorID: uint32(c.vendor_id), Options: uint32(c.options)}
}

func setECE(qp *cQP, e ECE) error {
	c := eceToC(e)
	ret, errno := C.ibv_set_ece(qp, &c)
	return retErr(int(ret), errno)
}

func queryECE(qp *cQP) (ECE, error) {
	var c C.struct_ibv_ece
	ret, errno := C.ibv_query_ece(qp, &c)
	return eceFromC(&c), retErr(int(ret), errno)
}

func qpDataInOrder(qp *cQP, op WROpcode, flags DataInOrderFlags) DataInOrder {
	return DataInOrder(C.ibv_query_qp_data_in_order(qp, uint32(op), C.uint32_t(flags)))
}
