package ibverbs

// XRC domains, extended SRQs and their tags.

// #include "shim_srq.h"
// #include <stdlib.h>
import "C"

import (
	"unsafe"

	"github.com/goverbs/goverbs/internal/bridge"
	"github.com/goverbs/goverbs/internal/gate"
)

type (
	cXRCD        = C.struct_ibv_xrcd
	cSRQInitAttr = C.struct_ibv_srq_init_attr_ex
)

func xrcdAttrToC(fd, flags int) C.struct_ibv_xrcd_init_attr {
	return C.struct_ibv_xrcd_init_attr{
		comp_mask: C.IBV_XRCD_INIT_ATTR_FD | C.IBV_XRCD_INIT_ATTR_OFLAGS,
		fd:        C.int(fd),
		oflags:    C.int(flags),
	}
}

func openXRCD(ctx *cContext, attr *C.struct_ibv_xrcd_init_attr) (*cXRCD, error) {
	xrcd, errno := C.gv_open_xrcd(ctx, attr)
	return xrcd, nullErr(xrcd == nil, errno)
}

func closeXRCD(xrcd *cXRCD) error {
	ret, errno := C.gv_close_xrcd(xrcd)
	return retErr(int(ret), errno)
}

func qpOpenAttrToC(qpn uint32, xrcd *cXRCD) C.struct_ibv_qp_open_attr {
	return C.struct_ibv_qp_open_attr{
		comp_mask: C.IBV_QP_OPEN_ATTR_NUM | C.IBV_QP_OPEN_ATTR_XRCD | C.IBV_QP_OPEN_ATTR_TYPE,
		qp_num:    C.uint32_t(qpn),
		xrcd:      xrcd,
		qp_type:   C.IBV_QPT_XRC_RECV,
	}
}

func openQP(ctx *cContext, attr *C.struct_ibv_qp_open_attr) (*cQP, error) {
	qp, errno := C.gv_open_qp(ctx, attr)
	return qp, nullErr(qp == nil, errno)
}

// srqInitAttrToC says with comp_mask which of the optional fields are set.
func srqInitAttrToC(a *SRQInitAttr, pd *cPD) cSRQInitAttr {
	c := cSRQInitAttr{
		attr:      srqAttrToC(a.attr()),
		comp_mask: C.IBV_SRQ_INIT_ATTR_TYPE | C.IBV_SRQ_INIT_ATTR_PD,
		srq_type:  uint32(a.Type),
		pd:        pd,
	}
	if a.XRCD != nil {
		c.comp_mask |= C.IBV_SRQ_INIT_ATTR_XRCD
		c.xrcd = a.XRCD.xrcd
	}
	if a.CQ != nil {
		c.comp_mask |= C.IBV_SRQ_INIT_ATTR_CQ
		c.cq = a.CQ.cq
	}
	if a.Type == SRQTypeTM {
		c.comp_mask |= C.IBV_SRQ_INIT_ATTR_TM
		c.tm_cap = C.struct_ibv_tm_cap{max_num_tags: C.uint32_t(a.MaxTags), max_ops: C.uint32_t(a.MaxOps)}
	}
	return c
}

// createSRQ makes a basic SRQ by ibv_create_srq, others by the provider's
// extended call.
func createSRQ(pd *cPD, attr *SRQInitAttr, maker *bridge.Maker) (*cSRQ, SRQAttr, error) {
	defer gate.Control.Enter()()
	c := srqInitAttrToC(attr, pd)
	if maker != nil {
		// The struct is C memory, since it points to objects.
		p := (*cSRQInitAttr)(C.calloc(1, C.sizeof_struct_ibv_srq_init_attr_ex))
		defer C.free(unsafe.Pointer(p))
		*p = c
		srq, err := maker.Create(unsafe.Pointer(p))
		return (*cSRQ)(srq), srqAttrFromC(&p.attr), err
	}
	srq, errno := C.gv_create_srq(pd.context, &c)
	return srq, srqAttrFromC(&c.attr), nullErr(srq == nil, errno)
}

func srqNum(srq *cSRQ) (uint32, error) {
	var n C.uint32_t
	ret, errno := C.gv_get_srq_num(srq, &n)
	return uint32(n), retErr(int(ret), errno)
}

// opsWRToC converts an operation whose SGEs have been copied to sges, C memory.
func opsWRToC(wr *OpsWR, sges *C.struct_ibv_sge) C.struct_ibv_ops_wr {
	c := C.struct_ibv_ops_wr{
		wr_id:  C.uint64_t(wr.WRID),
		opcode: uint32(wr.Opcode),
		flags:  C.int(wr.Flags),
	}
	c.tm.unexpected_cnt = C.uint32_t(wr.UnexpectedCnt)
	c.tm.handle = C.uint32_t(wr.Handle)
	c.tm.add.recv_wr_id = C.uint64_t(wr.RecvWRID)
	c.tm.add.sg_list = sges
	c.tm.add.num_sge = C.int(len(wr.SGList))
	c.tm.add.tag = C.uint64_t(wr.Tag)
	c.tm.add.mask = C.uint64_t(wr.Mask)
	return c
}

// postOps posts one operation, and takes the handle of a tag that it adds.
func postOps(srq *cSRQ, wr *OpsWR) error {
	sges, errno := C.calloc(C.size_t(max(len(wr.SGList), 1)), C.sizeof_struct_ibv_sge)
	if sges == nil {
		return nullErr(true, errno)
	}
	defer C.free(sges)
	copy(unsafe.Slice((*SGE)(sges), len(wr.SGList)), wr.SGList)
	c := opsWRToC(wr, (*C.struct_ibv_sge)(sges))
	ret, errno := C.gv_post_srq_ops(srq, &c)
	if err := retErr(int(ret), errno); err != nil {
		return err
	}
	wr.Handle = uint32(c.tm.handle)
	return nil
}
