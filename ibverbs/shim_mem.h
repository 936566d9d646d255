/* Memory regions: macros and inline verbs that cgo cannot reach. */
#ifndef GV_SHIM_MEM_H
#define GV_SHIM_MEM_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct ibv_mr *gv_reg_mr(struct ibv_pd *pd, uintptr_t addr, size_t length, uint64_t iova, unsigned int access);
int gv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, uintptr_t addr, size_t length, int access);
int gv_has_odp(struct ibv_context *ctx);

#endif
