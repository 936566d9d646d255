/* What cgo cannot reach itself: unions, inlines, and an event in one crossing. */
#ifndef GV_CM_SHIM_H
#define GV_CM_SHIM_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

/* Private data is counted in a uint8_t. */
#define GV_CM_PRIVATE_DATA_MAX 255

/* What librdmacm knows of an ID's way, copied so that Go never reads memory
 * that the library may be writing to. */
struct gv_cm_route {
	char device[IBV_SYSFS_NAME_MAX]; /* "" while the ID is bound to none */
	int transport;                   /* enum ibv_transport_type */
	uint8_t port_num;
	uint8_t src[sizeof(struct sockaddr_in6)];
	uint8_t dst[sizeof(struct sockaddr_in6)];
	uint8_t sgid[16];
	uint8_t dgid[16];
};

/* An event, copied whole: nothing in it points into the library. */
struct gv_cm_event {
	int type;   /* enum rdma_cm_event_type */
	int status; /* negative errno, or a reason of the transport */
	int is_ud;
	uintptr_t token;        /* of the ID; 0 where the ID is new */
	uintptr_t listen_token; /* of the listener, with CONNECT_REQUEST */
	struct rdma_cm_id *new_id; /* with CONNECT_REQUEST; the receiver destroys it */
	struct gv_cm_route route;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint32_t qp_num;
	uint32_t qkey;
	uint8_t private_data_len;
	uint8_t private_data[GV_CM_PRIVATE_DATA_MAX];
};

/* Takes one event, copies it and acknowledges it. The ID that a
 * CONNECT_REQUEST brings gets new_token. Returns 0 or a negative errno. */
int gv_cm_get_event(struct rdma_event_channel *channel, uintptr_t new_token,
		    struct gv_cm_event *out);

int gv_cm_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		    uintptr_t token, int ps);
void gv_cm_route(struct rdma_cm_id *id, struct gv_cm_route *out);

/* These reach into drivers, some of which mind signals: siw's TCP connect gives
 * up and starts anew, and its locks throw away what signals are pending. Go's
 * runtime sends its threads many. So signals wait until the call is over. */
int gv_cm_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int gv_cm_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int gv_cm_reject(struct rdma_cm_id *id, const void *data, uint8_t len);
int gv_cm_disconnect(struct rdma_cm_id *id);
int gv_cm_listen(struct rdma_cm_id *id, int backlog);
int gv_cm_destroy_id(struct rdma_cm_id *id);
void gv_cm_destroy_event_channel(struct rdma_event_channel *channel);

/* addr is a sockaddr_in or sockaddr_in6, or all zero for "not given". */
int gv_cm_bind_addr(struct rdma_cm_id *id, const uint8_t *addr);
int gv_cm_resolve_addr(struct rdma_cm_id *id, const uint8_t *src,
		       const uint8_t *dst, int timeout_ms);

/* Makes librdmacm look which devices there are, where it can do so safely. */
void gv_cm_forget_devices(void);

int gv_cm_set_option(struct rdma_cm_id *id, int optname, int value, int len);

#endif
