/* What cgo cannot reach itself: unions, inlines, and an event in one crossing. */
#ifndef GV_CM_SHIM_H
#define GV_CM_SHIM_H

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>

/* Private data is counted in a uint8_t. */
#define GV_CM_PRIVATE_DATA_MAX 255

/* Room for an address of any family: sockaddr_in, sockaddr_in6, sockaddr_ib. */
#define GV_CM_ADDR_SIZE sizeof(struct sockaddr_ib)

/* As many paths as librdmacm asks the kernel for. */
#define GV_CM_PATHS 6

/* Events and functions that rdma-core 44 has not yet. */
#define GV_CM_EVENT_ADDRINFO_RESOLVED 16
#define GV_CM_EVENT_ADDRINFO_ERROR 17
#define GV_CM_EVENT_USER 18

/* What librdmacm knows of an ID's way, copied so that Go never reads memory
 * that the library may be writing to. */
struct gv_cm_route {
	char device[IBV_SYSFS_NAME_MAX]; /* "" while the ID is bound to none */
	int transport;                   /* enum ibv_transport_type */
	uint8_t port_num;
	uint8_t src[GV_CM_ADDR_SIZE];
	uint8_t dst[GV_CM_ADDR_SIZE];
	uint16_t src_port; /* host order, whatever the family */
	uint16_t dst_port;
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint16_t pkey; /* host order */
	int num_paths;
	struct ibv_sa_path_rec paths[GV_CM_PATHS];
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
	struct ibv_ah_attr ah; /* with a datagram service's or a group's event */
	uintptr_t join;        /* of gv_cm_join_multicast, with a group's event */
	uint64_t arg;          /* with GV_CM_EVENT_USER */
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

/* addr is of GV_CM_ADDR_SIZE bytes, or all zero for "not given". */
int gv_cm_bind_addr(struct rdma_cm_id *id, const uint8_t *addr);
int gv_cm_resolve_addr(struct rdma_cm_id *id, const uint8_t *src,
		       const uint8_t *dst, int timeout_ms);

/* Makes librdmacm look which devices there are, where it can do so safely. */
void gv_cm_forget_devices(void);

int gv_cm_set_option(struct rdma_cm_id *id, int optname, int value, int len);

/* join comes back with the group's events. flags is -1 for
 * rdma_join_multicast, else for rdma_join_multicast_ex. */
int gv_cm_join_multicast(struct rdma_cm_id *id, const uint8_t *addr, int flags,
			 uintptr_t join);
int gv_cm_leave_multicast(struct rdma_cm_id *id, const uint8_t *addr);

/* Takes a request of a listening endpoint, moves its ID to a channel and copies
 * the event, as gv_cm_get_event does. */
int gv_cm_get_request(struct rdma_cm_id *listener, struct rdma_event_channel *to,
		      uintptr_t new_token, struct gv_cm_event *out);
void gv_cm_destroy_ep(struct rdma_cm_id *id);

/* Looked up when the program runs; ENOSYS where the library lacks them. */
int gv_cm_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			   const char *service,
			   const struct rdma_addrinfo *hints);
int gv_cm_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int gv_cm_write_event(struct rdma_cm_id *id, int type, int status, uint64_t arg);

#endif
