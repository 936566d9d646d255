package ibverbs

// The data path: work requests laid out in C memory, one crossing a batch,
// nothing allocated.

// The calls get C's pointers as numbers: for a pointer to a struct with pointers,
// cgo would look at each call whether it is Go's. They give their results
// through a pointer: a C function's own result costs two more calls, to find it
// where the stack has moved. noescape, which needs nocallback, lets the results
// of polls and the slice of completions stay on a stack; posts have no pointer
// to Go's memory, and do without those two.

// #cgo noescape gv_poll_cq
// #cgo nocallback gv_poll_cq
// #cgo noescape gv_spin_cq
// #cgo nocallback gv_spin_cq
// #include "shim.h"
// #include <stdlib.h>
import "C"

import (
	"math/bits"
	"syscall"
	"unsafe"
)

// cSendWR is struct ibv_send_wr, with its pointers as numbers: what they point
// to is C memory too, and Go's collector must not look at it.
type cSendWR struct {
	wrID       uint64
	next       uintptr
	sgList     uintptr
	numSGE     int32
	opcode     uint32
	flags      uint32
	imm        uint32 // or the rkey to invalidate
	remoteAddr uint64 // union wr: rdma and atomic begin alike
	compareAdd uint64 // of atomic; its low half is rdma.rkey
	swap       uint64
	atomicRKey uint32
	_          uint32
	remoteSRQN uint32 // qp_type.xrc
	_          uint32
	mw         uint64 // bind_mw begins; or tso.hdr, or the length of a FLUSH
	mwRKey     uint32 // or tso.hdr_sz and tso.mss, or a FLUSH's placement and selectivity
	_          uint32
	mr         uint64
	mwAddr     uint64
	mwLength   uint64
	mwAccess   uint32
	_          uint32
}

// cRecvWR is struct ibv_recv_wr.
type cRecvWR struct {
	wrID   uint64
	next   uintptr
	sgList uintptr
	numSGE int32
	_      int32
}

// The layouts are C's, or this does not compile.
const (
	_ = -(unsafe.Sizeof(cSendWR{}) ^ C.sizeof_struct_ibv_send_wr)
	_ = -(unsafe.Sizeof(cRecvWR{}) ^ C.sizeof_struct_ibv_recv_wr)
	_ = -(unsafe.Sizeof(SGE{}) ^ C.sizeof_struct_ibv_sge)
	_ = -(unsafe.Sizeof(WC{}) ^ C.sizeof_struct_ibv_wc)

	_ = -(unsafe.Offsetof(cSendWR{}.next) ^ unsafe.Offsetof(C.struct_ibv_send_wr{}.next))
	_ = -(unsafe.Offsetof(cSendWR{}.sgList) ^ unsafe.Offsetof(C.struct_ibv_send_wr{}.sg_list))
	_ = -(unsafe.Offsetof(cSendWR{}.numSGE) ^ unsafe.Offsetof(C.struct_ibv_send_wr{}.num_sge))
	_ = -(unsafe.Offsetof(cSendWR{}.opcode) ^ unsafe.Offsetof(C.struct_ibv_send_wr{}.opcode))
	_ = -(unsafe.Offsetof(cSendWR{}.flags) ^ unsafe.Offsetof(C.struct_ibv_send_wr{}.send_flags))
	_ = -(unsafe.Offsetof(cSendWR{}.remoteAddr) ^ unsafe.Offsetof(C.struct_ibv_send_wr{}.wr))

	_ = -(unsafe.Offsetof(cSendWR{}.remoteSRQN) ^ unsafe.Offsetof(C.struct_ibv_send_wr{}.qp_type))
	_ = -(unsafe.Offsetof(cSendWR{}.mr) ^ (C.sizeof_struct_ibv_send_wr - C.sizeof_struct_ibv_mw_bind_info))

	_ = -(unsafe.Offsetof(cRecvWR{}.sgList) ^ unsafe.Offsetof(C.struct_ibv_recv_wr{}.sg_list))
	_ = -(unsafe.Offsetof(cRecvWR{}.numSGE) ^ unsafe.Offsetof(C.struct_ibv_recv_wr{}.num_sge))

	_ = -(unsafe.Offsetof(WC{}.Status) ^ unsafe.Offsetof(C.struct_ibv_wc{}.status))
	_ = -(unsafe.Offsetof(WC{}.Opcode) ^ unsafe.Offsetof(C.struct_ibv_wc{}.opcode))
	_ = -(unsafe.Offsetof(WC{}.VendorErr) ^ unsafe.Offsetof(C.struct_ibv_wc{}.vendor_err))
	_ = -(unsafe.Offsetof(WC{}.ByteLen) ^ unsafe.Offsetof(C.struct_ibv_wc{}.byte_len))
	_ = -(unsafe.Offsetof(WC{}.QPN) ^ unsafe.Offsetof(C.struct_ibv_wc{}.qp_num))
	_ = -(unsafe.Offsetof(WC{}.SrcQP) ^ unsafe.Offsetof(C.struct_ibv_wc{}.src_qp))
	_ = -(unsafe.Offsetof(WC{}.Flags) ^ unsafe.Offsetof(C.struct_ibv_wc{}.wc_flags))
	_ = -(unsafe.Offsetof(WC{}.PKeyIndex) ^ unsafe.Offsetof(C.struct_ibv_wc{}.pkey_index))
	_ = -(unsafe.Offsetof(WC{}.SLID) ^ unsafe.Offsetof(C.struct_ibv_wc{}.slid))
	_ = -(unsafe.Offsetof(WC{}.SL) ^ unsafe.Offsetof(C.struct_ibv_wc{}.sl))
	_ = -(unsafe.Offsetof(WC{}.DLIDPathBits) ^ unsafe.Offsetof(C.struct_ibv_wc{}.dlid_path_bits))
)

// be32 converts between host and network order.
func be32(v uint32) uint32 {
	if hostLittleEndian {
		return bits.ReverseBytes32(v)
	}
	return v
}

var hostLittleEndian = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}()

// number is C's pointer to an object or memory of C's.
func number[T any](p *T) C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(p))) }

func pollCQ(cq *cCQ, wcs []WC) (int, error) {
	var n C.int
	C.gv_poll_cq(number(cq), C.int(len(wcs)), (*C.struct_ibv_wc)(unsafe.Pointer(&wcs[0])), &n)
	if n < 0 {
		return 0, retErr(int(n), nil)
	}
	return int(n), nil
}

func spinCQ(cq *cCQ, wcs []WC, budgetNS uint64) (int, error) {
	var n C.int
	C.gv_spin_cq(number(cq), C.int(len(wcs)), (*C.struct_ibv_wc)(unsafe.Pointer(&wcs[0])), C.uint64_t(budgetNS), &n)
	if n < 0 {
		return 0, retErr(int(n), nil)
	}
	return int(n), nil
}

func reqNotifyCQ(cq *cCQ, solicitedOnly bool) error {
	only := C.int(0)
	if solicitedOnly {
		only = 1
	}
	ret, errno := C.gv_req_notify_cq(cq, only)
	return retErr(int(ret), errno)
}

// atomicSize is what atomics work on, in bytes.
const atomicSize = 8

// wrBatch is the most work requests that cross to C at once. Longer batches
// take several crossings.
const wrBatch = 128

// sendQueue is C memory in which one QP's send work requests are laid out,
// with the SGEs and the inline data that they point to.
type sendQueue struct {
	mem    unsafe.Pointer
	result *C.struct_gv_posted
	wrs    []cSendWR
	sges   []SGE
	inline []byte // slot bytes for each of wrs: its inline data, then its TSO header
	slot   int
	header int // where in a slot the TSO header begins
}

// recvQueue is the same for receives.
type recvQueue struct {
	mem    unsafe.Pointer
	result *C.struct_gv_posted
	wrs    []cRecvWR
	sges   []SGE
}

// cacheLine is what work requests are aligned to, in bytes.
const cacheLine = 64

// queueMem takes zeroed C memory for a post's result, n work requests of wrSize
// bytes and their SGEs: two each, and at least what one may have.
func queueMem(n, wrSize, maxSGE, inline int) (mem, wrsAt, sgesAt unsafe.Pointer, sges int, err error) {
	sges = max(2*n, maxSGE)
	size := cacheLine + n*wrSize + sges*C.sizeof_struct_ibv_sge + n*inline
	size = (size + cacheLine - 1) &^ (cacheLine - 1)
	mem, errno := C.aligned_alloc(cacheLine, C.size_t(size))
	if mem == nil {
		return nil, nil, nil, 0, nullErr(true, errno)
	}
	clear(unsafe.Slice((*byte)(mem), size))
	wrsAt = unsafe.Add(mem, cacheLine)
	return mem, wrsAt, unsafe.Add(wrsAt, n*wrSize), sges, nil
}

func (q *sendQueue) alloc(cap QPCap, maxTSOHeader int) error {
	n := int(min(max(cap.MaxSendWR, 1), wrBatch))
	q.header = max(int(cap.MaxInlineData), atomicSize)
	q.slot = q.header + maxTSOHeader
	mem, wrsAt, sgesAt, sges, err := queueMem(n, C.sizeof_struct_ibv_send_wr, int(cap.MaxSendSGE), q.slot)
	if err != nil {
		return err
	}
	q.mem, q.result = mem, (*C.struct_gv_posted)(mem)
	q.wrs = unsafe.Slice((*cSendWR)(wrsAt), n)
	q.sges = unsafe.Slice((*SGE)(sgesAt), sges)
	q.inline = unsafe.Slice((*byte)(unsafe.Add(sgesAt, sges*C.sizeof_struct_ibv_sge)), n*q.slot)
	return nil
}

func (q *sendQueue) free() {
	C.free(q.mem)
	*q = sendQueue{}
}

func (q *recvQueue) alloc(cap QPCap) error {
	n := int(min(max(cap.MaxRecvWR, 1), wrBatch))
	mem, wrsAt, sgesAt, sges, err := queueMem(n, C.sizeof_struct_ibv_recv_wr, int(cap.MaxRecvSGE), 0)
	if err != nil {
		return err
	}
	q.mem, q.result = mem, (*C.struct_gv_posted)(mem)
	q.wrs = unsafe.Slice((*cRecvWR)(wrsAt), n)
	q.sges = unsafe.Slice((*SGE)(sgesAt), sges)
	return nil
}

func (q *recvQueue) free() {
	C.free(q.mem)
	*q = recvQueue{}
}

// put lays out as many of wrs as there is room for, and returns how many.
func (q *sendQueue) put(wrs []SendWR) int {
	sge := 0
	n := min(len(wrs), len(q.wrs))
	for i := range n {
		wr, c := &wrs[i], &q.wrs[i]
		if i > 0 && wr.Opcode.alone() {
			n = i
			break
		}
		list := len(wr.SGList)
		if wr.Inline != nil {
			list = 1
		}
		if sge+list > len(q.sges) {
			n = i
			break
		}
		c.wrID = wr.WRID
		c.next = uintptr(unsafe.Pointer(c)) + C.sizeof_struct_ibv_send_wr
		c.sgList = uintptr(unsafe.Pointer(&q.sges[0])) + uintptr(sge)*C.sizeof_struct_ibv_sge
		c.numSGE = int32(list)
		c.opcode = uint32(wr.Opcode)
		c.flags = uint32(wr.Flags)
		if wr.Inline != nil {
			c.flags |= uint32(SendInline)
			q.sges[sge] = q.putInline(i, wr.Inline)
		} else {
			copy(q.sges[sge:], wr.SGList)
		}
		sge += list
		c.putOperands(wr)
		if wr.Opcode == WRTSO {
			q.putHeader(i, wr.TSO)
		}
	}
	if n > 0 {
		q.wrs[n-1].next = 0
	}
	return n
}

// putInline copies data, whose length was checked, to slot i.
func (q *sendQueue) putInline(i int, data []byte) SGE {
	if len(data) == 0 {
		return SGE{}
	}
	room := q.inline[i*q.slot:]
	copy(room, data)
	return SGE{Addr: uint64(uintptr(unsafe.Pointer(&room[0]))), Length: uint32(len(data))}
}

// putHeader copies a TSO header, whose length was checked, to slot i.
func (q *sendQueue) putHeader(i int, tso *TSOHeader) {
	room := q.inline[i*q.slot+q.header:]
	copy(room, tso.Header)
	q.wrs[i].mw = uint64(uintptr(unsafe.Pointer(&room[0])))
	*(*[2]uint16)(unsafe.Pointer(&q.wrs[i].mwRKey)) = [2]uint16{uint16(len(tso.Header)), tso.MSS}
}

// putOperands fills in what depends on the opcode.
func (c *cSendWR) putOperands(wr *SendWR) {
	c.imm = 0 // BIND_MW must not have any
	c.remoteSRQN = wr.RemoteSRQN
	if wr.AH != nil {
		c.putAddress(wr)
		if wr.Opcode == WRSendWithImm {
			c.imm = be32(wr.ImmData)
		}
		return
	}
	switch wr.Opcode {
	case WRSendWithImm, WRRDMAWriteWithImm:
		c.imm = be32(wr.ImmData)
	case WRSendWithInv, WRLocalInv:
		c.imm = wr.InvalidateRKey
		// siw takes the key from here.
		*(*uint32)(unsafe.Pointer(&c.compareAdd)) = wr.InvalidateRKey
		return
	case WRAtomicCmpAndSwp, WRAtomicFetchAdd:
		c.remoteAddr = wr.RemoteAddr
		c.compareAdd = wr.CompareAdd
		c.swap = wr.Swap
		c.atomicRKey = wr.RKey
		return
	case WRFlush:
		c.mw = wr.Flush.Length
		*(*[2]uint8)(unsafe.Pointer(&c.mwRKey)) = [2]uint8{uint8(wr.Flush.Placement), uint8(wr.Flush.Selectivity)}
	}
	c.remoteAddr = wr.RemoteAddr
	*(*uint32)(unsafe.Pointer(&c.compareAdd)) = wr.RKey
}

func (q *recvQueue) put(wrs []RecvWR) int {
	sge := 0
	n := min(len(wrs), len(q.wrs))
	for i := range n {
		wr, c := &wrs[i], &q.wrs[i]
		if sge+len(wr.SGList) > len(q.sges) {
			n = i
			break
		}
		c.wrID = wr.WRID
		c.next = uintptr(unsafe.Pointer(c)) + C.sizeof_struct_ibv_recv_wr
		c.sgList = uintptr(unsafe.Pointer(&q.sges[0])) + uintptr(sge)*C.sizeof_struct_ibv_sge
		c.numSGE = int32(len(wr.SGList))
		copy(q.sges[sge:], wr.SGList)
		sge += len(wr.SGList)
	}
	if n > 0 {
		q.wrs[n-1].next = 0
	}
	return n
}

// post posts the first n work requests that put laid out: ibv_post_send(3).
func (q *sendQueue) post(qp *cQP, n int) (accepted int, err error) {
	q.postAll(qp, n)
	return q.posted()
}

// postAll posts, and tells whether all n were accepted. posted says more.
func (q *sendQueue) postAll(qp *cQP, n int) bool {
	C.gv_post_send(number(qp), number(unsafe.SliceData(q.wrs)), C.int(n), number(q.result))
	return q.result.accepted == C.int(n)
}

func (q *sendQueue) posted() (accepted int, err error) {
	return int(q.result.accepted), postErr(q.result.err)
}

func (q *recvQueue) post(qp *cQP, n int) (accepted int, err error) {
	C.gv_post_recv(number(qp), number(&q.wrs[0]), C.int(n), number(q.result))
	return int(q.result.accepted), postErr(q.result.err)
}

func postErr(errno C.int) error {
	if errno == 0 {
		return nil
	}
	return syscall.Errno(errno)
}
