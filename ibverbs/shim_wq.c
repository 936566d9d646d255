#include "shim_wq.h"

struct ibv_wq *gv_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr)
{
	return ibv_create_wq(ctx, attr);
}

int gv_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	return ibv_modify_wq(wq, attr);
}

int gv_destroy_wq(struct ibv_wq *wq)
{
	return ibv_destroy_wq(wq);
}

struct ibv_rwq_ind_table *gv_create_rwq_ind_table(struct ibv_context *ctx,
						  struct ibv_rwq_ind_table_init_attr *attr)
{
	return ibv_create_rwq_ind_table(ctx, attr);
}

int gv_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	return ibv_destroy_rwq_ind_table(table);
}
