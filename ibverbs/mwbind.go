package ibverbs

import (
	"os"
	"syscall"
)

// BindMW binds a window of type 1: ibv_bind_mw(3). It posts that to the send
// queue, and does not wait: with SendSignaled in flags (or QPInitAttr.SigAll)
// there will be a completion with this WRID and WCBindMW. MW.RKey is the new
// key at once; the old one is void when the bind has completed. A Length of 0
// takes the window's memory away.
//
// What the device would refuse, and fail the QP for, is refused before: a
// region without AccessMWBind, of another PD or too short.
func (qp *QP) BindMW(wrID uint64, flags SendFlags, bind MWBind) error {
	const op = "ibv_bind_mw"
	qp.sendMu.Lock()
	defer qp.sendMu.Unlock()
	if qp.closed() {
		return wrap(op, qp.object, os.ErrClosed)
	}
	if err := qp.checkReady(); err != nil {
		return wrap(op, qp.object, err)
	}
	if err := bind.check(qp, MWType1); err != nil {
		return wrap(op, qp.object, err)
	}
	return wrap(op, qp.object, bind.hold(func(mw *MW, mr *MR) error {
		err := bindMW(qp.qp, mw.mw, wrID, flags, mr.mr, &bind)
		if err != nil {
			return qp.postHint(err, QPStateRTS)
		}
		mw.last = mr
		mw.rkey.Store(mwRKey(mw.mw))
		return nil
	}))
}

// hold calls bind with window and region, which stay open meanwhile. The
// region is the last one where it takes a type 1 window's memory away: rxe's
// provider looks at it then too.
func (b *MWBind) hold(bind func(mw *MW, mr *MR) error) error {
	mw, mr := b.MW, b.MR
	if err := mw.acquire(); err != nil {
		return hint(err, "the memory window")
	}
	defer mw.release()
	mw.mu.Lock()
	defer mw.mu.Unlock()
	if mr == nil {
		if mr = mw.last; mr == nil {
			return hint(syscall.EINVAL, "%v is not bound", mw)
		}
	}
	if err := mr.acquire(); err != nil {
		return hint(err, "the memory region")
	}
	defer mr.release()
	return bind(mw, mr)
}

// alone tells opcodes that are posted one by one, since what they do to a
// window decides over the next one.
func (op WROpcode) alone() bool { return op == WRBindMW || op == WRLocalInv }

// postWindow posts a work request that binds or invalidates a window. The
// caller holds sendMu.
func (qp *QP) postWindow(wr *SendWR) error {
	if wr.Opcode == WRLocalInv {
		return qp.postLocalInv(wr)
	}
	if err := wr.Bind.check(qp, MWType2); err != nil {
		return err
	}
	return wr.Bind.hold(func(mw *MW, mr *MR) error {
		key, err := wr.Bind.key()
		if err != nil {
			return err
		}
		before := mw.qp
		if before != qp {
			// A QP that goes while a window is bound to it hangs rxe.
			if err := mw.join(&qp.handle); err != nil {
				return err
			}
		}
		qp.send.putBind(wr, mw.mw, mr.mr, key)
		if err := qp.postOne(); err != nil {
			if before != qp {
				mw.leave(&qp.handle)
			}
			return err
		}
		if before != nil && before != qp {
			mw.leave(&before.handle)
		}
		setMWRKey(mw.mw, key)
		mw.rkey.Store(key)
		mw.qp, mw.bound = qp, true
		return nil
	})
}

// postOne posts the work request that has been laid out.
func (qp *QP) postOne() error {
	if qp.ex != nil {
		_, err := qp.send.postEx(qp.ex, 1)
		return err
	}
	_, err := qp.send.post(qp.qp, 1)
	return err
}

// postLocalInv posts an invalidation. rxe oopses when the window is not bound.
func (qp *QP) postLocalInv(wr *SendWR) error {
	mw, unlock := qp.dev.window(wr.InvalidateRKey)
	defer unlock()
	if bound := mw != nil && mw.bound && mw.qp == qp; qp.rxe && !bound {
		return hint(syscall.EINVAL, "no memory window with key %#x is bound to this QP", wr.InvalidateRKey)
	}
	qp.send.put([]SendWR{*wr})
	err := qp.postOne()
	if err == nil && mw != nil {
		mw.bound = false
	}
	return err
}

// window finds the type 2 window that has this key now, or nil, and locks it.
func (d *Device) window(rkey uint32) (mw *MW, unlock func()) {
	if v, ok := d.windows.Load(rkey >> 8); ok {
		mw = v.(*MW)
		mw.mu.Lock()
		if mw.RKey() == rkey {
			return mw, mw.mu.Unlock
		}
		mw.mu.Unlock()
	}
	return nil, func() {}
}

// mend corrects completions of rxe, and notes what they tell: of windows that
// peers have invalidated, and of QPs that have failed.
func (cq *CQ) mend(wcs []WC) {
	if !cq.rxe {
		return
	}
	for i := range wcs {
		wc := &wcs[i]
		wc.Flags = cq.dev.mendRXE(wc.Status, wc.QPN, wc.Flags, wc.imm)
	}
}

// mendEx is mend for an extended CQ.
func (cq *CQEx) mendEx(wcs []WCEx) {
	if !cq.rxe {
		return
	}
	for i := range wcs {
		wc := &wcs[i]
		wc.Flags = cq.dev.mendRXE(wc.Status, wc.QPN, wc.Flags, wc.imm)
	}
}

// mendRXE notes a failure, and corrects the flags of a receive with invalidate,
// for which rxe gives the kernel's number: libibverbs calls that IP_CSUM_OK, and
// rxe has no checksums to report.
func (d *Device) mendRXE(status WCStatus, qpn uint32, flags WCFlags, rkey uint32) WCFlags {
	if status != WCStatusSuccess {
		d.noteFailure(qpn, status)
		return flags
	}
	if flags&WCIPCsumOK == 0 {
		return flags
	}
	mw, unlock := d.window(rkey)
	if mw != nil {
		mw.bound = false
	}
	unlock()
	return flags&^WCIPCsumOK | WCWithInv
}
