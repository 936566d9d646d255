package ibverbs

// Work queues and how packets are spread over them.

// #cgo noescape gv_post_wq_recv
// #cgo nocallback gv_post_wq_recv
// #include "shim_wq.h"
// #include <stdlib.h>
import "C"

import (
	"math/bits"
	"unsafe"
)

type (
	cWQ          = C.struct_ibv_wq
	cRWQIndTable = C.struct_ibv_rwq_ind_table
	cRXHash      = C.struct_ibv_rx_hash_conf
)

// wqInitAttrToC converts all but the objects.
func wqInitAttrToC(a *WQInitAttr) C.struct_ibv_wq_init_attr {
	c := C.struct_ibv_wq_init_attr{
		wq_type: uint32(a.Type),
		max_wr:  C.uint32_t(a.MaxWR),
		max_sge: C.uint32_t(a.MaxSGE),
	}
	if a.CreateFlags != 0 {
		c.comp_mask = C.IBV_WQ_INIT_ATTR_FLAGS
		c.create_flags = C.uint32_t(a.CreateFlags)
	}
	return c
}

// createWQ returns the sizes that were granted too.
func createWQ(pd *cPD, attr *WQInitAttr) (*cWQ, WQInitAttr, error) {
	c := wqInitAttrToC(attr)
	c.pd, c.cq = pd, attr.CQ.cq
	wq, errno := C.gv_create_wq(pd.context, &c)
	return wq, WQInitAttr{MaxWR: uint32(c.max_wr), MaxSGE: uint32(c.max_sge)}, nullErr(wq == nil, errno)
}

func wqID(wq *cWQ) objectID { return objectID(unsafe.Pointer(wq)) }

func wqNumber(wq *cWQ) uint32 { return uint32(wq.wq_num) }

func wqAttrToC(a WQAttr, mask WQAttrMask) C.struct_ibv_wq_attr {
	return C.struct_ibv_wq_attr{
		attr_mask:     C.uint32_t(mask),
		wq_state:      uint32(a.State),
		curr_wq_state: uint32(a.CurState),
		flags:         C.uint32_t(a.Flags),
		flags_mask:    C.uint32_t(a.FlagsMask),
	}
}

func modifyWQ(wq *cWQ, attr WQAttr, mask WQAttrMask) error {
	c := wqAttrToC(attr, mask)
	ret, errno := C.gv_modify_wq(wq, &c)
	return retErr(int(ret), errno)
}

func destroyWQ(wq *cWQ) error {
	ret, errno := C.gv_destroy_wq(wq)
	return retErr(int(ret), errno)
}

// postWQ posts the first n work requests that put laid out.
func (q *recvQueue) postWQ(wq *cWQ, n int) (accepted int, err error) {
	r := C.gv_post_wq_recv(wq, (*C.struct_ibv_recv_wr)(unsafe.Pointer(&q.wrs[0])), C.int(n))
	return int(r.accepted), postErr(r.err)
}

// createRWQIndTable is given at least one WQ.
func createRWQIndTable(ctx *cContext, wqs []*WQ) (*cRWQIndTable, error) {
	mem := (**cWQ)(C.calloc(C.size_t(len(wqs)), C.size_t(unsafe.Sizeof(wqs[0].wq))))
	defer C.free(unsafe.Pointer(mem))
	entries := unsafe.Slice(mem, len(wqs))
	for i, wq := range wqs {
		entries[i] = wq.wq
	}
	c := C.struct_ibv_rwq_ind_table_init_attr{
		log_ind_tbl_size: C.uint32_t(bits.Len(uint(len(wqs))) - 1),
		ind_tbl:          mem,
	}
	table, errno := C.gv_create_rwq_ind_table(ctx, &c)
	return table, nullErr(table == nil, errno)
}

func rwqIndTableNumber(t *cRWQIndTable) uint32 { return uint32(t.ind_tbl_num) }

func destroyRWQIndTable(t *cRWQIndTable) error {
	ret, errno := C.gv_destroy_rwq_ind_table(t)
	return retErr(int(ret), errno)
}

// toC fills in c, whose key is C memory that free frees.
func (h *RXHash) toC(c *cRXHash) (free func()) {
	key := C.CBytes(h.Key)
	c.rx_hash_function = C.uint8_t(h.Func)
	c.rx_hash_key_len = C.uint8_t(len(h.Key))
	c.rx_hash_key = (*C.uint8_t)(key)
	c.rx_hash_fields_mask = C.uint64_t(h.Fields)
	return func() {
		c.rx_hash_key = nil
		C.free(key)
	}
}
