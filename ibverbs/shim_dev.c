#include "shim_dev.h"

#include "shim_qp.h"

#include <errno.h>
#include <string.h>

int gv_query_device_ex(struct ibv_context *ctx, struct ibv_device_attr_ex *attr)
{
	return ibv_query_device_ex(ctx, NULL, attr);
}

int gv_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	return ibv_query_rt_values_ex(ctx, values);
}

int gv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index, struct ibv_gid_entry *entry)
{
	return ibv_query_gid_ex(ctx, port, index, entry, 0);
}

int gv_is_qpt_supported(uint32_t caps, int type)
{
	return ibv_is_qpt_supported(caps, type);
}

int gv_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed)
{
	int (*query)(struct ibv_context *, uint32_t, uint64_t *);

	*(void **)&query = gv_verbs_symbol("ibv_query_port_speed");
	return query ? query(ctx, port, speed) : ENOSYS;
}

/* active_speed_ex follows what rdma-core 44 has; the library fills as much as it knows. */
#define SPEED_EX_OFFSET 52

int gv_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, uint32_t *speed_ex)
{
	struct verbs_context *vctx = verbs_get_ctx_op(ctx, query_port);
	struct gv_port_attr room;
	int ret;

	*speed_ex = 0;
	if (!vctx)
		return ibv_query_port(ctx, port, attr);
	memset(&room, 0, sizeof(room));
	ret = vctx->query_port(ctx, port, &room.attr, sizeof(room));
	*attr = room.attr;
	memcpy(speed_ex, room.room + SPEED_EX_OFFSET, sizeof(*speed_ex));
	return ret;
}
