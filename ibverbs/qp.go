package ibverbs

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
)

// QP is a queue pair. It is safe for concurrent use: work requests that
// several goroutines post are queued one batch after the other.
type QP struct {
	handle
	pd             *PD
	sendCQ, recvCQ *CQ
	srq            *SRQ // nil where the QP has a receive queue of its own
	qp             *cQP
	typ            QPType
	cap            QPCap
	limits         DeviceAttr
	siw            bool

	// readDepth is how many READs the QP may have in flight, -1 while not
	// known. A READ with depth 0 would never complete.
	readDepth atomic.Int32

	sendMu sync.Mutex
	send   sendQueue
	recvMu sync.Mutex
	recv   recvQueue
}

// QPCap holds the sizes of a QP's queues (struct ibv_qp_cap).
type QPCap struct {
	MaxSendWR     uint32 // work requests
	MaxRecvWR     uint32
	MaxSendSGE    uint32 // SGEs of one work request
	MaxRecvSGE    uint32
	MaxInlineData uint32 // bytes
}

// QPInitAttr says how to create a QP (struct ibv_qp_init_attr).
type QPInitAttr struct {
	Type   QPType
	SendCQ *CQ
	RecvCQ *CQ // may be SendCQ
	Cap    QPCap
	// SRQ is where the QP takes its receives from. It has no receive queue of
	// its own then, and Cap's MaxRecvWR and MaxRecvSGE are not looked at. nil
	// means none.
	SRQ *SRQ
	// SigAll gives each send work request a completion, as if each had
	// SendSignaled.
	SigAll bool
}

// CreateQP creates a queue pair in state RESET: ibv_create_qp(3). The caller
// closes it, before its CQs and PD. Cap may be more than was asked for; see
// QP.Cap. A type that the device lacks satisfies errors.ErrUnsupported.
func (pd *PD) CreateQP(attr QPInitAttr) (*QP, error) {
	const op = "ibv_create_qp"
	if err := pd.checkQP(&attr); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	qp := &QP{pd: pd, sendCQ: attr.SendCQ, recvCQ: attr.RecvCQ, srq: attr.SRQ, typ: attr.Type, siw: pd.dev.isSIW()}
	qp.readDepth.Store(-1)
	parents := []*handle{&pd.handle, &attr.SendCQ.handle, &attr.RecvCQ.handle}
	if attr.SRQ != nil {
		parents = append(parents, &attr.SRQ.handle)
		attr.Cap.MaxRecvWR, attr.Cap.MaxRecvSGE = 0, 0
	}
	if err := qp.adopt("QP", parents...); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	if err := qp.create(&attr); err != nil {
		qp.disown()
		return nil, wrap(op, pd.object, err)
	}
	watch(qp, &qp.handle)
	return qp, nil
}

func (pd *PD) checkQP(attr *QPInitAttr) error {
	for _, cq := range []*CQ{attr.SendCQ, attr.RecvCQ} {
		if cq == nil {
			return hint(syscall.EINVAL, "a QP needs SendCQ and RecvCQ")
		}
		if cq.dev != pd.dev {
			return hint(syscall.EINVAL, "%v is another device's", cq)
		}
	}
	if attr.SRQ != nil && attr.SRQ.pd.dev != pd.dev {
		return hint(syscall.EINVAL, "%v is another device's", attr.SRQ)
	}
	return nil
}

func (qp *QP) create(attr *QPInitAttr) (err error) {
	if qp.limits, err = qp.pd.dev.limits(); err != nil {
		return err
	}
	if qp.qp, qp.cap, err = createQP(qp.pd.pd, attr, qp.sendCQ.cq, qp.recvCQ.cq); err != nil {
		return qp.createHint(err, attr)
	}
	if err = qp.allocQueues(); err != nil {
		destroyQP(qp.qp)
		return err
	}
	qp.named("%s/qp%d", qp.pd.object, qp.QPN())
	qp.pd.dev.async.register(qpID(qp.qp), qp)
	return nil
}

func (qp *QP) allocQueues() error {
	if err := qp.send.alloc(qp.cap); err != nil {
		return err
	}
	if err := qp.recv.alloc(qp.cap); err != nil {
		qp.send.free()
		return err
	}
	return nil
}

func (qp *QP) createHint(err error, attr *QPInitAttr) error {
	l, c := &qp.limits, &attr.Cap
	switch {
	case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.EPROTONOSUPPORT):
		return hint(err, "the device has no %v QPs", attr.Type)
	case !errors.Is(err, syscall.EINVAL):
		return err
	case int(max(c.MaxSendWR, c.MaxRecvWR)) > l.MaxQPWR:
		return hint(err, "the device allows %d work requests a queue", l.MaxQPWR)
	case int(max(c.MaxSendSGE, c.MaxRecvSGE)) > l.MaxSGE:
		return hint(err, "the device allows %d SGEs a work request", l.MaxSGE)
	case c.MaxInlineData > 0:
		return hint(err, "is MaxInlineData %d too much for the device?", c.MaxInlineData)
	}
	return err
}

// QPN is the QP number, which a peer names as DestQPN.
func (qp *QP) QPN() uint32 { return qpNumber(qp.qp) }

// Type is the QP's transport service.
func (qp *QP) Type() QPType { return qp.typ }

// Cap holds the sizes that the QP was given.
func (qp *QP) Cap() QPCap { return qp.cap }

// PD is the PD that the QP belongs to.
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
		qp.pd.dev.async.unregister(qpID(qp.qp))
		if err := destroyQP(qp.qp); err != nil {
			qp.pd.dev.async.register(qpID(qp.qp), qp)
			return err
		}
		qp.send.free()
		qp.recv.free()
		return nil
	})
}
