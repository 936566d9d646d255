#include "shim.h"
#include "shim_wq.h"

#include <errno.h>
#include <time.h>

struct ibv_cq *gv_create_cq(struct ibv_context *ctx, int cqe, uintptr_t id,
			    struct ibv_comp_channel *channel, int vector)
{
	return ibv_create_cq(ctx, cqe, (void *)id, channel, vector);
}

int gv_get_cq_event(struct ibv_comp_channel *channel, uintptr_t *id)
{
	struct ibv_cq *cq;
	void *context;

	errno = 0;
	if (ibv_get_cq_event(channel, &cq, &context))
		return errno ? -errno : -EIO;
	/* Acknowledged here, so that destroying the CQ never waits for Go code. */
	ibv_ack_cq_events(cq, 1);
	*id = (uintptr_t)context;
	return 0;
}

int gv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return ibv_req_notify_cq(cq, solicited_only);
}

void gv_poll_cq(uintptr_t cq, int n, struct ibv_wc *wc, int *got)
{
	*got = ibv_poll_cq((struct ibv_cq *)cq, n, wc);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

void gv_spin_cq(uintptr_t number, int n, struct ibv_wc *wc, uint64_t budget_ns, int *got)
{
	struct ibv_cq *cq = (struct ibv_cq *)number;
	uint64_t deadline = now_ns() + budget_ns;
	int i;

	for (;;) {
		/* The clock costs as much as a poll: look at it now and then. */
		for (i = 0; i < 16; i++) {
			*got = ibv_poll_cq(cq, n, wc);
			if (*got)
				return;
			relax();
		}
		if (now_ns() >= deadline)
			return;
	}
}

int gv_post_errno(int ret)
{
	if (ret == -1 && errno)
		return errno;
	return ret < 0 ? -ret : ret;
}

/*
 * siw returns 0 with bad_wr set when a later work request of the chain is bad.
 * Posting the rest again tells the reason, or gets on with it where the reason
 * (a full queue) has gone meanwhile.
 */
#define GV_POST(post, qp, wr, n, type)                                   \
	do {                                                             \
		struct gv_posted done = { 0, 0 };                        \
		while (done.accepted < n) {                              \
			type *first = wr + done.accepted, *bad = NULL;   \
			int ret;                                         \
			errno = 0;                                       \
			ret = post(qp, first, &bad);                     \
			if (!ret && !bad) {                              \
				done.accepted = n;                       \
				break;                                   \
			}                                                \
			if (bad)                                         \
				done.accepted = bad - wr;                \
			if (!ret && bad != first)                        \
				continue;                                \
			done.err = ret ? gv_post_errno(ret) : EIO;          \
			break;                                           \
		}                                                        \
		return done;                                             \
	} while (0)

static struct gv_posted post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, int n)
{
	GV_POST(ibv_post_send, qp, wr, n, struct ibv_send_wr);
}

void gv_post_send(uintptr_t qp, uintptr_t wr, int n, uintptr_t posted)
{
	*(struct gv_posted *)posted = post_send((struct ibv_qp *)qp, (struct ibv_send_wr *)wr, n);
}

static struct gv_posted post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, int n)
{
	GV_POST(ibv_post_recv, qp, wr, n, struct ibv_recv_wr);
}

void gv_post_recv(uintptr_t qp, uintptr_t wr, int n, uintptr_t posted)
{
	*(struct gv_posted *)posted = post_recv((struct ibv_qp *)qp, (struct ibv_recv_wr *)wr, n);
}

struct gv_posted gv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, int n)
{
	GV_POST(ibv_post_srq_recv, srq, wr, n, struct ibv_recv_wr);
}

struct gv_posted gv_post_wq_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr, int n)
{
	GV_POST(ibv_post_wq_recv, wq, wr, n, struct ibv_recv_wr);
}
