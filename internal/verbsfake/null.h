#ifndef VERBSFAKE_NULL_H
#define VERBSFAKE_NULL_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

/* How a provider says that a post failed. */
enum vf_convention {
	VF_POSITIVE, /* the errno */
	VF_NEGATIVE, /* -errno */
	VF_ERRNO,    /* -1, and errno is set */
	VF_BARE,     /* -1, and errno is not set */
	VF_SILENT,   /* 0, with bad_wr set */
};

/* Work requests are refused from number `after` on, counted from when this was set. */
struct vf_fault {
	int on;
	unsigned after;
	int err;
	enum vf_convention convention;
};

struct vf_entry {
	uint64_t wr_id;
	uint32_t opcode;
	uint32_t byte_len;
	uint32_t qp_num;
	uint32_t imm;
	uint32_t flags;
	uint32_t status;
};

/* A CQ whose completions are there as soon as the work requests are posted. */
struct vf_null_cq {
	struct ibv_cq cq; /* first: the library's pointer is ours */
	atomic_flag busy;
	unsigned head, tail, mask;
	int poll_result;   /* what polling returns, if not 0 */
	int armed;
	int event_fd;      /* where an armed CQ's event goes; 0 none */
	unsigned overruns; /* completions for which there was no room */
	int drop;          /* lose those, rather than refuse the work request with ENOMEM */
	struct vf_entry *ring;
};

/* A QP that carries nothing out. */
struct vf_null_qp {
	struct ibv_qp qp; /* first */
	int sig_all;
	uint32_t status; /* of its completions */
	struct vf_fault fault;
	unsigned seen; /* work requests since the fault was set */
	/* What the last accepted work request said. */
	struct ibv_send_wr last;
	struct ibv_sge last_sge[4];
	char last_inline[64];
	int record;
};

struct vf_null_cq *vf_null_cq(struct ibv_context *ctx, unsigned room);
void vf_null_cq_free(struct vf_null_cq *cq);
int vf_armed(struct vf_null_cq *cq);
void vf_null_ops(struct ibv_context_ops *ops);
void vf_null_fault(struct vf_null_qp *qp, int after, int err, enum vf_convention convention);

/* An event channel that a null CQ's events go to, and their other end. */
struct ibv_comp_channel *vf_channel(struct ibv_context *ctx, int *write_fd);

/* What Go's loops are compared with: the same in C. */
struct vf_loop {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	int batch;
	int sges;
	int opcode;
	int flags;
	int recv;
	uint64_t addr;
	uint32_t length, lkey;
};
int vf_loop(const struct vf_loop *loop, int rounds);
void vf_empty(void);

#endif
