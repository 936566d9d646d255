package ibverbs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/goverbs/goverbs/internal/bridge"
)

// QPInitAttr says how to create a QP (struct ibv_qp_init_attr_ex). Fields that
// are zero ask for nothing: a QP with none of those after SigAll is one of
// ibv_create_qp(3), otherwise of ibv_create_qp_ex(3).
type QPInitAttr struct {
	Type QPType
	// SendCQ and RecvCQ may be the same. XRC_SEND QPs have no RecvCQ, XRC_RECV
	// QPs neither; all others need both.
	SendCQ *CQ
	RecvCQ *CQ
	Cap    QPCap
	// SRQ is where the QP takes its receives from. It has no receive queue of
	// its own then, and Cap's MaxRecvWR and MaxRecvSGE are not looked at. nil
	// means none.
	SRQ *SRQ
	// XRCD is the domain that an XRC_RECV QP serves; others have none.
	XRCD *XRCD
	// SigAll gives each send work request a completion, as if each had
	// SendSignaled.
	SigAll bool

	// SendOps makes PostSend post through ibv_wr_*(3), and names the opcodes
	// that the QP will post: no others may be. FLUSH and ATOMIC_WRITE work in
	// no other way.
	SendOps      SendOps
	CreateFlags  QPCreateFlags
	MaxTSOHeader uint16 // bytes of TSOHeader.Header
	SourceQPN    uint32 // UD: send with this QP number; 0 with the QP's own

	// RWQIndTable spreads what the QP receives over WQs, as RXHash says: such a
	// QP has no CQs, and takes no work requests. Both or neither are set.
	RWQIndTable *RWQIndTable
	RXHash      *RXHash
}

// extended tells whether ibv_create_qp(3) cannot make the QP.
func (attr *QPInitAttr) extended() bool {
	return attr.SendOps != 0 || attr.CreateFlags != 0 || attr.MaxTSOHeader != 0 || attr.SourceQPN != 0 || attr.RWQIndTable != nil
}

// cqs are the CQs that attr names, without nil.
func (attr *QPInitAttr) cqs() []*CQ {
	return slices.DeleteFunc([]*CQ{attr.SendCQ, attr.RecvCQ}, func(cq *CQ) bool { return cq == nil })
}

// CreateQP creates a queue pair in state RESET: ibv_create_qp(3), or
// ibv_create_qp_ex(3). The caller closes it, before its CQs and PD. Cap may be
// more than was asked for; see QP.Cap. A type, an opcode of SendOps or another
// feature that the device lacks satisfies errors.ErrUnsupported.
func (pd *PD) CreateQP(attr QPInitAttr) (*QP, error) { return pd.createQP(attr, nil) }

// createQP has maker make the C object, if there is one.
func (pd *PD) createQP(attr QPInitAttr, maker *bridge.Maker) (*QP, error) {
	op := "ibv_create_qp"
	if attr.extended() {
		op = "ibv_create_qp_ex"
	}
	if err := pd.checkQP(&attr); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	qp := &QP{
		dev: pd.dev, pd: pd, sendCQ: attr.SendCQ, recvCQ: attr.RecvCQ, srq: attr.SRQ, typ: attr.Type,
		ops: attr.SendOps, sigAll: attr.SigAll, siw: pd.dev.isSIW(), rxe: pd.dev.isRXE(),
		maker: maker,
	}
	qp.readDepth.Store(-1)
	parents := []*handle{&pd.handle}
	for _, cq := range attr.cqs() {
		parents = append(parents, &cq.handle)
	}
	if attr.XRCD != nil {
		parents = append(parents, &attr.XRCD.handle)
	}
	if attr.RWQIndTable != nil {
		parents = append(parents, &attr.RWQIndTable.handle)
	}
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

// checkQP refuses what some provider would not survive.
func (pd *PD) checkQP(attr *QPInitAttr) error {
	switch {
	case attr.RWQIndTable != nil || attr.RXHash != nil:
		if err := attr.checkRSS(pd.dev); err != nil {
			return err
		}
	case attr.Type == QPTypeXRCRecv:
		if len(attr.cqs()) > 0 {
			return hint(syscall.EINVAL, "XRC_RECV QPs have no CQs: their receives are the SRQs'")
		}
		if attr.XRCD == nil {
			return hint(syscall.EINVAL, "XRC_RECV QPs need an XRC domain")
		}
	case attr.XRCD != nil:
		return hint(syscall.EINVAL, "only XRC_RECV QPs have an XRC domain")
	case attr.SendCQ == nil:
		return hint(syscall.EINVAL, "%v QPs need a SendCQ", attr.Type)
	case attr.Type == QPTypeXRCSend && attr.RecvCQ != nil:
		return hint(syscall.EINVAL, "XRC_SEND QPs have no RecvCQ")
	case attr.Type != QPTypeXRCSend && attr.RecvCQ == nil:
		return hint(syscall.EINVAL, "%v QPs need a RecvCQ", attr.Type)
	}
	for _, cq := range attr.cqs() {
		if cq.dev != pd.dev {
			return hint(syscall.EINVAL, "%v is another device's", cq)
		}
	}
	if attr.XRCD != nil && attr.XRCD.dev != pd.dev {
		return hint(syscall.EINVAL, "%v is another device's", attr.XRCD)
	}
	if attr.SRQ != nil && attr.SRQ.pd.dev != pd.dev {
		return hint(syscall.EINVAL, "%v is another device's", attr.SRQ)
	}
	return pd.dev.checkSendOps(attr.SendOps)
}

// checkRSS checks a QP that spreads its receives.
func (attr *QPInitAttr) checkRSS(d *Device) error {
	switch {
	case attr.RWQIndTable == nil || attr.RXHash == nil:
		return hint(syscall.EINVAL, "RWQIndTable and RXHash go together")
	case attr.RWQIndTable.dev != d:
		return hint(syscall.EINVAL, "%v is another device's", attr.RWQIndTable)
	case len(attr.cqs()) > 0 || attr.SRQ != nil || attr.XRCD != nil:
		return hint(syscall.EINVAL, "a QP with a RWQIndTable has no CQs, SRQ or XRC domain")
	}
	return attr.RXHash.check()
}

// checkSendOps refuses what rdma-core takes and the kernel's driver then fails
// at, one work request after the other.
func (d *Device) checkSendOps(ops SendOps) error {
	newer := ops & (SendOpFlush | SendOpAtomicWrite)
	if newer == 0 {
		return nil
	}
	attr, err := d.QueryEx()
	if errors.Is(err, os.ErrClosed) {
		return os.ErrClosed
	}
	if err != nil {
		return hint(syscall.EOPNOTSUPP, "the device does not say that it has %v", newer)
	}
	if attr.CapFlagsEx&(DeviceFlushGlobal|DeviceFlushPersistent) != 0 {
		newer &^= SendOpFlush
	}
	if attr.CapFlagsEx&DeviceAtomicWrite != 0 {
		newer &^= SendOpAtomicWrite
	}
	if newer != 0 {
		return hint(syscall.EOPNOTSUPP, "the device or its kernel driver has no %v", newer)
	}
	return nil
}

func (qp *QP) create(attr *QPInitAttr) (err error) {
	if qp.limits, err = qp.dev.limits(); err != nil {
		return err
	}
	if qp.qp, qp.cap, err = createQP(qp.pd.pd, attr, qp.maker); err != nil {
		return qp.createHint(err, attr)
	}
	qp.qpn = qpNumber(qp.qp)
	if qp.rxe {
		// Creation says what was asked for, and the queues are longer.
		if init, err := queryQPInit(qp.qp); err == nil {
			qp.cap = init.Cap
		}
	}
	if err = qp.allocQueues(attr); err != nil {
		qp.destroy()
		return err
	}
	if qp.siw {
		qp.owed = newOwed(qp)
		qp.owed.enter()
	}
	qp.plainOps = qp.plain()
	if qp.rxe {
		qp.dev.qps.Store(qp.qpn, qp)
	}
	qp.named("%s/qp%d", qp.pd.object, qp.qpn)
	qp.dev.async.register(qpID(qp.qp), qp)
	return nil
}

// allocQueues prepares the C memory of posts.
func (qp *QP) allocQueues(attr *QPInitAttr) (err error) {
	if qp.ops != 0 {
		if qp.ex, err = qpToEx(qp.qp); err != nil {
			return hint(err, "the provider made a QP without ibv_wr_*")
		}
		qp.plainLists = qp.rxe && !fixedRXELists()
	}
	if qp.typ == QPTypeUD {
		qp.ud.held = make([]*AH, 0, wrBatch)
	}
	if err := qp.send.alloc(qp.cap, int(attr.MaxTSOHeader)); err != nil {
		return err
	}
	if err := qp.recv.alloc(qp.cap); err != nil {
		qp.send.free()
		return err
	}
	return nil
}

// destroy destroys the C object.
func (qp *QP) destroy() error {
	if qp.maker != nil {
		return qp.maker.Destroy()
	}
	return destroyQP(qp.qp)
}

func (qp *QP) createHint(err error, attr *QPInitAttr) error {
	l, c := &qp.limits, &attr.Cap
	switch {
	case errors.Is(err, syscall.EOPNOTSUPP) && attr.extended():
		return hint(err, "the device has no %v QPs with %s", attr.Type, attr.extras())
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

// extras names what makes a QP one of ibv_create_qp_ex(3).
func (attr *QPInitAttr) extras() string {
	var parts []string
	add := func(set bool, format string, v any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, v))
		}
	}
	add(attr.SendOps != 0, "SendOps %v", attr.SendOps)
	add(attr.CreateFlags != 0, "CreateFlags %v", attr.CreateFlags)
	add(attr.MaxTSOHeader != 0, "MaxTSOHeader %d", attr.MaxTSOHeader)
	add(attr.SourceQPN != 0, "SourceQPN %d", attr.SourceQPN)
	if attr.RWQIndTable != nil {
		parts = append(parts, "RWQIndTable")
	}
	return strings.Join(parts, ", ")
}
