#include "shim_async.h"

#include <errno.h>

int gv_get_async_event(struct ibv_context *ctx, struct gv_async_event *event)
{
	struct ibv_async_event e;

	errno = 0;
	if (ibv_get_async_event(ctx, &e))
		return errno ? -errno : -EIO;
	event->object = 0;
	event->port = 0;
	event->type = e.event_type;
	switch (e.event_type) {
	case IBV_EVENT_CQ_ERR:
		event->object = (uintptr_t)e.element.cq;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		event->object = (uintptr_t)e.element.qp;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		event->object = (uintptr_t)e.element.srq;
		break;
	case IBV_EVENT_WQ_FATAL:
		event->object = (uintptr_t)e.element.wq;
		break;
	case IBV_EVENT_DEVICE_FATAL:
		break;
	default: /* all others, newer ones too, are a port's */
		event->port = e.element.port_num;
	}
	/* Acknowledged here, so that destroying the object never waits for Go code. */
	ibv_ack_async_event(&e);
	return 0;
}
