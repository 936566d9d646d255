/* Work queues: static inline verbs. */
#ifndef GV_SHIM_WQ_H
#define GV_SHIM_WQ_H

#include "shim.h"

struct ibv_wq *gv_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr);
int gv_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int gv_destroy_wq(struct ibv_wq *wq);

/* The chain is laid out as an array: wr[0..n). */
struct gv_posted gv_post_wq_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr, int n);

struct ibv_rwq_ind_table *gv_create_rwq_ind_table(struct ibv_context *ctx,
						  struct ibv_rwq_ind_table_init_attr *attr);
int gv_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);

#endif
