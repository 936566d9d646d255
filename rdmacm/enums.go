package rdmacm

//go:generate go tool -modfile=../ci/tools/go.mod stringer -linecomment -output=enums_string.go -type=EventType,PortSpace,JoinFlags,RejectReason,TransportKind

// #include "shim.h"
import "C"

// EventType says what an Event reports (enum rdma_cm_event_type,
// rdma_get_cm_event(3)).
type EventType int32

// Event types.
const (
	EventAddrResolved    EventType = C.RDMA_CM_EVENT_ADDR_RESOLVED    // ADDR_RESOLVED
	EventAddrError       EventType = C.RDMA_CM_EVENT_ADDR_ERROR       // ADDR_ERROR
	EventRouteResolved   EventType = C.RDMA_CM_EVENT_ROUTE_RESOLVED   // ROUTE_RESOLVED
	EventRouteError      EventType = C.RDMA_CM_EVENT_ROUTE_ERROR      // ROUTE_ERROR
	EventConnectRequest  EventType = C.RDMA_CM_EVENT_CONNECT_REQUEST  // CONNECT_REQUEST
	EventConnectResponse EventType = C.RDMA_CM_EVENT_CONNECT_RESPONSE // CONNECT_RESPONSE
	EventConnectError    EventType = C.RDMA_CM_EVENT_CONNECT_ERROR    // CONNECT_ERROR
	EventUnreachable     EventType = C.RDMA_CM_EVENT_UNREACHABLE      // UNREACHABLE
	EventRejected        EventType = C.RDMA_CM_EVENT_REJECTED         // REJECTED
	EventEstablished     EventType = C.RDMA_CM_EVENT_ESTABLISHED      // ESTABLISHED
	EventDisconnected    EventType = C.RDMA_CM_EVENT_DISCONNECTED     // DISCONNECTED
	EventDeviceRemoval   EventType = C.RDMA_CM_EVENT_DEVICE_REMOVAL   // DEVICE_REMOVAL
	EventMulticastJoin   EventType = C.RDMA_CM_EVENT_MULTICAST_JOIN   // MULTICAST_JOIN
	EventMulticastError  EventType = C.RDMA_CM_EVENT_MULTICAST_ERROR  // MULTICAST_ERROR
	EventAddrChange      EventType = C.RDMA_CM_EVENT_ADDR_CHANGE      // ADDR_CHANGE
	EventTimewaitExit    EventType = C.RDMA_CM_EVENT_TIMEWAIT_EXIT    // TIMEWAIT_EXIT

	// From rdma-core 59 on; see ID.ResolveAddrInfo and ID.WriteEvent.
	EventAddrInfoResolved EventType = C.GV_CM_EVENT_ADDRINFO_RESOLVED // ADDRINFO_RESOLVED
	EventAddrInfoError    EventType = C.GV_CM_EVENT_ADDRINFO_ERROR    // ADDRINFO_ERROR
	EventUser             EventType = C.GV_CM_EVENT_USER              // USER
)

// PortSpace is the space that an ID's ports are numbered in, and with it the
// kind of service (enum rdma_port_space, rdma_create_id(3)).
type PortSpace int32

// Port spaces.
const (
	PortSpaceTCP   PortSpace = C.RDMA_PS_TCP   // TCP
	PortSpaceUDP   PortSpace = C.RDMA_PS_UDP   // UDP
	PortSpaceIB    PortSpace = C.RDMA_PS_IB    // IB
	PortSpaceIPoIB PortSpace = C.RDMA_PS_IPOIB // IPoIB
)

// UDPQKey is the Q_Key of datagram services and of multicast groups that
// librdmacm joins (RDMA_UDP_QKEY).
const UDPQKey = C.RDMA_UDP_QKEY

// JoinFlags say how an ID takes part in a multicast group
// (enum rdma_cm_mc_join_flags, rdma_join_multicast_ex(3)).
type JoinFlags int32

// Join flags.
const (
	JoinFullMember JoinFlags = C.RDMA_MC_JOIN_FLAG_FULLMEMBER          // FULLMEMBER
	JoinSendOnly   JoinFlags = C.RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER // SENDONLY_FULLMEMBER
)

// MaxDepth as ConnParam.ResponderResources or InitiatorDepth asks for as much
// as the device and, on the accepting side, the peer's request allow.
const MaxDepth = C.RDMA_MAX_RESP_RES

// MaxPrivateData is the most private data that librdmacm can count. A
// transport may carry less: RoCE and InfiniBand take 56 bytes with a connect,
// 196 with an accept and 148 with a reject, and pad what they carry with zeros
// up to that length.
const MaxPrivateData = C.GV_CM_PRIVATE_DATA_MAX

// RejectReason says why a peer, or the network's connection manager on its
// behalf, rejected a connection. The numbers are the InfiniBand
// specification's (12.6.7.2); what iWARP reports is mapped to them.
type RejectReason int32

// Reject reasons. librdmacm has no names for them.
const (
	RejectUnknown                   RejectReason = 0  // unknown reason
	RejectNoQP                      RejectReason = 1  // no QP available
	RejectNoEEC                     RejectReason = 2  // no EE context available
	RejectNoResources               RejectReason = 3  // no resources available
	RejectTimeout                   RejectReason = 4  // the peer gave up waiting
	RejectUnsupported               RejectReason = 5  // unsupported request
	RejectInvalidCommID             RejectReason = 6  // invalid communication ID
	RejectInvalidCommInstance       RejectReason = 7  // invalid communication instance
	RejectNoListener                RejectReason = 8  // nobody listens on that port
	RejectInvalidTransportType      RejectReason = 9  // invalid transport service type
	RejectStaleConn                 RejectReason = 10 // stale connection
	RejectRDCNotExist               RejectReason = 11 // RDC does not exist
	RejectInvalidGID                RejectReason = 12 // invalid GID
	RejectInvalidLID                RejectReason = 13 // invalid LID
	RejectInvalidSL                 RejectReason = 14 // invalid service level
	RejectInvalidTrafficClass       RejectReason = 15 // invalid traffic class
	RejectInvalidHopLimit           RejectReason = 16 // invalid hop limit
	RejectInvalidPacketRate         RejectReason = 17 // invalid packet rate
	RejectInvalidAltGID             RejectReason = 18 // invalid alternate GID
	RejectInvalidAltLID             RejectReason = 19 // invalid alternate LID
	RejectInvalidAltSL              RejectReason = 20 // invalid alternate service level
	RejectInvalidAltTrafficClass    RejectReason = 21 // invalid alternate traffic class
	RejectInvalidAltHopLimit        RejectReason = 22 // invalid alternate hop limit
	RejectInvalidAltPacketRate      RejectReason = 23 // invalid alternate packet rate
	RejectPortCMRedirect            RejectReason = 24 // redirected to another port
	RejectPortRedirect              RejectReason = 25 // redirected
	RejectInvalidMTU                RejectReason = 26 // invalid MTU
	RejectInsufficientRespResources RejectReason = 27 // insufficient responder resources
	RejectConsumer                  RejectReason = 28 // refused by the peer's application
	RejectInvalidRNRRetry           RejectReason = 29 // invalid RNR retry count
	RejectDuplicateLocalCommID      RejectReason = 30 // duplicate communication ID
	RejectInvalidClassVersion       RejectReason = 31 // invalid class version
	RejectInvalidFlowLabel          RejectReason = 32 // invalid flow label
	RejectInvalidAltFlowLabel       RejectReason = 33 // invalid alternate flow label
	RejectVendorOption              RejectReason = 35 // vendor option not supported
)

// TransportKind is the wire protocol of a connection.
type TransportKind int32

// Transport kinds.
const (
	TransportInfiniBand TransportKind = iota + 1 // InfiniBand
	TransportRoCE                                // RoCE
	TransportIWARP                               // iWARP
)
