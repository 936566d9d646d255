/* Extended completion queues. */
#ifndef GV_SHIM_CQ_H
#define GV_SHIM_CQ_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* Everything that an extended CQ can tell of a completion. */
struct gv_wc_ex {
	uint64_t wr_id;
	uint64_t completion_ts;
	uint64_t wallclock_ns;
	uint64_t tm_tag;
	uint32_t status;
	uint32_t opcode;
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm; /* network order, or the rkey */
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t flags;
	uint32_t slid;
	uint32_t flow_tag;
	uint32_t tm_priv;
	uint16_t cvlan;
	uint8_t sl;
	uint8_t dlid_path_bits;
};

struct ibv_cq_ex *gv_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr,
				  uintptr_t id);

/*
 * Takes up to n completions, with those of their fields that the CQ was
 * created with. Returns how many, or a negative errno where there is none.
 * With singly, each completion is a batch of its own.
 */
int gv_poll_cq_ex(struct ibv_cq_ex *cq, uint64_t fields, int singly, int n, struct gv_wc_ex *wc);

int gv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

#endif
