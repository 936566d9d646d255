package ibverbs

// PostSendUnchecked is PostSend without its checks, for tests of what the
// providers say themselves.
func (qp *QP) PostSendUnchecked(wrs []SendWR) (accepted int, err error) {
	qp.sendMu.Lock()
	defer qp.sendMu.Unlock()
	return qp.postBatch(wrs)
}
