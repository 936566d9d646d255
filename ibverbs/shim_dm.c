#include "shim_dm.h"
#include "shim_qp.h"

/* Looks a function up, and casts it to the type of the shim's own prototype. */
#define GV_VERB(type, name) ((type)gv_verbs_symbol(name))

int gv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	return GV_VERB(int (*)(struct ibv_dm *), "ibv_dm_export_dmabuf_fd")(dm);
}

void *gv_alloc_dmah(struct ibv_context *ctx, struct gv_dmah_init_attr *attr)
{
	return GV_VERB(void *(*)(struct ibv_context *, struct gv_dmah_init_attr *), "ibv_alloc_dmah")(ctx, attr);
}

int gv_dealloc_dmah(void *dmah)
{
	return GV_VERB(int (*)(void *), "ibv_dealloc_dmah")(dmah);
}

struct ibv_mr *gv_reg_mr_ex(struct ibv_pd *pd, struct gv_mr_init_attr *attr)
{
	return GV_VERB(struct ibv_mr *(*)(struct ibv_pd *, struct gv_mr_init_attr *), "ibv_reg_mr_ex")(pd, attr);
}

void *gv_alloc_buf(struct ibv_pd *pd, size_t size, void **buf)
{
	return GV_VERB(void *(*)(struct ibv_pd *, size_t, void **), "ibv_alloc_buf")(pd, size, buf);
}

void gv_free_buf(void *buf)
{
	GV_VERB(void (*)(void *), "ibv_free_buf")(buf);
}

int gv_export_buf_dmabuf_fd(void *buf)
{
	return GV_VERB(int (*)(void *), "ibv_export_buf_dmabuf_fd")(buf);
}

struct ibv_mr *gv_reg_buf_mr(struct ibv_pd *pd, void *buf, void *addr, size_t length, int access)
{
	return GV_VERB(struct ibv_mr *(*)(struct ibv_pd *, void *, void *, size_t, int), "ibv_reg_buf_mr")
		(pd, buf, addr, length, access);
}
