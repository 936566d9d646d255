/*
 * Completion counters, which came with rdma-core 65: looked up at run time, so
 * that what is built with older headers, or runs with an older library, has
 * them where they are. Without them, all calls give ENOSYS.
 */
#ifndef GV_SHIM_COMPCNTR_H
#define GV_SHIM_COMPCNTR_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* struct ibv_comp_cntr */
struct gv_comp_cntr {
	struct ibv_context *context;
	uint32_t handle;
};

/* struct ibv_comp_cntr_caps */
struct gv_comp_cntr_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t ops;
};

/* The calls that take a value. */
enum gv_comp_cntr_op {
	GV_COMP_CNTR_SET,
	GV_COMP_CNTR_SET_ERR,
	GV_COMP_CNTR_INC,
	GV_COMP_CNTR_INC_ERR,
};

int gv_query_comp_cntr_caps(struct ibv_context *ctx, struct gv_comp_cntr_caps *caps);
struct gv_comp_cntr *gv_create_comp_cntr(struct ibv_context *ctx, uint32_t type);
int gv_destroy_comp_cntr(struct gv_comp_cntr *cntr);
int gv_change_comp_cntr(struct gv_comp_cntr *cntr, int op, uint64_t value);
int gv_read_comp_cntr(struct gv_comp_cntr *cntr, int err, uint64_t *value);
int gv_qp_attach_comp_cntr(struct ibv_qp *qp, struct gv_comp_cntr *cntr, uint32_t ops);

#endif
