#include "shim_compcntr.h"

#include <errno.h>

#include "shim_qp.h"

/* struct ibv_comp_cntr_init_attr */
struct init_attr {
	uint32_t comp_mask;
	int type;
	uint32_t flags;
};

/* struct ibv_qp_attach_comp_cntr_attr */
struct attach_attr {
	uint32_t comp_mask;
	uint32_t op_mask;
};

int gv_query_comp_cntr_caps(struct ibv_context *ctx, struct gv_comp_cntr_caps *caps)
{
	/* ibv_query_comp_cntr_caps is an inline function around this one. */
	int (*query)(struct ibv_context *, struct gv_comp_cntr_caps *, size_t) =
		gv_verbs_symbol("_ibv_query_comp_cntr_caps");

	return query ? query(ctx, caps, sizeof(*caps)) : ENOSYS;
}

struct gv_comp_cntr *gv_create_comp_cntr(struct ibv_context *ctx, uint32_t type)
{
	struct gv_comp_cntr *(*create)(struct ibv_context *, struct init_attr *) =
		gv_verbs_symbol("ibv_create_comp_cntr");
	struct init_attr attr = { .type = type };

	if (create)
		return create(ctx, &attr);
	errno = ENOSYS;
	return NULL;
}

int gv_destroy_comp_cntr(struct gv_comp_cntr *cntr)
{
	int (*destroy)(struct gv_comp_cntr *) = gv_verbs_symbol("ibv_destroy_comp_cntr");

	return destroy ? destroy(cntr) : ENOSYS;
}

int gv_change_comp_cntr(struct gv_comp_cntr *cntr, int op, uint64_t value)
{
	static const char *const names[] = {
		[GV_COMP_CNTR_SET] = "ibv_set_comp_cntr",
		[GV_COMP_CNTR_SET_ERR] = "ibv_set_err_comp_cntr",
		[GV_COMP_CNTR_INC] = "ibv_inc_comp_cntr",
		[GV_COMP_CNTR_INC_ERR] = "ibv_inc_err_comp_cntr",
	};
	int (*change)(struct gv_comp_cntr *, uint64_t) = gv_verbs_symbol(names[op]);

	return change ? change(cntr, value) : ENOSYS;
}

int gv_read_comp_cntr(struct gv_comp_cntr *cntr, int err, uint64_t *value)
{
	int (*read)(struct gv_comp_cntr *, uint64_t *) =
		gv_verbs_symbol(err ? "ibv_read_err_comp_cntr" : "ibv_read_comp_cntr");

	return read ? read(cntr, value) : ENOSYS;
}

int gv_qp_attach_comp_cntr(struct ibv_qp *qp, struct gv_comp_cntr *cntr, uint32_t ops)
{
	int (*attach)(struct ibv_qp *, struct gv_comp_cntr *, struct attach_attr *) =
		gv_verbs_symbol("ibv_qp_attach_comp_cntr");
	struct attach_attr attr = { .op_mask = ops };

	return attach ? attach(qp, cntr, &attr) : ENOSYS;
}
