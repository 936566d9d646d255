#include "shim_mem.h"

struct ibv_mr *gv_reg_mr(struct ibv_pd *pd, uintptr_t addr, size_t length, uint64_t iova, unsigned int access)
{
	if (iova == addr)
		return ibv_reg_mr(pd, (void *)addr, length, access);
	return ibv_reg_mr_iova(pd, (void *)addr, length, iova, access);
}

int gv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, uintptr_t addr, size_t length, int access)
{
	return ibv_rereg_mr(mr, flags, pd, (void *)addr, length, access);
}

int gv_has_odp(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr = { 0 };

	return !ibv_query_device_ex(ctx, NULL, &attr) && attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}
