package ibverbs

import (
	"errors"
	"sync/atomic"
	"syscall"
)

// datagrams is what a UD QP remembers for its posts.
type datagrams struct {
	port atomic.Uint32 // 0 while not known
	mtu  atomic.Int64  // the longest message in bytes, 0 while not known
	held []*AH         // those that the post under way names; under sendMu
}

// noteModified takes down what a UD QP's posts depend on.
func (qp *QP) noteModified(attr *QPAttr, mask QPAttrMask) {
	if qp.typ != QPTypeUD {
		return
	}
	if mask&QPAttrPort != 0 {
		qp.ud.port.Store(uint32(attr.Port))
	}
	if mask&QPAttrState != 0 {
		qp.learnMTU()
	}
}

// learnMTU asks how long the port's packets may be now.
func (qp *QP) learnMTU() {
	port := qp.ud.port.Load()
	if port == 0 {
		return
	}
	if attr, err := queryPort(qp.dev.ctx, uint8(port)); err == nil {
		qp.ud.mtu.Store(int64(attr.ActiveMTU.Bytes()))
	}
}

// checkDatagram checks a work request that goes to an AH, and keeps the AH open
// until releaseAHs.
func (qp *QP) checkDatagram(wr *SendWR) error {
	ah := wr.AH
	switch {
	case qp.typ != QPTypeUD && qp.typ != QPTypeDriver:
		return hint(syscall.EINVAL, "SendWR.AH is for UD QPs, and this is one of type %v", qp.typ)
	case ah == nil:
		return hint(syscall.EINVAL, "%v QPs need SendWR.AH", qp.typ)
	case !qp.pd.same(ah.pd):
		return hint(syscall.EINVAL, "%v is another PD's", ah)
	case wr.RemoteQPN>>qpnBits != 0:
		return hint(syscall.EINVAL, "RemoteQPN %#x: it has %d bits", wr.RemoteQPN, qpnBits)
	}
	if err := qp.holdAH(ah); err != nil {
		return hint(err, "%v", ah)
	}
	return qp.checkDatagramSize(wr)
}

// holdAH keeps ah open. A batch mostly has one AH: that is held once.
func (qp *QP) holdAH(ah *AH) error {
	if n := len(qp.ud.held); n > 0 && qp.ud.held[n-1] == ah {
		return nil
	}
	if err := ah.acquire(); err != nil {
		return err
	}
	qp.ud.held = append(qp.ud.held, ah)
	return nil
}

// releaseAHs undoes holdAH after a post. The caller holds sendMu.
func (qp *QP) releaseAHs() {
	for i, ah := range qp.ud.held {
		ah.release()
		qp.ud.held[i] = nil
	}
	qp.ud.held = qp.ud.held[:0]
}

// checkDatagramSize refuses a message that is longer than a packet: devices
// drop it, and say that it has been sent.
func (qp *QP) checkDatagramSize(wr *SendWR) error {
	limit := qp.ud.mtu.Load()
	if limit == 0 || wr.Opcode == WRTSO {
		return nil
	}
	size := int64(len(wr.Inline))
	if wr.Inline == nil {
		for i := range wr.SGList {
			size += int64(wr.SGList[i].Length)
		}
	}
	if size > limit {
		qp.learnMTU() // it may have grown
		limit = qp.ud.mtu.Load()
	}
	if size > limit {
		return hint(syscall.EMSGSIZE, "%d bytes: a UD message has at most %d, the port's MTU (PortAttr.ActiveMTU)", size, limit)
	}
	return nil
}

// destroyHint explains why a QP cannot be destroyed.
func (qp *QP) destroyHint(err error) error {
	if errors.Is(err, syscall.EBUSY) && qp.typ == QPTypeUD {
		return hint(err, "detach it from its multicast groups first (QP.DetachMcast)")
	}
	return err
}
