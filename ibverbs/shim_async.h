/* Asynchronous events: taken and acknowledged in one crossing. */
#ifndef GV_SHIM_ASYNC_H
#define GV_SHIM_ASYNC_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct gv_async_event {
	uintptr_t object; /* the address of the CQ, QP, SRQ or WQ, where the event is one's */
	int type;
	int port; /* where the event is a port's */
};

/* Takes one event and acknowledges it. Returns 0 or a negative errno. */
int gv_get_async_event(struct ibv_context *ctx, struct gv_async_event *event);

#endif
