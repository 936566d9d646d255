#define _GNU_SOURCE
#include "shim_qp.h"

#include <dlfcn.h>
#include <errno.h>

struct ibv_qp *gv_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	return ibv_create_qp_ex(ctx, attr);
}

void *gv_verbs_symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

int gv_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	return ibv_modify_qp_rate_limit(qp, attr);
}
