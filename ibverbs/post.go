package ibverbs

import (
	"errors"
	"os"
	"syscall"
)

// PostSend posts send work requests in order: ibv_post_send(3), one cgo call
// for a batch of up to 128. It returns how many were accepted; if that is
// less than len(wrs), the error says why wrs[accepted] was not. It never
// waits, and allocates nothing where all are accepted.
//
// ErrQueueFull means that the send queue has no room now. Unsignaled work
// requests keep their room until a later signaled one has completed and been
// polled.
func (qp *QP) PostSend(wrs []SendWR) (accepted int, err error) {
	const op = "ibv_post_send"
	qp.sendMu.Lock()
	defer qp.sendMu.Unlock()
	if qp.closed() {
		return 0, wrap(op, qp.object, os.ErrClosed)
	}
	good, bad := qp.checkSends(wrs)
	for accepted < good {
		n := qp.send.put(wrs[accepted:good])
		done, err := qp.send.post(qp.qp, n)
		accepted += done
		if err != nil {
			return accepted, wrap(op, qp.object, qp.postHint(err, QPStateRTS))
		}
	}
	return accepted, wrap(op, qp.object, bad)
}

// PostRecv posts receive work requests in order: ibv_post_recv(3), one cgo
// call for a batch of up to 128. It returns how many were accepted; if that is
// less than len(wrs), the error says why wrs[accepted] was not. It never
// waits, and allocates nothing where all are accepted.
func (qp *QP) PostRecv(wrs []RecvWR) (accepted int, err error) {
	const op = "ibv_post_recv"
	qp.recvMu.Lock()
	defer qp.recvMu.Unlock()
	if qp.closed() {
		return 0, wrap(op, qp.object, os.ErrClosed)
	}
	if qp.srq != nil {
		return 0, wrap(op, qp.object, hint(syscall.EINVAL, "the QP takes its receives from %v: post there", qp.srq))
	}
	good, bad := checkRecvs(wrs, int(qp.cap.MaxRecvSGE))
	for accepted < good {
		n := qp.recv.put(wrs[accepted:good])
		done, err := qp.recv.post(qp.qp, n)
		accepted += done
		if err != nil {
			return accepted, wrap(op, qp.object, qp.postHint(err, QPStateInit))
		}
	}
	return accepted, wrap(op, qp.object, bad)
}

// checkSends returns how many of wrs may be posted, and why the next may not.
func (qp *QP) checkSends(wrs []SendWR) (good int, bad error) {
	for i := range wrs {
		if err := qp.checkSend(&wrs[i]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// checkSend refuses what some provider would take and get wrong: crash on,
// cut short, or never complete.
func (qp *QP) checkSend(wr *SendWR) error {
	if len(wr.SGList) > int(qp.cap.MaxSendSGE) {
		return hint(syscall.EINVAL, "%d SGEs: the QP has room for %d (QPCap.MaxSendSGE)", len(wr.SGList), qp.cap.MaxSendSGE)
	}
	if wr.Inline != nil || wr.Flags&SendInline != 0 {
		if err := qp.checkInline(wr); err != nil {
			return err
		}
	}
	switch wr.Opcode {
	case WRSend, WRRDMAWrite:
		return nil
	case WRRDMARead:
		return qp.checkRead(wr)
	case WRSendWithImm, WRRDMAWriteWithImm, WRAtomicCmpAndSwp, WRAtomicFetchAdd, WRLocalInv:
		// Refused here since siw's provider prints to standard error first.
		if qp.siw {
			return hint(syscall.EOPNOTSUPP, "Soft-iWARP has no %v", wr.Opcode)
		}
		return nil
	case WRSendWithInv:
		return nil
	}
	// Some providers look the opcode up in a table that is too short.
	return hint(syscall.EOPNOTSUPP, "PostSend does not know opcode %v", wr.Opcode)
}

func (qp *QP) checkInline(wr *SendWR) error {
	size := len(wr.Inline)
	if wr.Inline == nil {
		for _, sge := range wr.SGList {
			size += int(sge.Length)
		}
	}
	if size > int(qp.cap.MaxInlineData) {
		return hint(syscall.EINVAL, "%d bytes inline: the QP has room for %d (QPCap.MaxInlineData)", size, qp.cap.MaxInlineData)
	}
	switch wr.Opcode {
	case WRSend, WRSendWithImm, WRSendWithInv, WRRDMAWrite, WRRDMAWriteWithImm:
		return nil
	}
	return hint(syscall.EINVAL, "%v takes no inline data", wr.Opcode)
}

func (qp *QP) checkRead(wr *SendWR) error {
	if limit := qp.limits.MaxSGERD; limit > 0 && len(wr.SGList) > limit {
		return hint(syscall.EINVAL, "%d SGEs: this device's READs have at most %d (DeviceAttr.MaxSGERD)", len(wr.SGList), limit)
	}
	if qp.readDepth.Load() == 0 {
		return hint(syscall.EINVAL, "the QP's READ depth is 0: set QPAttr.MaxQPRDAtomic (rdmacm: InitiatorDepth)")
	}
	return nil
}

// checkRecvs returns how many of wrs may be posted to a queue whose receives
// have at most maxSGE SGEs, and why the next may not.
func checkRecvs(wrs []RecvWR, maxSGE int) (good int, bad error) {
	for i := range wrs {
		if n := len(wrs[i].SGList); n > maxSGE {
			return i, hint(syscall.EINVAL, "%d SGEs: a receive here has room for %d (MaxRecvSGE, SRQ.MaxSGE)", n, maxSGE)
		}
	}
	return len(wrs), nil
}

// postHint explains why a post failed; the QP should have been in state need
// or a later one.
func (qp *QP) postHint(err error, need QPState) error {
	if errors.Is(err, syscall.ENOMEM) {
		return errors.Join(ErrQueueFull, err)
	}
	if !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTCONN) {
		return err
	}
	attr, queryErr := queryQP(qp.qp, QPAttrState)
	if queryErr == nil && attr.State < need && !qp.siw {
		return hint(err, "the QP is in state %v, and must be in %v", attr.State, need)
	}
	return err
}
