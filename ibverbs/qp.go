package ibverbs

import (
	"sync"
	"sync/atomic"

	"github.com/goverbs/goverbs/internal/bridge"
)

// QP is a queue pair. It is safe for concurrent use: work requests that
// several goroutines post are queued one batch after the other.
type QP struct {
	handle
	dev            *Device
	pd             *PD // nil where XRCD.OpenQP made it
	sendCQ, recvCQ *CQ
	maker          *bridge.Maker // nil unless another library made qp
	srq            *SRQ          // nil where the QP has a receive queue of its own
	qp             *cQP
	qpn            uint32
	ex             *cQPEx // nil unless ops are posted through ibv_wr_*
	ops            SendOps
	plainLists     bool // ibv_wr_* gets SGE lists wrong: post those by ibv_post_send
	typ            QPType
	cap            QPCap
	sigAll         bool
	limits         DeviceAttr
	siw, rxe       bool
	owed           *owed // Soft-iWARP only

	// state is where Modify has taken the QP. iWARP moves further by itself.
	state    atomic.Uint32
	failed   atomic.Bool // in the error state, as a completion or Modify said
	wasReset atomic.Bool
	// readDepth is how many READs the QP may have in flight, -1 while not
	// known. A READ with depth 0 would never complete.
	readDepth atomic.Int32

	ud datagrams // UD only

	plainOps plainOps // opcodes that putPlain takes
	sendMu   sync.Mutex
	send     sendQueue
	recvMu   sync.Mutex
	recv     recvQueue
}

// QPCap holds the sizes of a QP's queues (struct ibv_qp_cap).
type QPCap struct {
	MaxSendWR     uint32 // work requests
	MaxRecvWR     uint32
	MaxSendSGE    uint32 // SGEs of one work request
	MaxRecvSGE    uint32
	MaxInlineData uint32 // bytes
}

// QPN is the QP number, which a peer names as DestQPN.
func (qp *QP) QPN() uint32 { return qp.qpn }

// Type is the QP's transport service.
func (qp *QP) Type() QPType { return qp.typ }

// Cap holds the sizes that the QP was given.
func (qp *QP) Cap() QPCap { return qp.cap }

// PD is the PD that the QP belongs to; nil for one of XRCD.OpenQP.
func (qp *QP) PD() *PD { return qp.pd }

// SendCQ is where send work requests complete.
func (qp *QP) SendCQ() *CQ { return qp.sendCQ }

// RecvCQ is where receive work requests complete.
func (qp *QP) RecvCQ() *CQ { return qp.recvCQ }

// SRQ is the shared receive queue that the QP takes its receives from, or nil.
func (qp *QP) SRQ() *SRQ { return qp.srq }

// Close destroys the QP: ibv_destroy_qp(3). It is nil when called again.
//
// Work requests that are outstanding end without a completion, and their
// memory is the caller's again. To see each one flushed, call ToError and poll
// the CQs first.
func (qp *QP) Close() error {
	// A post holds no reference but a queue's mutex: passing through both
	// means that none is in flight, and that later ones see the closed bit.
	wake := func() {
		for _, mu := range []*sync.Mutex{&qp.sendMu, &qp.recvMu} {
			mu.Lock()
			mu.Unlock() //lint:ignore SA2001 waits for the holder
		}
	}
	return qp.close("ibv_destroy_qp", wake, func() error {
		qp.dev.async.unregister(qpID(qp.qp))
		if err := qp.destroy(); err != nil {
			qp.dev.async.register(qpID(qp.qp), qp)
			return qp.destroyHint(err)
		}
		if qp.owed != nil {
			qp.owed.leave()
		}
		if qp.rxe {
			qp.dev.qps.CompareAndDelete(qp.qpn, qp)
		}
		qp.send.free()
		qp.recv.free()
		return nil
	})
}
