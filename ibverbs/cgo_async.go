package ibverbs

// #include "shim_async.h"
import "C"

import "unsafe"

// objectID is the address of a C object, as a number: events name objects by
// it.
type objectID uintptr

func cqID(cq *cCQ) objectID { return objectID(unsafe.Pointer(cq)) }
func qpID(qp *cQP) objectID { return objectID(unsafe.Pointer(qp)) }

func asyncFD(ctx *cContext) int { return int(ctx.async_fd) }

// getAsyncEvent takes and acknowledges one event; EAGAIN where there is none.
func getAsyncEvent(ctx *cContext) (typ EventType, object objectID, port int, err error) {
	var e C.struct_gv_async_event
	ret := C.gv_get_async_event(ctx, &e)
	return EventType(e._type), objectID(e.object), int(e.port), retErr(int(ret), nil)
}

// eventDescription is libibverbs' own text.
func eventDescription(t EventType) string {
	return C.GoString(C.ibv_event_type_str(C.enum_ibv_event_type(t)))
}
