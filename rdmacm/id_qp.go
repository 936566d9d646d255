package rdmacm

import (
	"errors"
	"syscall"

	"github.com/goverbs/goverbs/ibverbs"
)

// kernelMask are mask bits that the kernel keeps for itself; some kernels
// hand them out.
const kernelMask = ibverbs.QPAttrMask(0xf << 21)

// CreateQP makes a QP for the ID's connection on pd, which must be on the ID's
// device, and takes it to INIT, so that receives can be posted (rdma_create_qp(3)).
// From then on the ID moves the QP along with the connection. The QP of a
// datagram service (PortSpaceUDP, PortSpaceIPoIB) goes to RTS at once.
//
// The QP is an ordinary one, made by ibverbs, and it is the caller's: close it
// after Disconnect, before or after the ID.
func (id *ID) CreateQP(pd *ibverbs.PD, attr ibverbs.QPInitAttr) (*ibverbs.QP, error) {
	var qp *ibverbs.QP
	err := id.call("rdma_create_qp", func() (err error) {
		if err := id.checkPD(pd); err != nil {
			return err
		}
		if qp, err = pd.CreateQP(attr); err != nil {
			return err
		}
		if err := id.initQP(qp); err != nil {
			return errors.Join(err, qp.Close())
		}
		id.qp.Store(qp)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return qp, nil
}

// datagram reports whether the ID's service has no connections.
func (id *ID) datagram() bool { return id.ps == PortSpaceUDP || id.ps == PortSpaceIPoIB }

// initQP takes a new QP as far as it goes before there is a connection.
func (id *ID) initQP(qp *ibverbs.QP) error {
	if err := id.moveQP(qp, ibverbs.QPStateInit, nil); err != nil || !id.datagram() {
		return err
	}
	if err := qp.Modify(ibverbs.QPAttr{State: ibverbs.QPStateRTR}, ibverbs.QPAttrState); err != nil {
		return err
	}
	return qp.Modify(ibverbs.QPAttr{State: ibverbs.QPStateRTS}, ibverbs.QPAttrState|ibverbs.QPAttrSQPSN)
}

func (id *ID) checkPD(pd *ibverbs.PD) error {
	dev := id.DeviceName()
	switch {
	case dev == "":
		return hint(errNotBound, "the ID is not bound to a device; call ResolveAddr or BindAddr first")
	case pd.Device().Name() != dev:
		return hint(syscall.EINVAL, "the PD is on %s, but the connection runs over %s", pd.Device().Name(), dev)
	case id.qp.Load() != nil:
		return hint(syscall.EINVAL, "the ID has a QP already")
	}
	return nil
}

// QP is the QP that CreateQP made; nil where there is none.
func (id *ID) QP() *ibverbs.QP { return id.qp.Load() }

// InitQPAttr tells which attributes take a QP to a state, and their values for
// this connection (rdma_init_qp_attr(3)). Give both to QP.Modify. It is for
// those who bring a QP that CreateQP did not make.
func (id *ID) InitQPAttr(state ibverbs.QPState) (ibverbs.QPAttr, ibverbs.QPAttrMask, error) {
	var attr ibverbs.QPAttr
	var mask ibverbs.QPAttrMask
	err := id.call("rdma_init_qp_attr", func() (err error) {
		attr, mask, err = cInitQPAttr(id.c, state)
		mask &^= kernelMask
		return err
	})
	return attr, mask, err
}

// connectQP takes qp to RTS. INIT comes again, since the connection's access
// rights are known only now. p is nil on the connecting side: there the
// kernel's values are the negotiated ones.
func (id *ID) connectQP(qp *ibverbs.QP, p *ConnParam) error {
	for _, state := range []ibverbs.QPState{ibverbs.QPStateInit, ibverbs.QPStateRTR, ibverbs.QPStateRTS} {
		if err := id.moveQP(qp, state, p); err != nil {
			return err
		}
	}
	return nil
}

// moveQP runs under id.mu.
func (id *ID) moveQP(qp *ibverbs.QP, state ibverbs.QPState, p *ConnParam) error {
	attr, mask, err := cInitQPAttr(id.c, state)
	if err != nil {
		return err
	}
	mask &^= kernelMask
	if mask&ibverbs.QPAttrState == 0 {
		// iWARP goes to RTS by itself, when it connects.
		return nil
	}
	if mask&ibverbs.QPAttrMinRNRTimer != 0 {
		attr.MinRNRTimer = uint8(id.rnrTimer.Load())
	}
	if p != nil && mask&ibverbs.QPAttrMaxDestRDAtomic != 0 {
		attr.MaxDestRDAtomic = p.ResponderResources
	}
	if p != nil && mask&ibverbs.QPAttrMaxQPRDAtomic != 0 {
		attr.MaxQPRDAtomic = p.InitiatorDepth
	}
	return qp.Modify(attr, mask)
}

// process does to the ID and its QP what an event asks for. It reports whether
// the user is to see the event.
func (id *ID) process(ev *Event, r route, join uint64) bool {
	qp := id.qp.Load()
	switch ev.Type {
	case EventAddrResolved, EventRouteResolved:
		id.setRoute(r)
	case EventMulticastJoin, EventMulticastError:
		return id.joined(ev, join)
	case EventConnectResponse:
		if qp != nil {
			id.finishConnect(qp, ev)
		}
	case EventEstablished:
		if id.iwarp() {
			// The kernel has them the wrong way round (cma_iw_handler): the
			// depth of what the peer may read here is called the initiator's.
			ev.Param.ResponderResources, ev.Param.InitiatorDepth = ev.Param.InitiatorDepth, ev.Param.ResponderResources
		}
		if qp != nil && !id.datagram() {
			id.noteEstablished(qp, ev)
		}
	case EventRejected, EventDisconnected:
		if id.hidden.Load() {
			return false
		}
		if qp != nil {
			toError(qp)
		}
	case EventDeviceRemoval:
		if qp != nil {
			toError(qp)
		}
		cForgetDevices()
	}
	return true
}

// noteEstablished learns what librdmacm has done to a QP of its own on the
// connecting side; the accepting side knows since Accept.
func (id *ID) noteEstablished(qp *ibverbs.QP, ev *Event) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if !id.managed || id.passive {
		return
	}
	id.established(qp, grant(id.asked, ev.Param).InitiatorDepth)
}

// finishConnect completes the connecting side's half of the handshake, and
// turns the event into what librdmacm would report.
func (id *ID) finishConnect(qp *ibverbs.QP, ev *Event) {
	err := id.call("rdma_establish", func() error {
		if err := id.connectQP(qp, nil); err != nil {
			cReject(id.c, nil)
			return err
		}
		return cEstablish(id.c)
	})
	if err == nil {
		ev.Type = EventEstablished
		return
	}
	id.hidden.Store(true)
	toError(qp)
	ev.Type = EventConnectError
	ev.err = err
	var errno syscall.Errno
	if errors.As(err, &errno) {
		ev.Status = -int(errno)
	}
}
