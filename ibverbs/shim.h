/* What cgo cannot reach itself: unions, macros, and batches in one crossing. */
#ifndef GV_SHIM_H
#define GV_SHIM_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* A post's result: how many work requests were accepted, and a positive errno. */
struct gv_posted {
	int accepted;
	int err;
};

struct ibv_cq *gv_create_cq(struct ibv_context *ctx, int cqe, uintptr_t id,
			    struct ibv_comp_channel *channel, int vector);

/* Takes one event and acknowledges it. Returns 0 or a negative errno. */
int gv_get_cq_event(struct ibv_comp_channel *channel, uintptr_t *id);
int gv_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* Here uintptr_t is a pointer to the struct: see cgo_data.go. */
void gv_poll_cq(uintptr_t cq, int n, struct ibv_wc *wc, int *got);
void gv_spin_cq(uintptr_t cq, int n, struct ibv_wc *wc, uint64_t budget_ns, int *got);

/* The errno that a post's result stands for, whatever the provider's convention. */
int gv_post_errno(int ret);

/* The chain is laid out as an array: wr[0..n). */
void gv_post_send(uintptr_t qp, uintptr_t wr, int n, uintptr_t posted);
void gv_post_recv(uintptr_t qp, uintptr_t wr, int n, uintptr_t posted);
struct gv_posted gv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, int n);

#endif
