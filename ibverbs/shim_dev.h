/* Device queries that are static inline in verbs.h, or newer than the oldest rdma-core. */
#ifndef GV_SHIM_DEV_H
#define GV_SHIM_DEV_H

#include <infiniband/verbs.h>
#include <stdint.h>

int gv_query_device_ex(struct ibv_context *ctx, struct ibv_device_attr_ex *attr);
int gv_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
int gv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index, struct ibv_gid_entry *entry);
int gv_is_qpt_supported(uint32_t caps, int type);

/* ENOSYS where the installed rdma-core has no such function. */
int gv_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed);

/* What struct ibv_port_attr is in rdma-core 56 and later. */
struct gv_port_attr {
	union {
		struct ibv_port_attr attr;
		uint8_t room[56];
	};
};

/* speed_ex is active_speed_ex, 0 where the installed rdma-core has none. */
int gv_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, uint32_t *speed_ex);

#endif
