#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

static void copy_addr(uint8_t *out, const struct sockaddr *sa)
{
	switch (sa->sa_family) {
	case AF_INET:
		memcpy(out, sa, sizeof(struct sockaddr_in));
		break;
	case AF_INET6:
		memcpy(out, sa, sizeof(struct sockaddr_in6));
		break;
	case AF_IB:
		memcpy(out, sa, sizeof(struct sockaddr_ib));
		break;
	}
}

void gv_cm_route(struct rdma_cm_id *id, struct gv_cm_route *out)
{
	memset(out, 0, sizeof(*out));
	out->transport = IBV_TRANSPORT_UNKNOWN;
	if (id->verbs) {
		strncpy(out->device, id->verbs->device->name,
			sizeof(out->device) - 1);
		out->transport = id->verbs->device->transport_type;
	}
	out->port_num = id->port_num;
	copy_addr(out->src, rdma_get_local_addr(id));
	copy_addr(out->dst, rdma_get_peer_addr(id));
	memcpy(out->sgid, &id->route.addr.addr.ibaddr.sgid, sizeof(out->sgid));
	memcpy(out->dgid, &id->route.addr.addr.ibaddr.dgid, sizeof(out->dgid));
	out->src_port = be16toh(rdma_get_src_port(id));
	out->dst_port = be16toh(rdma_get_dst_port(id));
	out->pkey = be16toh(id->route.addr.addr.ibaddr.pkey);
	if (!id->route.path_rec)
		return;
	out->num_paths = id->route.num_paths;
	if (out->num_paths > GV_CM_PATHS)
		out->num_paths = GV_CM_PATHS;
	memcpy(out->paths, id->route.path_rec,
	       out->num_paths * sizeof(out->paths[0]));
}

static void copy_private_data(struct gv_cm_event *out, const void *data,
			      uint8_t len)
{
	if (!data)
		return;
	out->private_data_len = len;
	memcpy(out->private_data, data, len);
}

static void copy_param(const struct rdma_cm_event *ev, struct gv_cm_event *out)
{
	const struct rdma_conn_param *conn = &ev->param.conn;
	const struct rdma_ud_param *ud = &ev->param.ud;

	switch (ev->event) {
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		/* private_data is the caller's context here, not data. */
		out->join = (uintptr_t)ud->private_data;
		out->qp_num = ud->qp_num;
		out->qkey = ud->qkey;
		out->ah = ud->ah_attr;
		return;
	default:
		break;
	}
	if ((int)ev->event == GV_CM_EVENT_USER) {
		memcpy(&out->arg, &ev->param, sizeof(out->arg));
		return;
	}
	if (out->is_ud) {
		out->qp_num = ud->qp_num;
		out->qkey = ud->qkey;
		out->ah = ud->ah_attr;
		copy_private_data(out, ud->private_data, ud->private_data_len);
		return;
	}
	out->responder_resources = conn->responder_resources;
	out->initiator_depth = conn->initiator_depth;
	out->flow_control = conn->flow_control;
	out->retry_count = conn->retry_count;
	out->rnr_retry_count = conn->rnr_retry_count;
	out->srq = conn->srq;
	out->qp_num = conn->qp_num;
	copy_private_data(out, conn->private_data, conn->private_data_len);
}

/* Copies an event that is not acknowledged yet; errno is rdma_get_cm_event's. */
static void copy_event(struct rdma_cm_event *ev, uintptr_t new_token,
		       struct gv_cm_event *out)
{
	struct rdma_cm_id *id = ev->id;

	out->type = ev->event;
	out->status = ev->status;
	/* A step that librdmacm took itself failed: the reason is in errno. */
	if (ev->status == -1 && errno)
		out->status = -errno;
	out->is_ud = id->qp_type == IBV_QPT_UD;
	copy_param(ev, out);
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		if (ev->listen_id)
			out->listen_token = (uintptr_t)ev->listen_id->context;
		id->context = (void *)new_token;
		out->new_id = id;
	}
	out->token = (uintptr_t)id->context;
	gv_cm_route(id, &out->route);
}

int gv_cm_get_event(struct rdma_event_channel *channel, uintptr_t new_token,
		    struct gv_cm_event *out)
{
	struct rdma_cm_event *ev;

	memset(out, 0, sizeof(*out));
	errno = 0;
	if (rdma_get_cm_event(channel, &ev))
		return errno ? -errno : -EIO;

	copy_event(ev, new_token, out);
	/* From here on rdma_destroy_id may free id at any time. */
	rdma_ack_cm_event(ev);
	return 0;
}

int gv_cm_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		    uintptr_t token, int ps)
{
	return rdma_create_id(channel, id, (void *)token, ps);
}

/* Runs CALL with all signals blocked; errno is CALL's. */
#define WITHOUT_SIGNALS(call)                             \
	do {                                              \
		sigset_t all, old;                        \
		int saved;                                \
                                                          \
		sigfillset(&all);                         \
		pthread_sigmask(SIG_BLOCK, &all, &old);   \
		call;                                     \
		saved = errno;                            \
		pthread_sigmask(SIG_SETMASK, &old, NULL); \
		errno = saved;                            \
	} while (0)

int gv_cm_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int ret;

	WITHOUT_SIGNALS(ret = rdma_connect(id, param));
	return ret;
}

int gv_cm_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int ret;

	WITHOUT_SIGNALS(ret = rdma_accept(id, param));
	return ret;
}

int gv_cm_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	int ret;

	WITHOUT_SIGNALS(ret = rdma_reject(id, data, len));
	return ret;
}

int gv_cm_disconnect(struct rdma_cm_id *id)
{
	int ret;

	WITHOUT_SIGNALS(ret = rdma_disconnect(id));
	return ret;
}

int gv_cm_listen(struct rdma_cm_id *id, int backlog)
{
	int ret;

	WITHOUT_SIGNALS(ret = rdma_listen(id, backlog));
	return ret;
}

int gv_cm_destroy_id(struct rdma_cm_id *id)
{
	int ret;

	WITHOUT_SIGNALS(ret = rdma_destroy_id(id));
	return ret;
}

void gv_cm_destroy_event_channel(struct rdma_event_channel *channel)
{
	WITHOUT_SIGNALS(rdma_destroy_event_channel(channel));
}

int gv_cm_bind_addr(struct rdma_cm_id *id, const uint8_t *addr)
{
	struct sockaddr_storage sa = {};

	memcpy(&sa, addr, GV_CM_ADDR_SIZE);
	return rdma_bind_addr(id, (struct sockaddr *)&sa);
}

int gv_cm_resolve_addr(struct rdma_cm_id *id, const uint8_t *src,
		       const uint8_t *dst, int timeout_ms)
{
	struct sockaddr_storage from = {}, to = {};

	memcpy(&from, src, GV_CM_ADDR_SIZE);
	memcpy(&to, dst, GV_CM_ADDR_SIZE);
	return rdma_resolve_addr(id,
				 from.ss_family ? (struct sockaddr *)&from : NULL,
				 (struct sockaddr *)&to, timeout_ms);
}

int gv_cm_set_option(struct rdma_cm_id *id, int optname, int value, int len)
{
	uint8_t byte = value;

	if (len == 1)
		return rdma_set_option(id, RDMA_OPTION_ID, optname, &byte, 1);
	return rdma_set_option(id, RDMA_OPTION_ID, optname, &value, sizeof(value));
}

void gv_cm_forget_devices(void)
{
	struct ibv_context **list;

	/* Before rdma-core 52 the library sorts its devices wrongly where malloc
	 * has several arenas, and may drop all of them, or lock itself out. Only
	 * a library that has this later function is known not to. */
	if (!dlsym(RTLD_DEFAULT, "rdma_query_addrinfo"))
		return;
	list = rdma_get_devices(NULL);
	if (list)
		rdma_free_devices(list);
}

int gv_cm_join_multicast(struct rdma_cm_id *id, const uint8_t *addr, int flags,
			 uintptr_t join)
{
	struct sockaddr_storage sa = {};
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)&sa,
	};

	memcpy(&sa, addr, GV_CM_ADDR_SIZE);
	if (flags < 0)
		return rdma_join_multicast(id, attr.addr, (void *)join);
	return rdma_join_multicast_ex(id, &attr, (void *)join);
}

int gv_cm_leave_multicast(struct rdma_cm_id *id, const uint8_t *addr)
{
	struct sockaddr_storage sa = {};

	memcpy(&sa, addr, GV_CM_ADDR_SIZE);
	return rdma_leave_multicast(id, (struct sockaddr *)&sa);
}

static int lacking(void)
{
	errno = ENOSYS;
	return -1;
}

int gv_cm_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			   const char *service,
			   const struct rdma_addrinfo *hints)
{
	int (*resolve)(struct rdma_cm_id *, const char *, const char *,
		       const struct rdma_addrinfo *) =
		dlsym(RTLD_DEFAULT, "rdma_resolve_addrinfo");

	return resolve ? resolve(id, node, service, hints) : lacking();
}

int gv_cm_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	int (*query)(struct rdma_cm_id *, struct rdma_addrinfo **) =
		dlsym(RTLD_DEFAULT, "rdma_query_addrinfo");

	return query ? query(id, info) : lacking();
}

int gv_cm_write_event(struct rdma_cm_id *id, int type, int status, uint64_t arg)
{
	int (*write_event)(struct rdma_cm_id *, int, int, uint64_t) =
		dlsym(RTLD_DEFAULT, "rdma_write_cm_event");

	return write_event ? write_event(id, type, status, arg) : lacking();
}

int gv_cm_get_request(struct rdma_cm_id *listener, struct rdma_event_channel *to,
		      uintptr_t new_token, struct gv_cm_event *out)
{
	struct rdma_cm_id *id;
	int err;

	memset(out, 0, sizeof(*out));
	errno = 0;
	if (rdma_get_request(listener, &id)) {
		err = errno ? errno : EIO;
		/* What came is no request: only the device's end is to be expected. */
		if (listener->event &&
		    listener->event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
			err = ENODEV;
		return -err;
	}
	copy_event(id->event, new_token, out);
	/* It acknowledges the event. */
	if (rdma_migrate_id(id, to)) {
		err = errno ? errno : EIO;
		gv_cm_destroy_ep(id);
		return -err;
	}
	return 0;
}

void gv_cm_destroy_ep(struct rdma_cm_id *id)
{
	WITHOUT_SIGNALS(rdma_destroy_ep(id));
}
