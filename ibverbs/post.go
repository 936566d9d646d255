package ibverbs

import (
	"errors"
	"os"
	"syscall"
)

// PostSend posts send work requests in order: ibv_post_send(3), or
// ibv_wr_start(3) to ibv_wr_complete(3) on a QP with QPInitAttr.SendOps, one
// cgo call for a batch of up to 128. It returns how many were accepted; if that
// is less than len(wrs), the error says why wrs[accepted] was not, or, with
// SendOps, why the batch that starts there was not, which ibv_wr_* takes or
// refuses as a whole. It never waits, and allocates nothing where all are
// accepted.
//
// What the QP's type, its creation or its sizes do not allow is refused before
// anything of it is posted.
//
// ErrQueueFull means that the send queue has no room now. Unsignaled work
// requests keep their room until a later signaled one has completed and been
// polled: signal at least one in QPCap.MaxSendWR, or the queue stays full.
func (qp *QP) PostSend(wrs []SendWR) (accepted int, err error) {
	const op = "ibv_post_send"
	qp.sendMu.Lock()
	if qp.plainOps != 0 && !qp.closed() && QPState(qp.state.Load()) >= QPStateRTS {
		if accepted, err = qp.postPlain(wrs); err == nil && accepted == len(wrs) {
			qp.sendMu.Unlock()
			return accepted, nil
		}
	}
	defer qp.sendMu.Unlock()
	if err != nil {
		return accepted, wrap(op, qp.object, qp.postHint(err, QPStateRTS))
	}
	if qp.closed() {
		return 0, wrap(op, qp.object, os.ErrClosed)
	}
	if err := qp.checkReady(); err != nil {
		return 0, wrap(op, qp.object, err)
	}
	defer qp.releaseAHs()
	good, bad := qp.checkSends(wrs[accepted:])
	for good += accepted; accepted < good; {
		done, err := qp.postBatch(wrs[accepted:good])
		accepted += done
		if err != nil {
			return accepted, wrap(op, qp.object, qp.postHint(err, QPStateRTS))
		}
	}
	return accepted, wrap(op, qp.object, bad)
}

// postPlain posts from wrs on, a batch at a time, until one has a work request
// that is not plain.
func (qp *QP) postPlain(wrs []SendWR) (accepted int, err error) {
	ops := qp.plainOps
	if qp.readDepth.Load() == 0 {
		ops &^= 1 << WRRDMARead
	}
	for accepted < len(wrs) {
		n, plain := qp.send.putPlain(wrs[accepted:], ops, int(qp.cap.MaxSendSGE), int(qp.cap.MaxInlineData))
		if !plain {
			return accepted, nil
		}
		done := n
		if qp.ex != nil {
			done, err = qp.send.postEx(qp.ex, n)
		} else if !qp.send.postAll(qp.qp, n) {
			done, err = qp.send.posted()
		}
		accepted += done
		if err != nil {
			return accepted, err
		}
	}
	return accepted, nil
}

// postBatch posts as many of wrs as cross to C at once.
func (qp *QP) postBatch(wrs []SendWR) (accepted int, err error) {
	if wrs[0].Opcode.alone() {
		if err := qp.postWindow(&wrs[0]); err != nil {
			return 0, err
		}
		return 1, nil
	}
	if qp.owed != nil {
		return qp.owed.postSends(wrs)
	}
	if qp.ex == nil {
		return qp.send.post(qp.qp, qp.send.put(wrs))
	}
	if !qp.plainLists {
		return qp.send.postEx(qp.ex, qp.send.put(wrs))
	}
	// Both ways of posting may take turns (ibv_wr_post(3)).
	list := len(wrs[0].SGList) > 1
	n := 1
	for n < len(wrs) && len(wrs[n].SGList) > 1 == list {
		n++
	}
	if n = qp.send.put(wrs[:n]); list {
		return qp.send.post(qp.qp, n)
	}
	return qp.send.postEx(qp.ex, n)
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
	switch {
	case qp.srq != nil:
		return 0, wrap(op, qp.object, hint(syscall.EINVAL, "the QP takes its receives from %v: post there", qp.srq))
	case qp.recvCQ == nil && qp.typ != QPTypeXRCSend && qp.typ != QPTypeXRCRecv:
		return 0, wrap(op, qp.object, hint(syscall.EINVAL, "the QP has no receive queue: post to the WQs of its RWQIndTable"))
	case qp.typ == QPTypeXRCSend || qp.typ == QPTypeXRCRecv:
		return 0, wrap(op, qp.object, hint(syscall.EINVAL, "%v QPs have no receive queue: post to an SRQ", qp.typ))
	}
	defer qp.receivesPosted()
	accepted, err = postRecvs(wrs, qp.cap.MaxRecvSGE, func(wrs []RecvWR) (int, error) {
		done, err := qp.postRecvBatch(wrs)
		if err != nil {
			err = qp.postHint(err, QPStateInit)
		}
		return done, err
	})
	return accepted, wrap(op, qp.object, err)
}

// postRecvs posts those of wrs that are right, whose SGEs are at most maxSGE.
// post posts as many as cross to C at once.
func postRecvs(wrs []RecvWR, maxSGE uint32, post func([]RecvWR) (int, error)) (accepted int, err error) {
	good, bad := checkRecvs(wrs, int(maxSGE))
	for accepted < good {
		done, err := post(wrs[accepted:good])
		accepted += done
		if err != nil {
			return accepted, err
		}
	}
	return accepted, bad
}

// postRecvBatch posts as many of wrs as cross to C at once.
func (qp *QP) postRecvBatch(wrs []RecvWR) (accepted int, err error) {
	if qp.owed != nil {
		return qp.owed.postRecvs(wrs)
	}
	return qp.recv.post(qp.qp, qp.recv.put(wrs))
}

// postHint explains why a post failed; the QP should have been in state need
// or a later one.
func (qp *QP) postHint(err error, need QPState) error {
	switch {
	case errors.Is(err, syscall.ENOMEM):
		return errors.Join(ErrQueueFull, err)
	case errors.Is(err, syscall.ENOSPC) && qp.ex != nil:
		// rxe's ibv_wr_* say it so.
		return errors.Join(ErrQueueFull, syscall.ENOMEM)
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
