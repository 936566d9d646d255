package ibverbs

// A work request that is posted to a queue pair in the error state completes as
// flushed: so the verbs have it. The software drivers leave out some of that,
// since posts do not always reach the kernel, where the state is:
//
//   - rxe flushes sends, but looks at receives only when something happens to
//     the queue pair.
//   - Soft-iWARP forgets sends and receives alike; see owed.
//
// So the first completion that says that a queue pair has failed makes sure, by
// ibv_modify_qp(3), that all it has is flushed, and on rxe so does each
// receive that is posted afterwards.

// noteFailure looks for the first failure of each of rxe's queue pairs.
func (d *Device) noteFailure(qpn uint32, status WCStatus) {
	if qp, ok := d.qps.Load(qpn); ok {
		qp.(*QP).fail(status)
	}
}

// fail moves the QP to the error state after a failed completion, in which it
// is: any failure takes a reliable QP there, and only such a QP is flushed.
func (qp *QP) fail(status WCStatus) {
	if qp.typ != QPTypeRC && status != WCStatusWRFlushErr {
		return
	}
	// After RESET, the completion may be of the time before.
	if qp.wasReset.Load() || !qp.failed.CompareAndSwap(false, true) || qp.acquire() != nil {
		return
	}
	defer qp.release()
	if modifyQP(qp.qp, &QPAttr{State: QPStateErr}, QPAttrState) == nil {
		qp.inError()
	}
}

// inError notes that the kernel has moved the QP to the error state.
func (qp *QP) inError() {
	qp.state.Store(uint32(QPStateErr))
	switch {
	case qp.owed != nil:
		qp.owed.end()
	case qp.rxe:
		// Receives may have been posted between the move and the note of it.
		qp.flushRXE()
	}
}

// receivesPosted flushes what came too late.
func (qp *QP) receivesPosted() {
	if qp.rxe && QPState(qp.state.Load()) == QPStateErr {
		qp.flushRXE()
	}
}

// flushRXE makes rxe flush the receives that it does not know of.
func (qp *QP) flushRXE() { modifyQP(qp.qp, &QPAttr{State: QPStateErr}, QPAttrState) }
