package verbsfake

// #cgo noescape vf_loop
// #cgo nocallback vf_loop
// #include "fake.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// nullCQRoom is how many completions a CQ holds.
const nullCQRoom = 512

// Convention is how a provider says that a post failed.
type Convention uint32

// The conventions.
const (
	Positive Convention = C.VF_POSITIVE // the errno
	Negative Convention = C.VF_NEGATIVE // the errno, negative
	Errno    Convention = C.VF_ERRNO    // -1, and errno is set
	Bare     Convention = C.VF_BARE     // -1, and errno is not set
	Silent   Convention = C.VF_SILENT   // 0, with bad_wr set
)

// Connect gives a QP its CQs and number.
func Connect(qp, sendCQ, recvCQ unsafe.Pointer, number uint32) {
	c := (*C.struct_ibv_qp)(qp)
	c.send_cq, c.recv_cq = (*C.struct_ibv_cq)(sendCQ), (*C.struct_ibv_cq)(recvCQ)
	c.qp_num, c.qp_type = C.uint32_t(number), C.IBV_QPT_RC
}

// FailAfter has a QP refuse the work requests after the next n; err 0 ends it.
func FailAfter(qp unsafe.Pointer, n int, err syscall.Errno, how Convention) {
	C.vf_null_fault((*C.struct_vf_null_qp)(qp), C.int(n), C.int(err), uint32(how))
}

// Complete chooses the status of a QP's completions from now on.
func Complete(qp unsafe.Pointer, status uint32) {
	(*C.struct_vf_null_qp)(qp).status = C.uint32_t(status)
}

// PollResult is what polling a CQ returns from now on; 0 means what is there.
func PollResult(cq unsafe.Pointer, result int) {
	(*C.struct_vf_null_cq)(cq).poll_result = C.int(result)
}

// Overrun has a CQ lose the completions for which it has no room.
func Overrun(cq unsafe.Pointer) { (*C.struct_vf_null_cq)(cq).drop = 1 }

// Overruns is how many it has lost.
func Overruns(cq unsafe.Pointer) int { return int((*C.struct_vf_null_cq)(cq).overruns) }

// CQRoom is how many completions a CQ holds.
const CQRoom = nullCQRoom

// Channel is a new struct ibv_comp_channel, with the events of cq, which
// carries id. Its descriptor is the caller's to close.
func (p *Provider) Channel(cq unsafe.Pointer, id uintptr) (channel unsafe.Pointer, fd int) {
	var writeFD C.int
	ch := C.vf_channel(p.ctx, &writeFD)
	(*C.struct_vf_null_cq)(cq).event_fd = writeFD
	*(*uintptr)(unsafe.Pointer(&(*C.struct_ibv_cq)(cq).cq_context)) = id
	return p.keep(unsafe.Pointer(ch)), int(ch.fd)
}

// Sent is what a send work request said when it was posted.
type Sent struct {
	WRID       uint64
	Opcode     uint32
	Flags      uint32
	Imm        uint32 // in network order
	RemoteAddr uint64
	RKey       uint32
	SGEs       [][3]uint64 // address, length, key; at most 4
	Inline     string      // its first SGE's data, if that is inline
}

// Record has a QP remember its last work request.
func Record(qp unsafe.Pointer) { (*C.struct_vf_null_qp)(qp).record = 1 }

// LastSent is the last work request of a QP that records.
func LastSent(qp unsafe.Pointer) Sent {
	q := (*C.struct_vf_null_qp)(qp)
	rdma := (*struct {
		addr uint64
		rkey uint32
	})(unsafe.Pointer(&q.last.wr))
	s := Sent{
		WRID: uint64(q.last.wr_id), Opcode: uint32(q.last.opcode), Flags: uint32(q.last.send_flags),
		Imm: *(*uint32)(unsafe.Add(unsafe.Pointer(&q.last.send_flags), 4)), RemoteAddr: rdma.addr, RKey: rdma.rkey,
	}
	for _, sge := range q.last_sge[:q.last.num_sge] {
		s.SGEs = append(s.SGEs, [3]uint64{uint64(sge.addr), uint64(sge.length), uint64(sge.lkey)})
	}
	if s.Flags&C.IBV_SEND_INLINE != 0 && len(s.SGEs) > 0 {
		s.Inline = C.GoStringN(&q.last_inline[0], C.int(s.SGEs[0][1]))
	}
	return s
}

// Loop is a loop in C that posts a batch and polls until all has completed.
type Loop struct {
	QP, CQ unsafe.Pointer
	Batch  int // at most 256
	SGEs   int // of each work request, at most 4
	Opcode uint32
	Flags  uint32
	Recv   bool // post receives, rather than sends
	Addr   uint64
	Length uint32
	LKey   uint32
}

// Run does a number of rounds in one cgo call, and tells whether none failed.
func (l *Loop) Run(rounds int) bool {
	c := C.struct_vf_loop{
		qp: (*C.struct_ibv_qp)(l.QP), cq: (*C.struct_ibv_cq)(l.CQ),
		batch: C.int(l.Batch), sges: C.int(l.SGEs), opcode: C.int(l.Opcode), flags: C.int(l.Flags),
		addr: C.uint64_t(l.Addr), length: C.uint32_t(l.Length), lkey: C.uint32_t(l.LKey),
	}
	if l.Recv {
		c.recv = 1
	}
	return C.vf_loop(&c, C.int(rounds)) == 0
}

// EmptyCalls calls an empty C function n times.
func EmptyCalls(n int) {
	for range n {
		C.vf_empty()
	}
}

// Armed tells whether a CQ waits for a completion to make an event.
func Armed(cq unsafe.Pointer) bool { return C.vf_armed((*C.struct_vf_null_cq)(cq)) != 0 }
