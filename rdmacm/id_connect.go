package rdmacm

import (
	"errors"
	"os"
	"syscall"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/bridge"
)

// errNotBound is what an operation gets that needs a device.
var errNotBound = syscall.EINVAL

// Connect asks the peer for a connection (rdma_connect(3)); the route must be
// resolved. EventEstablished follows, or EventConnectResponse where the ID has
// no QP of CreateQP's, or EventRejected, EventUnreachable or EventConnectError.
//
// On iWARP it does not return before TCP has connected, and holds an OS thread
// meanwhile: with a host that does not answer that takes minutes. There a
// closed port shows at once, as a *RejectError.
func (id *ID) Connect(p ConnParam) error {
	return id.call("rdma_connect", func() error {
		if err := id.prepare(&p, MaxDepth, MaxDepth); err != nil {
			return err
		}
		id.setReadDepth(&p)
		id.asked = p
		err := cConnect(id.c, p, id.gate())
		if err == syscall.ECONNREFUSED {
			return &RejectError{Reason: RejectNoListener, Status: -int(syscall.ECONNREFUSED)}
		}
		return privateDataHint(err, len(p.PrivateData))
	})
}

// Accept accepts the peer's request (rdma_accept(3)). A QP of CreateQP's is
// taken to RTS first. EventEstablished follows, or EventConnectError or
// EventUnreachable if the peer has given up.
//
// MaxDepth as one of the depths means what both the request and the device
// allow.
func (id *ID) Accept(p ConnParam) error {
	return id.call("rdma_accept", func() error {
		err := id.prepare(&p, id.request.ResponderResources, id.request.InitiatorDepth)
		if err != nil {
			return err
		}
		qp := id.qp.Load()
		if qp != nil && !id.datagram() && !id.managed {
			if err := id.connectQP(qp, &p); err != nil {
				return errors.Join(err, toError(qp))
			}
		}
		id.setReadDepth(&p)
		id.passive = true
		if err := cAccept(id.c, p); err != nil {
			if qp != nil {
				toError(qp)
			}
			return privateDataHint(err, len(p.PrivateData))
		}
		if id.managed && !id.datagram() {
			id.established(qp, p.InitiatorDepth)
		}
		return nil
	})
}

// prepare checks p and fills in what the QP tells. MaxDepth becomes what the
// device allows, up to the given bounds, so that the QP and the peer are told
// the same.
func (id *ID) prepare(p *ConnParam, maxResources, maxDepth uint8) error {
	if err := checkPrivateData(p.PrivateData); err != nil {
		return err
	}
	if id.DeviceName() == "" {
		return hint(errNotBound, "the ID is not bound to a device; call ResolveAddr first")
	}
	qp := id.qp.Load()
	if qp == nil {
		return nil
	}
	p.QPN = qp.QPN()
	if p.ResponderResources != MaxDepth && p.InitiatorDepth != MaxDepth {
		return nil
	}
	attr, err := qp.PD().Device().Query()
	if err != nil {
		return err
	}
	if p.ResponderResources == MaxDepth {
		p.ResponderResources = depth(attr.MaxQPRDAtom, maxResources)
	}
	if p.InitiatorDepth == MaxDepth {
		p.InitiatorDepth = depth(attr.MaxQPInitRDAtom, maxDepth)
	}
	return nil
}

// depth bounds what a device can do by what was asked for. 255 itself stands
// for "as much as possible", and is never a number.
func depth(device int, bound uint8) uint8 {
	return uint8(min(max(device, 0), int(bound), MaxDepth-1))
}

// setReadDepth tells the QP its READ depth where that is not one of the
// attributes that take it to RTS: iWARP goes there by itself.
func (id *ID) setReadDepth(p *ConnParam) {
	if qp := id.qp.Load(); qp != nil && id.iwarp() {
		bridge.SetReadDepth(qp, p.InitiatorDepth)
	}
}

// Establish completes the connection of an ID whose QP is the caller's own,
// after EventConnectResponse (rdma_establish(3)). An ID with a QP of CreateQP's
// does not need it.
func (id *ID) Establish() error {
	return id.call("rdma_establish", func() error { return cEstablish(id.c) })
}

// Reject rejects the peer's request (rdma_reject(3)), with private data for
// its RejectError. The ID is still to be closed.
func (id *ID) Reject(privateData []byte) error {
	return id.call("rdma_reject", func() error {
		if err := checkPrivateData(privateData); err != nil {
			return err
		}
		return privateDataHint(cReject(id.c, privateData), len(privateData))
	})
}

// Disconnect ends the connection, or answers the peer's disconnecting
// (rdma_disconnect(3)), without waiting. A QP of CreateQP's goes to the error
// state, so that all that is posted comes back flushed; on iWARP what has been
// sent still goes out. EventDisconnected follows once the peer has
// disconnected too, which may be never.
func (id *ID) Disconnect() error {
	return id.call("rdma_disconnect", func() error {
		qp := id.qp.Load()
		if qp != nil && !id.iwarp() && !id.managed {
			return errors.Join(toError(qp), cDisconnect(id.c))
		}
		err := cDisconnect(id.c)
		if qp != nil {
			// iWARP closes in order only if the QP was still in RTS, and
			// librdmacm takes a QP of its own there itself.
			toError(qp)
		}
		return err
	})
}

// toError flushes a QP, unless its owner has closed it already.
func toError(qp *ibverbs.QP) error {
	if err := qp.ToError(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
