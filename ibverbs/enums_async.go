package ibverbs

// #include "shim.h"
import "C"

// EventType says what an asynchronous event reports (enum ibv_event_type).
type EventType uint32

// Event types. AsyncEvent says which object each of them names.
const (
	EventCQErr             EventType = C.IBV_EVENT_CQ_ERR              // CQ_ERR
	EventQPFatal           EventType = C.IBV_EVENT_QP_FATAL            // QP_FATAL
	EventQPReqErr          EventType = C.IBV_EVENT_QP_REQ_ERR          // QP_REQ_ERR
	EventQPAccessErr       EventType = C.IBV_EVENT_QP_ACCESS_ERR       // QP_ACCESS_ERR
	EventCommEst           EventType = C.IBV_EVENT_COMM_EST            // COMM_EST
	EventSQDrained         EventType = C.IBV_EVENT_SQ_DRAINED          // SQ_DRAINED
	EventPathMig           EventType = C.IBV_EVENT_PATH_MIG            // PATH_MIG
	EventPathMigErr        EventType = C.IBV_EVENT_PATH_MIG_ERR        // PATH_MIG_ERR
	EventDeviceFatal       EventType = C.IBV_EVENT_DEVICE_FATAL        // DEVICE_FATAL
	EventPortActive        EventType = C.IBV_EVENT_PORT_ACTIVE         // PORT_ACTIVE
	EventPortErr           EventType = C.IBV_EVENT_PORT_ERR            // PORT_ERR
	EventLIDChange         EventType = C.IBV_EVENT_LID_CHANGE          // LID_CHANGE
	EventPKeyChange        EventType = C.IBV_EVENT_PKEY_CHANGE         // PKEY_CHANGE
	EventSMChange          EventType = C.IBV_EVENT_SM_CHANGE           // SM_CHANGE
	EventSRQErr            EventType = C.IBV_EVENT_SRQ_ERR             // SRQ_ERR
	EventSRQLimitReached   EventType = C.IBV_EVENT_SRQ_LIMIT_REACHED   // SRQ_LIMIT_REACHED
	EventQPLastWQEReached  EventType = C.IBV_EVENT_QP_LAST_WQE_REACHED // QP_LAST_WQE_REACHED
	EventClientReregister  EventType = C.IBV_EVENT_CLIENT_REREGISTER   // CLIENT_REREGISTER
	EventGIDChange         EventType = C.IBV_EVENT_GID_CHANGE          // GID_CHANGE
	EventWQFatal           EventType = C.IBV_EVENT_WQ_FATAL            // WQ_FATAL
	EventDeviceSpeedChange EventType = 20                              // DEVICE_SPEED_CHANGE
)

// Description is what libibverbs says of the type: ibv_event_type_str(3).
func (t EventType) Description() string { return eventDescription(t) }
