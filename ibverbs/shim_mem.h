/* Memory regions: macros and inline verbs that cgo cannot reach. */
#ifndef GV_SHIM_MEM_H
#define GV_SHIM_MEM_H

#include "shim.h"

struct ibv_mr *gv_reg_mr(struct ibv_pd *pd, uintptr_t addr, size_t length, uint64_t iova, unsigned int access);

#endif
