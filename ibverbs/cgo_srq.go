package ibverbs

// #cgo noescape gv_post_srq_recv
// #cgo nocallback gv_post_srq_recv
// #include "shim.h"
import "C"

import (
	"unsafe"

	"github.com/goverbs/goverbs/internal/gate"
)

type cSRQ = C.struct_ibv_srq

func srqAttrToC(a SRQAttr) C.struct_ibv_srq_attr {
	return C.struct_ibv_srq_attr{
		max_wr:    C.uint32_t(a.MaxWR),
		max_sge:   C.uint32_t(a.MaxSGE),
		srq_limit: C.uint32_t(a.Limit),
	}
}

func srqAttrFromC(a *C.struct_ibv_srq_attr) SRQAttr {
	return SRQAttr{MaxWR: uint32(a.max_wr), MaxSGE: uint32(a.max_sge), Limit: uint32(a.srq_limit)}
}

func srqID(srq *cSRQ) objectID { return objectID(unsafe.Pointer(srq)) }

func srqNumber(srq *cSRQ) uint32 { return uint32(srq.handle) }

// modifySRQ returns the attributes as the provider left them.
func modifySRQ(srq *cSRQ, attr SRQAttr, mask SRQAttrMask) (SRQAttr, error) {
	c := srqAttrToC(attr)
	ret, errno := C.ibv_modify_srq(srq, &c, C.int(mask))
	return srqAttrFromC(&c), retErr(int(ret), errno)
}

func querySRQ(srq *cSRQ) (SRQAttr, error) {
	var c C.struct_ibv_srq_attr
	ret, errno := C.ibv_query_srq(srq, &c)
	return srqAttrFromC(&c), retErr(int(ret), errno)
}

func destroySRQ(srq *cSRQ) error {
	defer gate.Control.Enter()()
	ret, errno := C.ibv_destroy_srq(srq)
	return retErr(int(ret), errno)
}

// postSRQ posts the first n work requests that put laid out.
func (q *recvQueue) postSRQ(srq *cSRQ, n int) (accepted int, err error) {
	r := C.gv_post_srq_recv(srq, (*C.struct_ibv_recv_wr)(unsafe.Pointer(&q.wrs[0])), C.int(n))
	return int(r.accepted), postErr(r.err)
}
