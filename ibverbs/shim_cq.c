#include "shim_cq.h"

#include <errno.h>
#include <string.h>

struct ibv_cq_ex *gv_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr,
				  uintptr_t id)
{
	attr->cq_context = (void *)id;
	return ibv_create_cq_ex(ctx, attr);
}

static int has_tag(uint32_t opcode)
{
	return opcode == IBV_WC_TM_RECV || opcode == IBV_WC_TM_NO_TAG;
}

/* A provider leaves out the functions for fields that were not asked for. */
static void read_wc(struct ibv_cq_ex *cq, uint64_t fields, struct gv_wc_ex *wc)
{
	struct ibv_wc_tm_info tm;

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cq->wr_id;
	wc->status = cq->status;
	wc->vendor_err = ibv_wc_read_vendor_err(cq);
	if (fields & IBV_WC_EX_WITH_QP_NUM)
		wc->qp_num = ibv_wc_read_qp_num(cq);
	if (fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		wc->completion_ts = ibv_wc_read_completion_ts(cq);
	if (fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		wc->wallclock_ns = ibv_wc_read_completion_wallclock_ns(cq);
	if (wc->status != IBV_WC_SUCCESS)
		return; /* nothing else holds */
	wc->opcode = ibv_wc_read_opcode(cq);
	wc->flags = ibv_wc_read_wc_flags(cq);
	if (fields & IBV_WC_EX_WITH_BYTE_LEN)
		wc->byte_len = ibv_wc_read_byte_len(cq);
	if (fields & IBV_WC_EX_WITH_IMM)
		wc->imm = wc->flags & IBV_WC_WITH_INV ? ibv_wc_read_invalidated_rkey(cq)
						      : ibv_wc_read_imm_data(cq);
	if (fields & IBV_WC_EX_WITH_SRC_QP)
		wc->src_qp = ibv_wc_read_src_qp(cq);
	if (fields & IBV_WC_EX_WITH_SLID)
		wc->slid = ibv_wc_read_slid(cq);
	if (fields & IBV_WC_EX_WITH_SL)
		wc->sl = ibv_wc_read_sl(cq);
	if (fields & IBV_WC_EX_WITH_DLID_PATH_BITS)
		wc->dlid_path_bits = ibv_wc_read_dlid_path_bits(cq);
	if (fields & IBV_WC_EX_WITH_CVLAN)
		wc->cvlan = ibv_wc_read_cvlan(cq);
	if (fields & IBV_WC_EX_WITH_FLOW_TAG)
		wc->flow_tag = ibv_wc_read_flow_tag(cq);
	if (fields & IBV_WC_EX_WITH_TM_INFO && has_tag(wc->opcode)) {
		ibv_wc_read_tm_info(cq, &tm);
		wc->tm_tag = tm.tag;
		wc->tm_priv = tm.priv;
	}
}

int gv_poll_cq_ex(struct ibv_cq_ex *cq, uint64_t fields, int singly, int n, struct gv_wc_ex *wc)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int open = 0, got = 0, ret = 0;

	while (got < n) {
		ret = open ? ibv_next_poll(cq) : ibv_start_poll(cq, &attr);
		if (ret)
			break;
		read_wc(cq, fields, &wc[got++]);
		open = !singly;
		if (singly)
			ibv_end_poll(cq);
	}
	if (open)
		ibv_end_poll(cq);
	if (got || !ret || ret == ENOENT || ret == -ENOENT)
		return got;
	return ret < 0 ? ret : -ret;
}

int gv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	return ibv_modify_cq(cq, attr);
}
