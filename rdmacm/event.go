package rdmacm

import (
	"net/netip"
	"syscall"

	"github.com/goverbs/goverbs/ibverbs"
)

// Event is one report of the connection manager (struct rdma_cm_event),
// copied whole: it stays valid for ever and needs no acknowledgement.
type Event struct {
	Type EventType
	// Status is 0, a negative errno, or with EventRejected a reason: see Err.
	Status int
	// ID is whose event it is. With EventConnectRequest it is new: the
	// receiver accepts or rejects it, and closes it.
	ID *ID
	// ListenID is the listener, with EventConnectRequest; else nil.
	ListenID *ID
	// Param holds the peer's parameters, seen from here: ResponderResources
	// is what the peer would like to use of ours, InitiatorDepth what it
	// offers. Param.PrivateData is PrivateData.
	Param ConnParam
	// PrivateData is what the peer sent along: with EventConnectRequest,
	// EventConnectResponse, EventEstablished and EventRejected. RoCE and
	// InfiniBand pad it with zeros.
	PrivateData []byte
	// QKey belongs to the remote QP (Param.QPN) of a datagram service, or to a
	// multicast group.
	QKey uint32
	// AH is the path to that QP or group: with EventEstablished of a datagram
	// service and EventMulticastJoin. PD.CreateAH takes it.
	AH ibverbs.AHAttr
	// Group is the group, with EventMulticastJoin and EventMulticastError.
	Group netip.Addr
	// Arg is what ID.WriteEvent was given.
	Arg uint64

	err error // the failure of a step that this package took for the user
}

// ConnParam are the parameters of a connection (struct rdma_conn_param,
// rdma_connect(3)).
type ConnParam struct {
	// PrivateData goes to the peer; see MaxPrivateData for how much fits.
	PrivateData []byte
	// ResponderResources is how many RDMA READ and atomic operations of the
	// peer may be outstanding here at once. 0 allows none; MaxDepth as many
	// as possible.
	ResponderResources uint8
	// InitiatorDepth is how many of them may be outstanding from here. With 0
	// a READ never completes on some devices. MaxDepth means as many as
	// possible.
	InitiatorDepth uint8
	// FlowControl says that hardware flow control is available.
	FlowControl bool
	// RetryCount is how often the sender retries an unacknowledged send, 0 to
	// 7. Ignored when accepting: the connecting side decides.
	RetryCount uint8
	// RNRRetryCount is how often the peer retries when no receive is posted
	// here, 0 to 6; 7 means for ever.
	RNRRetryCount uint8
	// SRQ and QPN describe the QP. They are filled in for an ID that has one
	// (ID.CreateQP).
	SRQ bool
	QPN uint32
}

// route is what librdmacm knows of an ID's way.
type route struct {
	device    string
	transport ibverbs.Transport
	port      int
	src, dst  netip.AddrPort
	srcPort   uint16
	dstPort   uint16
	srcIB     *IBAddr // where the addresses are of that family
	dstIB     *IBAddr
	sgid      ibverbs.GID
	dgid      ibverbs.GID
	pkey      uint16
	paths     []PathRecord
}

// within gives link-local addresses the zone of the listener that a request came
// to: RoCE does not carry it.
func (r route) within(zone string) route {
	for _, addr := range []*netip.AddrPort{&r.src, &r.dst} {
		if addr.Addr().IsLinkLocalUnicast() && addr.Addr().Is6() && addr.Addr().Zone() == "" {
			*addr = netip.AddrPortFrom(addr.Addr().WithZone(zone), addr.Port())
		}
	}
	return r
}

func routeFromC(r *cRoute) route {
	out := route{
		transport: ibverbs.Transport(r.transport),
		port:      int(r.port_num),
		srcPort:   uint16(r.src_port),
		dstPort:   uint16(r.dst_port),
		pkey:      uint16(r.pkey),
		paths:     routePaths(r),
	}
	name := make([]byte, 0, len(r.device))
	for _, c := range r.device {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	out.device = string(name)
	var src, dst sockaddr
	for i := range src {
		src[i], dst[i] = byte(r.src[i]), byte(r.dst[i])
	}
	out.src, out.dst = fromSockaddr(src), fromSockaddr(dst)
	out.srcIB, out.dstIB = ibFromSockaddr(src), ibFromSockaddr(dst)
	for i := range out.sgid {
		out.sgid[i], out.dgid[i] = byte(r.sgid[i]), byte(r.dgid[i])
	}
	return out
}

// eventFromC copies an event, all but its IDs.
func eventFromC(ev *cEvent) *Event {
	out := &Event{
		Type:   EventType(ev._type),
		Status: int(ev.status),
		QKey:   uint32(ev.qkey),
		AH:     eventAH(ev),
		Arg:    uint64(ev.arg),
		Param: ConnParam{
			ResponderResources: uint8(ev.responder_resources),
			InitiatorDepth:     uint8(ev.initiator_depth),
			FlowControl:        ev.flow_control != 0,
			RetryCount:         uint8(ev.retry_count),
			RNRRetryCount:      uint8(ev.rnr_retry_count),
			SRQ:                ev.srq != 0,
			QPN:                uint32(ev.qp_num),
		},
	}
	if n := int(ev.private_data_len); n > 0 {
		out.PrivateData = make([]byte, n)
		for i := range out.PrivateData {
			out.PrivateData[i] = byte(ev.private_data[i])
		}
	}
	out.Param.PrivateData = out.PrivateData
	return out
}

// Err is the error that the event stands for: nil for a step that succeeded,
// EventTimewaitExit and EventUser, a *RejectError for EventRejected, ErrDisconnected,
// ErrDeviceRemoved or ErrAddrChanged, else the errno. All come wrapped in an
// *ibverbs.OpError.
func (e *Event) Err() error {
	op, err := e.cause()
	object := ""
	if e.ID != nil {
		object = e.ID.String()
	}
	return wrap(op, object, err)
}

func (e *Event) cause() (op string, err error) {
	switch e.Type {
	case EventAddrError:
		return "rdma_resolve_addr", statusErr(e.Status, syscall.EHOSTUNREACH)
	case EventRouteError:
		return "rdma_resolve_route", statusErr(e.Status, syscall.EHOSTUNREACH)
	case EventConnectError:
		if e.err != nil {
			return "rdma_establish", e.err
		}
		return "rdma_connect", statusErr(e.Status, syscall.ECONNABORTED)
	case EventUnreachable:
		if e.Status > 0 && e.ID != nil && e.ID.datagram() {
			return "rdma_connect", lookupError(e.Status, e.PrivateData)
		}
		return "rdma_connect", statusErr(e.Status, syscall.ENETUNREACH)
	case EventRejected:
		return "rdma_connect", rejectError(e.Status, e.PrivateData)
	case EventMulticastError:
		if e.err != nil {
			return "rdma_join_multicast", e.err
		}
		return "rdma_join_multicast", statusErr(e.Status, syscall.EIO)
	case EventAddrInfoError:
		return "rdma_resolve_addrinfo", statusErr(e.Status, syscall.EHOSTUNREACH)
	case EventUser:
		return "", nil // Status is the writer's own
	case EventDisconnected:
		return "rdma_get_cm_event", ErrDisconnected
	case EventDeviceRemoval:
		return "rdma_get_cm_event", ErrDeviceRemoved
	case EventAddrChange:
		return "rdma_get_cm_event", ErrAddrChanged
	}
	if e.Status < 0 {
		return "rdma_get_cm_event", syscall.Errno(-e.Status)
	}
	return "", nil
}

// statusErr reads a status as an errno; other stands for none.
func statusErr(status int, other syscall.Errno) error {
	switch {
	case status < 0:
		return syscall.Errno(-status)
	case status > 0:
		return syscall.Errno(status)
	}
	return other
}

// lookupError reads the answer to who asked for a datagram service in vain
// (SIDR's status, InfiniBand 12.11.2).
func lookupError(status int, data []byte) *RejectError {
	e := &RejectError{Status: status, PrivateData: data}
	switch status {
	case 1: // the service ID is not supported
		e.Reason = RejectNoListener
	case 2: // rejected by the service
		e.Reason = RejectConsumer
	case 3:
		e.Reason = RejectNoQP
	}
	return e
}

// rejectError reads the status of a rejection: with InfiniBand and RoCE a
// reason, with iWARP a negative errno. An iWARP peer's refusal (MPA reject)
// shows as ECONNRESET, a refusal below it as ECONNREFUSED.
func rejectError(status int, data []byte) *RejectError {
	e := &RejectError{Status: status, PrivateData: data}
	switch {
	case status >= 0:
		e.Reason = RejectReason(status)
	case syscall.Errno(-status) == syscall.ECONNREFUSED:
		e.Reason = RejectNoListener
	case syscall.Errno(-status) == syscall.ECONNRESET:
		e.Reason = RejectConsumer
	}
	return e
}
