/*
 * Completion counters in memory, preloaded over libibverbs: no device of the
 * lab has any. Attaching adds 1000 times the operations to the count, so that a
 * test sees that they have arrived.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

struct cntr {
	void *context;
	uint32_t handle;
	uint64_t ok, err;
};

struct caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t ops;
};

struct init_attr {
	uint32_t comp_mask;
	int type;
	uint32_t flags;
};

struct attach_attr {
	uint32_t comp_mask;
	uint32_t op_mask;
};

int _ibv_query_comp_cntr_caps(void *ctx, struct caps *caps, size_t size)
{
	if (!ctx || size != sizeof(*caps))
		return EINVAL;
	*caps = (struct caps){ 1ull << 48, 7, 0x3f };
	return 0;
}

struct cntr *ibv_create_comp_cntr(void *ctx, struct init_attr *attr)
{
	static uint32_t handles = 40;
	struct cntr *c;

	if (attr->comp_mask || attr->flags || attr->type > 1) {
		errno = EINVAL;
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	c->context = ctx;
	c->handle = handles++;
	return c;
}

int ibv_destroy_comp_cntr(struct cntr *c)
{
	free(c);
	return 0;
}

int ibv_set_comp_cntr(struct cntr *c, uint64_t v) { c->ok = v; return 0; }
int ibv_set_err_comp_cntr(struct cntr *c, uint64_t v) { c->err = v; return 0; }
int ibv_inc_comp_cntr(struct cntr *c, uint64_t v) { c->ok += v; return 0; }
int ibv_inc_err_comp_cntr(struct cntr *c, uint64_t v) { c->err += v; return 0; }
int ibv_read_comp_cntr(struct cntr *c, uint64_t *v) { *v = c->ok; return 0; }
int ibv_read_err_comp_cntr(struct cntr *c, uint64_t *v) { *v = c->err; return 0; }

int ibv_qp_attach_comp_cntr(void *qp, struct cntr *c, struct attach_attr *attr)
{
	if (!qp || attr->comp_mask || attr->op_mask > 0x3f)
		return EINVAL;
	c->ok += 1000 * attr->op_mask;
	return 0;
}
