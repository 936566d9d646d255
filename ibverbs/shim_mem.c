#include "shim_mem.h"

struct ibv_mr *gv_reg_mr(struct ibv_pd *pd, uintptr_t addr, size_t length, uint64_t iova, unsigned int access)
{
	if (iova == addr)
		return ibv_reg_mr(pd, (void *)addr, length, access);
	return ibv_reg_mr_iova(pd, (void *)addr, length, iova, access);
}
