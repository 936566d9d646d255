/* Device memory, DMA handles and provider buffers: what the oldest rdma-core lacks. */
#ifndef GV_SHIM_DM_H
#define GV_SHIM_DM_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* struct ibv_dmah_init_attr, from rdma-core 59 on. */
struct gv_dmah_init_attr {
	uint32_t comp_mask;
	uint32_t cpu_id;
	uint8_t ph;
	uint8_t tph_mem_type;
};

/* struct ibv_mr_init_attr, from rdma-core 59 on; buf from 64 on. */
struct gv_mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	uintptr_t addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	void *buf;
};

/* All of these may only be called where gv_verbs_symbol finds the function. */
int gv_dm_export_dmabuf_fd(struct ibv_dm *dm);
void *gv_alloc_dmah(struct ibv_context *ctx, struct gv_dmah_init_attr *attr);
int gv_dealloc_dmah(void *dmah);
struct ibv_mr *gv_reg_mr_ex(struct ibv_pd *pd, struct gv_mr_init_attr *attr);
void *gv_alloc_buf(struct ibv_pd *pd, size_t size, void **buf);
void gv_free_buf(void *buf);
int gv_export_buf_dmabuf_fd(void *buf);
struct ibv_mr *gv_reg_buf_mr(struct ibv_pd *pd, void *buf, void *addr, size_t length, int access);

#endif
