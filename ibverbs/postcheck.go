package ibverbs

import "syscall"

// sendOp is what PostSend knows about an opcode.
type sendOp struct {
	ops    SendOps   // what a QP needs to post it through ibv_wr_*
	types  qpTypeSet // the QP types that have it
	data   bool      // takes SGList
	inline bool      // takes data inline
	extra  bool      // ibv_post_send(3) does not have it
	siw    bool      // Soft-iWARP has it
}

// qpTypeSet is a set of QP types, by bit. QPTypeDriver has its own rules, and
// may do anything.
type qpTypeSet uint16

const (
	onReliable  qpTypeSet = 1<<QPTypeRC | 1<<QPTypeXRCSend
	onConnected           = onReliable | 1<<QPTypeUC
	onDatagrams qpTypeSet = 1<<QPTypeUD | 1<<QPTypeRawPacket
)

func (s qpTypeSet) has(t QPType) bool { return t == QPTypeDriver || t < 16 && s&(1<<t) != 0 }

var sendOpTable = [...]sendOp{
	WRSend:             {ops: SendOpSend, types: onConnected | onDatagrams, data: true, inline: true, siw: true},
	WRSendWithImm:      {ops: SendOpSendWithImm, types: onConnected | 1<<QPTypeUD, data: true, inline: true},
	WRSendWithInv:      {ops: SendOpSendWithInv, types: onConnected, data: true, inline: true, siw: true},
	WRRDMAWrite:        {ops: SendOpRDMAWrite, types: onConnected, data: true, inline: true, siw: true},
	WRRDMAWriteWithImm: {ops: SendOpRDMAWriteWithImm, types: onConnected, data: true, inline: true},
	WRRDMARead:         {ops: SendOpRDMARead, types: onReliable, data: true, siw: true},
	WRAtomicCmpAndSwp:  {ops: SendOpAtomicCmpAndSwp, types: onReliable, data: true},
	WRAtomicFetchAdd:   {ops: SendOpAtomicFetchAdd, types: onReliable, data: true},
	WRLocalInv:         {ops: SendOpLocalInv, types: onConnected},
	WRBindMW:           {ops: SendOpBindMW, types: onConnected},
	WRTSO:              {ops: SendOpTSO, types: onDatagrams, data: true},
	WRFlush:            {ops: SendOpFlush, types: onReliable, extra: true},
	WRAtomicWrite:      {ops: SendOpAtomicWrite, types: onReliable, inline: true, extra: true},
}

// checkReady refuses sends before RTS, as providers do, except that rxe keeps
// what it has refused, and sends it later on.
func (qp *QP) checkReady() error {
	if qp.sendCQ == nil {
		return hint(syscall.EINVAL, "the QP has no send queue")
	}
	if state := QPState(qp.state.Load()); state < QPStateRTS && qp.dev.info.Transport != TransportIWARP {
		return hint(syscall.EINVAL, "the QP is in state %v, and must be in %v", state, QPStateRTS)
	}
	return nil
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
	if err := qp.checkOpcode(wr.Opcode); err != nil {
		return err
	}
	op := &sendOpTable[wr.Opcode]
	if len(wr.SGList) > int(qp.cap.MaxSendSGE) {
		return hint(syscall.EINVAL, "%d SGEs: the QP has room for %d (QPCap.MaxSendSGE)", len(wr.SGList), qp.cap.MaxSendSGE)
	}
	if len(wr.SGList) > 0 && !op.data {
		return hint(syscall.EINVAL, "%v takes no SGList", wr.Opcode)
	}
	if err := checkSGEs(wr.SGList); err != nil {
		return err
	}
	if wr.Inline != nil || wr.Flags&SendInline != 0 {
		if err := qp.checkInline(wr, op); err != nil {
			return err
		}
	}
	if qp.typ == QPTypeUD || wr.AH != nil {
		if err := qp.checkDatagram(wr); err != nil {
			return err
		}
	}
	switch wr.Opcode {
	case WRRDMARead:
		return qp.checkRead(wr)
	case WRAtomicCmpAndSwp, WRAtomicFetchAdd, WRAtomicWrite:
		return qp.checkAtomic(wr)
	case WRFlush:
		return checkFlush(wr)
	case WRTSO:
		return qp.checkTSO(wr)
	}
	return nil
}

// checkOpcode sees that the QP can carry the opcode out. Some providers look
// opcodes up in a table that is too short, and those that a QP was not created
// for lead nowhere.
func (qp *QP) checkOpcode(opcode WROpcode) error {
	if int(opcode) >= len(sendOpTable) || sendOpTable[opcode].types == 0 {
		return hint(syscall.EOPNOTSUPP, "PostSend does not know opcode %v", opcode)
	}
	op := &sendOpTable[opcode]
	switch {
	case qp.siw && !op.siw:
		// Its provider would print to standard error, or worse.
		return hint(syscall.EOPNOTSUPP, "Soft-iWARP has no %v", opcode)
	case !op.types.has(qp.typ):
		return hint(syscall.EINVAL, "%v QPs have no %v", qp.typ, opcode)
	case qp.ops == 0 && op.extra:
		return hint(syscall.EOPNOTSUPP, "ibv_post_send has no opcode %v: create the QP with QPInitAttr.SendOps %v", opcode, op.ops)
	case opcode == WRTSO && qp.tsoRoom() == 0:
		return hint(syscall.EOPNOTSUPP, "the QP has no TSO: create it with QPInitAttr.MaxTSOHeader")
	case qp.ops != 0 && qp.ops&op.ops == 0:
		return hint(syscall.EINVAL, "the QP was not created for %v (QPInitAttr.SendOps is %v)", opcode, qp.ops)
	}
	return nil
}

func (qp *QP) checkInline(wr *SendWR, op *sendOp) error {
	if !op.inline {
		return hint(syscall.EINVAL, "%v takes no inline data", wr.Opcode)
	}
	if wr.Opcode == WRAtomicWrite {
		return nil // its operand, rather than data
	}
	size := len(wr.Inline)
	if wr.Inline == nil {
		for _, sge := range wr.SGList {
			size += int(sge.Length)
		}
	}
	if size > int(qp.cap.MaxInlineData) {
		return hint(syscall.EINVAL, "%d bytes inline: the QP has room for %d (QPCap.MaxInlineData)", size, qp.cap.MaxInlineData)
	}
	return nil
}

func (qp *QP) checkRead(wr *SendWR) error {
	if limit := qp.limits.MaxSGERD; limit > 0 && len(wr.SGList) > limit {
		return hint(syscall.EINVAL, "%d SGEs: this device's READs have at most %d (DeviceAttr.MaxSGERD)", len(wr.SGList), limit)
	}
	return qp.checkDepth()
}

// checkDepth refuses what would wait for ever for its turn.
func (qp *QP) checkDepth() error {
	if qp.readDepth.Load() == 0 {
		return hint(syscall.EINVAL, "the QP's READ depth is 0: set QPAttr.MaxQPRDAtomic (rdmacm: InitiatorDepth)")
	}
	return nil
}

// checkAtomic refuses what the peer's device would end the connection for.
func (qp *QP) checkAtomic(wr *SendWR) error {
	if wr.RemoteAddr%atomicSize != 0 {
		return hint(syscall.EINVAL, "RemoteAddr %#x is not a multiple of %d", wr.RemoteAddr, atomicSize)
	}
	if wr.Opcode == WRAtomicWrite {
		if len(wr.Inline) != atomicSize {
			return hint(syscall.EINVAL, "ATOMIC_WRITE wants %d bytes Inline, not %d", atomicSize, len(wr.Inline))
		}
		return nil
	}
	size := uint64(0)
	for _, sge := range wr.SGList {
		size += uint64(sge.Length)
	}
	if size != atomicSize {
		return hint(syscall.EINVAL, "%v wants an SGList of %d bytes, not %d", wr.Opcode, atomicSize, size)
	}
	return qp.checkDepth()
}

func checkFlush(wr *SendWR) error {
	if wr.Flush == nil {
		return hint(syscall.EINVAL, "FLUSH needs SendWR.Flush")
	}
	return nil
}

// tsoRoom is how long a TSO header may be: QPInitAttr.MaxTSOHeader.
func (qp *QP) tsoRoom() int { return qp.send.slot - qp.send.header }

func (qp *QP) checkTSO(wr *SendWR) error {
	room := qp.tsoRoom()
	switch {
	case wr.TSO == nil:
		return hint(syscall.EINVAL, "TSO needs SendWR.TSO")
	case len(wr.TSO.Header) == 0, len(wr.TSO.Header) > room:
		return hint(syscall.EINVAL, "a TSO header of %d bytes: the QP has room for 1 to %d (QPInitAttr.MaxTSOHeader)", len(wr.TSO.Header), room)
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
		if err := checkSGEs(wrs[i].SGList); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}
