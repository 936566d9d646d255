#include "shim_wr.h"

#include <errno.h>
#include <stddef.h>

enum { GV_WR_FLUSH = 14 }; /* IBV_WR_FLUSH, from rdma-core 45 on */

typedef void (*flush_fn)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
			 size_t len, uint8_t type, uint8_t level);

/*
 * The builder of a FLUSH is the member after wr_atomic_write. Older headers
 * end there; a QP that was created for FLUSH is from a library that has it.
 */
static void build_flush(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	size_t at = offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(qp->wr_atomic_write);
	flush_fn flush = *(flush_fn *)((char *)qp + at);
	const uint8_t *how = (const uint8_t *)&wr->bind_mw.rkey;

	flush(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, (uintptr_t)wr->bind_mw.mw, how[0], how[1]);
}

static void build_atomic(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
	else
		ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
}

/* Begins a work request. Returns whether it wants data, or -1 for an unknown opcode. */
static int build(struct ibv_qp_ex *qp, struct ibv_send_wr *wr)
{
	uint32_t rkey = wr->wr.rdma.rkey;
	uint64_t addr = wr->wr.rdma.remote_addr;

	switch ((int)wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		return 1;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, wr->imm_data);
		return 1;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp, wr->invalidate_rkey);
		return 1;
	case IBV_WR_TSO:
		ibv_wr_send_tso(qp, wr->tso.hdr, wr->tso.hdr_sz, wr->tso.mss);
		return 1;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, rkey, addr);
		return 1;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, rkey, addr, wr->imm_data);
		return 1;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, rkey, addr);
		return 1;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		build_atomic(qp, wr);
		return 1;
	case IBV_WR_ATOMIC_WRITE:
		ibv_wr_atomic_write(qp, rkey, addr, (void *)(uintptr_t)wr->sg_list[0].addr);
		return 0;
	case GV_WR_FLUSH:
		build_flush(qp, wr);
		return 0;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qp, wr->invalidate_rkey);
		return 0;
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(qp, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return 0;
	}
	return -1;
}

static void set_inline(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf bufs[wr->num_sge + 1];
	int i;

	if (wr->num_sge == 1) {
		ibv_wr_set_inline_data(qp, (void *)(uintptr_t)wr->sg_list[0].addr, wr->sg_list[0].length);
		return;
	}
	for (i = 0; i < wr->num_sge; i++) {
		bufs[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
		bufs[i].length = wr->sg_list[i].length;
	}
	ibv_wr_set_inline_data_list(qp, wr->num_sge, bufs);
}

static void set_data(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	if (wr->send_flags & IBV_SEND_INLINE)
		set_inline(qp, wr);
	else if (wr->num_sge == 1)
		ibv_wr_set_sge(qp, wr->sg_list[0].lkey, wr->sg_list[0].addr, wr->sg_list[0].length);
	else
		ibv_wr_set_sge_list(qp, wr->num_sge, wr->sg_list);
}

static void set_destination(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	if (qp->qp_base.qp_type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	else if (qp->qp_base.qp_type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(qp, wr->qp_type.xrc.remote_srqn);
}

struct gv_posted gv_wr_post(struct ibv_qp_ex *qp, struct ibv_send_wr *wr, int n)
{
	struct gv_posted done = { 0, 0 };
	int i, data, ret;

	ibv_wr_start(qp);
	for (i = 0; i < n; i++) {
		qp->wr_id = wr[i].wr_id;
		qp->wr_flags = wr[i].send_flags;
		data = build(qp, &wr[i]);
		if (data < 0) {
			ibv_wr_abort(qp);
			done.err = EINVAL;
			return done;
		}
		set_destination(qp, &wr[i]);
		if (data)
			set_data(qp, &wr[i]);
	}
	errno = 0;
	ret = ibv_wr_complete(qp);
	if (ret == 0)
		done.accepted = n;
	else
		done.err = gv_post_errno(ret);
	return done;
}
