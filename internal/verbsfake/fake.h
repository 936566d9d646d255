#ifndef VERBSFAKE_FAKE_H
#define VERBSFAKE_FAKE_H

#include "null.h"

#include <infiniband/verbs.h>
#include <stdint.h>

/* Receives that were posted to a WQ; those from number fail_at on are refused. */
struct vf_posts {
	int n;
	int fail_at;
	int fail_with;
	struct {
		uint64_t wr_id;
		int num_sge;
		struct ibv_sge last;
	} wr[1024];
};

struct ibv_context *vf_open(void);
void vf_close(struct ibv_context *ctx);
struct vf_posts *vf_posts(void);

struct ibv_pd *vf_pd(struct ibv_context *ctx);
struct ibv_qp *vf_qp(struct ibv_context *ctx);
void vf_destroy_qp(struct ibv_qp *qp);

#endif
