/*
 * A data path without a device: each work request completes as it is posted.
 * What is left of a post and a poll is what a binding adds to it.
 */
#include "null.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BATCH = 256, MAX_SGE = 4 };

static void lock(struct vf_null_cq *cq)
{
	while (atomic_flag_test_and_set_explicit(&cq->busy, memory_order_acquire))
		;
}

static void unlock(struct vf_null_cq *cq)
{
	atomic_flag_clear_explicit(&cq->busy, memory_order_release);
}

/* An armed CQ's event, as the kernel writes it: what libibverbs takes for its CQ. */
static void raise(struct vf_null_cq *cq)
{
	uint64_t event = (uintptr_t)&cq->cq;

	cq->armed = 0;
	if (cq->event_fd && write(cq->event_fd, &event, sizeof(event)) != sizeof(event))
		abort();
}

/* Refuses in the way that was asked for. */
static int refuse(const struct vf_fault *fault)
{
	switch (fault->convention) {
	case VF_POSITIVE:
		return fault->err;
	case VF_NEGATIVE:
		return -fault->err;
	case VF_ERRNO:
		errno = fault->err;
		return -1;
	case VF_BARE:
		return -1;
	case VF_SILENT:
		return 0;
	}
	abort();
}

/* Tells whether the next work request is one to refuse. */
static int faulty(struct vf_null_qp *qp)
{
	return qp->fault.on && qp->seen++ >= qp->fault.after;
}

/* Room for one more completion, or NULL. Its caller has the lock. */
static struct vf_entry *push(struct vf_null_cq *cq)
{
	if (cq->tail - cq->head > cq->mask)
		return NULL;
	return &cq->ring[cq->tail++ & cq->mask];
}

static void record(struct vf_null_qp *qp, const struct ibv_send_wr *wr)
{
	int i;

	qp->last = *wr;
	for (i = 0; i < wr->num_sge && i < MAX_SGE; i++)
		qp->last_sge[i] = wr->sg_list[i];
	if (wr->send_flags & IBV_SEND_INLINE && wr->num_sge)
		memcpy(qp->last_inline, (void *)(uintptr_t)wr->sg_list[0].addr,
		       wr->sg_list[0].length < sizeof(qp->last_inline) ? wr->sg_list[0].length : sizeof(qp->last_inline));
}

static enum ibv_wc_opcode completion_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	default:
		return IBV_WC_SEND;
	}
}

static int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vf_null_qp *qp = (struct vf_null_qp *)ibqp;
	struct vf_null_cq *cq = (struct vf_null_cq *)ibqp->send_cq;
	struct vf_entry *e;
	int ret = 0;

	lock(cq);
	for (; wr; wr = wr->next) {
		if (faulty(qp)) {
			*bad = wr;
			ret = refuse(&qp->fault);
			break;
		}
		if (qp->record)
			record(qp, wr);
		if (!qp->sig_all && !(wr->send_flags & IBV_SEND_SIGNALED) && qp->status == IBV_WC_SUCCESS)
			continue;
		e = push(cq);
		if (!e && cq->drop) {
			cq->overruns++;
			continue;
		}
		if (!e) {
			*bad = wr;
			ret = ENOMEM;
			break;
		}
		*e = (struct vf_entry){ .wr_id = wr->wr_id, .opcode = completion_of(wr->opcode),
					.qp_num = ibqp->qp_num, .status = qp->status };
	}
	if (cq->armed && cq->head != cq->tail)
		raise(cq);
	unlock(cq);
	return ret;
}

static int post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vf_null_qp *qp = (struct vf_null_qp *)ibqp;
	struct vf_null_cq *cq = (struct vf_null_cq *)ibqp->recv_cq;
	struct vf_entry *e;
	int ret = 0;

	lock(cq);
	for (; wr; wr = wr->next) {
		if (faulty(qp)) {
			*bad = wr;
			ret = refuse(&qp->fault);
			break;
		}
		e = push(cq);
		if (!e) {
			*bad = wr;
			ret = ENOMEM;
			break;
		}
		*e = (struct vf_entry){ .wr_id = wr->wr_id, .opcode = IBV_WC_RECV, .qp_num = ibqp->qp_num,
					.status = qp->status, .byte_len = wr->num_sge ? wr->sg_list[0].length : 0 };
	}
	if (cq->armed && cq->head != cq->tail)
		raise(cq);
	unlock(cq);
	return ret;
}

static int poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct vf_null_cq *cq = (struct vf_null_cq *)ibcq;
	struct vf_entry *e;
	int i;

	if (cq->poll_result)
		return cq->poll_result;
	lock(cq);
	for (i = 0; i < n && cq->head != cq->tail; i++) {
		e = &cq->ring[cq->head++ & cq->mask];
		wc[i].wr_id = e->wr_id;
		wc[i].status = e->status;
		wc[i].opcode = e->opcode;
		wc[i].vendor_err = 0;
		wc[i].byte_len = e->byte_len;
		wc[i].qp_num = e->qp_num;
		wc[i].wc_flags = 0;
	}
	unlock(cq);
	return i;
}

static int req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct vf_null_cq *cq = (struct vf_null_cq *)ibcq;

	lock(cq);
	cq->armed = 1;
	unlock(cq);
	return 0;
}

void vf_null_ops(struct ibv_context_ops *ops)
{
	ops->poll_cq = poll_cq;
	ops->req_notify_cq = req_notify_cq;
	ops->post_send = post_send;
	ops->post_recv = post_recv;
}

/* room is a power of two. */
struct vf_null_cq *vf_null_cq(struct ibv_context *ctx, unsigned room)
{
	struct vf_null_cq *cq = calloc(1, sizeof(*cq));

	cq->cq.context = ctx;
	cq->ring = calloc(room, sizeof(*cq->ring));
	cq->mask = room - 1;
	atomic_flag_clear(&cq->busy);
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	return cq;
}

void vf_null_cq_free(struct vf_null_cq *cq)
{
	if (cq->event_fd)
		close(cq->event_fd);
	free(cq->ring);
	free(cq);
}

void vf_null_fault(struct vf_null_qp *qp, int after, int err, enum vf_convention convention)
{
	qp->fault = (struct vf_fault){ err != 0, after, err, convention };
	qp->seen = 0;
}

struct ibv_comp_channel *vf_channel(struct ibv_context *ctx, int *write_fd)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));
	int fds[2];

	if (pipe(fds))
		abort();
	channel->context = ctx;
	channel->fd = fds[0];
	*write_fd = fds[1];
	return channel;
}

static int loop_send(const struct vf_loop *l, int rounds)
{
	struct ibv_send_wr wr[MAX_BATCH], *bad;
	struct ibv_sge sge[MAX_BATCH][MAX_SGE];
	struct ibv_wc wc[MAX_BATCH];
	int i, k, got;

	memset(wr, 0, sizeof(wr));
	for (i = 0; i < l->batch; i++) {
		for (k = 0; k < l->sges; k++)
			sge[i][k] = (struct ibv_sge){ l->addr, l->length, l->lkey };
		wr[i].wr_id = i;
		wr[i].next = i + 1 < l->batch ? &wr[i + 1] : NULL;
		wr[i].sg_list = sge[i];
		wr[i].num_sge = l->sges;
		wr[i].opcode = l->opcode;
		wr[i].send_flags = l->flags;
		wr[i].imm_data = 7;
	}
	while (rounds--) {
		if (ibv_post_send(l->qp, wr, &bad))
			return -1;
		for (i = 0; i < l->batch; i += got) {
			got = ibv_poll_cq(l->cq, l->batch - i, wc);
			if (got < 0)
				return -1;
		}
	}
	return 0;
}

static int loop_recv(const struct vf_loop *l, int rounds)
{
	struct ibv_recv_wr wr[MAX_BATCH], *bad;
	struct ibv_sge sge[MAX_BATCH][MAX_SGE];
	struct ibv_wc wc[MAX_BATCH];
	int i, k, got;

	for (i = 0; i < l->batch; i++) {
		for (k = 0; k < l->sges; k++)
			sge[i][k] = (struct ibv_sge){ l->addr, l->length, l->lkey };
		wr[i].wr_id = i;
		wr[i].next = i + 1 < l->batch ? &wr[i + 1] : NULL;
		wr[i].sg_list = sge[i];
		wr[i].num_sge = l->sges;
	}
	while (rounds--) {
		if (ibv_post_recv(l->qp, wr, &bad))
			return -1;
		for (i = 0; i < l->batch; i += got) {
			got = ibv_poll_cq(l->cq, l->batch - i, wc);
			if (got < 0)
				return -1;
		}
	}
	return 0;
}

int vf_loop(const struct vf_loop *loop, int rounds)
{
	return loop->recv ? loop_recv(loop, rounds) : loop_send(loop, rounds);
}

void vf_empty(void)
{
}

int vf_armed(struct vf_null_cq *cq)
{
	int armed;

	lock(cq);
	armed = cq->armed;
	unlock(cq);
	return armed;
}
