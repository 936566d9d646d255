#include "shim_srq.h"

struct ibv_xrcd *gv_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr)
{
	return ibv_open_xrcd(ctx, attr);
}

int gv_close_xrcd(struct ibv_xrcd *xrcd)
{
	return ibv_close_xrcd(xrcd);
}

struct ibv_qp *gv_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr)
{
	return ibv_open_qp(ctx, attr);
}

struct ibv_srq *gv_create_srq(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr basic = { attr->srq_context, attr->attr };
	struct ibv_srq *srq;

	if (attr->srq_type == IBV_SRQT_BASIC) {
		srq = ibv_create_srq(attr->pd, &basic);
		attr->attr = basic.attr;
		return srq;
	}
	return ibv_create_srq_ex(ctx, attr);
}

int gv_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	return ibv_get_srq_num(srq, num);
}

int gv_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad;

	return ibv_post_srq_ops(srq, wr, &bad);
}
