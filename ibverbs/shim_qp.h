/* QP calls that are static inline in verbs.h, or newer than the oldest rdma-core. */
#ifndef GV_SHIM_QP_H
#define GV_SHIM_QP_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct ibv_qp *gv_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);

/* The address of a function of libibverbs, or NULL where the installed one lacks it. */
void *gv_verbs_symbol(const char *name);

int gv_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);

#endif
