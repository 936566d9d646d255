/* XRC domains and extended SRQs: all of it is inline in verbs.h. */
#ifndef GV_SHIM_SRQ_H
#define GV_SHIM_SRQ_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct ibv_xrcd *gv_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int gv_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *gv_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);

struct ibv_srq *gv_create_srq(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int gv_get_srq_num(struct ibv_srq *srq, uint32_t *num);
int gv_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr);

#endif
