#include "fake.h"
#include "_cgo_export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct vf_posts posts;
static uint32_t serial;

/* Asks the test about a call that makes an object; NULL with errno where it is to fail. */
static void *create(struct ibv_context *ctx, char *op, void *parent, void *arg, size_t size)
{
	int err = vfCall(op, parent, arg, 0, 0);
	void *object;

	if (err) {
		errno = err;
		return NULL;
	}
	object = calloc(1, size);
	vfCount(1);
	serial++;
	return object;
}

/* Asks about one that destroys an object. */
static int destroy(char *op, void *object)
{
	int err = vfCall(op, object, NULL, 0, 0);

	if (!err) {
		free(object);
		vfCount(-1);
	}
	return err;
}

static int post_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (; wr; wr = wr->next) {
		if (posts.n >= posts.fail_at) {
			*bad = wr;
			return posts.fail_with;
		}
		posts.wr[posts.n].wr_id = wr->wr_id;
		posts.wr[posts.n].num_sge = wr->num_sge;
		if (wr->num_sge)
			posts.wr[posts.n].last = wr->sg_list[wr->num_sge - 1];
		posts.n++;
	}
	return 0;
}

static struct ibv_wq *create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr)
{
	struct ibv_wq *wq = create(ctx, "create_wq", attr->pd, attr, sizeof(*wq));

	if (!wq)
		return NULL;
	wq->context = ctx;
	wq->pd = attr->pd;
	wq->cq = attr->cq;
	wq->wq_num = serial;
	wq->post_recv = post_recv;
	attr->max_wr += 3; /* what is granted may be more */
	attr->max_sge += 1;
	return wq;
}

static int modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	return vfCall("modify_wq", wq, attr, 0, 0);
}

static int destroy_wq(struct ibv_wq *wq)
{
	return destroy("destroy_wq", wq);
}

static struct ibv_rwq_ind_table *create_table(struct ibv_context *ctx, struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ibv_rwq_ind_table *table = create(ctx, "create_rwq_ind_table", ctx, attr, sizeof(*table));

	if (!table)
		return NULL;
	table->context = ctx;
	table->ind_tbl_num = serial;
	return table;
}

static int destroy_table(struct ibv_rwq_ind_table *table)
{
	return destroy("destroy_rwq_ind_table", table);
}

static struct ibv_flow *create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow = create(qp->context, "create_flow", qp, attr, sizeof(*flow));

	if (!flow)
		return NULL;
	flow->context = qp->context;
	flow->handle = serial;
	return flow;
}

static int destroy_flow(struct ibv_flow *flow)
{
	return destroy("destroy_flow", flow);
}

static struct ibv_flow_action *create_esp(struct ibv_context *ctx, struct ibv_flow_action_esp_attr *attr)
{
	struct ibv_flow_action *action = create(ctx, "create_flow_action_esp", ctx, attr, sizeof(*action));

	if (!action)
		return NULL;
	action->context = ctx;
	return action;
}

static int modify_esp(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *attr)
{
	return vfCall("modify_flow_action_esp", action, attr, 0, 0);
}

static int destroy_action(struct ibv_flow_action *action)
{
	return destroy("destroy_flow_action", action);
}

static struct ibv_counters *create_counters(struct ibv_context *ctx, struct ibv_counters_init_attr *attr)
{
	struct ibv_counters *counters = create(ctx, "create_counters", ctx, attr, sizeof(*counters));

	if (!counters)
		return NULL;
	counters->context = ctx;
	return counters;
}

static int destroy_counters(struct ibv_counters *counters)
{
	return destroy("destroy_counters", counters);
}

static int attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	return vfCall("attach_counters_point_flow", counters, attr, (uintptr_t)flow, 0);
}

static int read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t n, uint32_t flags)
{
	return vfCall("read_counters", counters, values, n, flags);
}

static struct ibv_qp *create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = create(ctx, "create_qp_ex", ctx, attr, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->context = ctx;
	qp->qp_num = serial;
	return qp;
}

void vf_destroy_qp(struct ibv_qp *qp)
{
	destroy("destroy_qp", qp);
}

static struct verbs_context *container(struct ibv_context *ctx)
{
	return (struct verbs_context *)((char *)ctx - offsetof(struct verbs_context, context));
}

static int not_here(void)
{
	return EOPNOTSUPP;
}

/*
 * What libibverbs keeps to itself about a context is mostly the provider's
 * functions. Its layout is not known here: each word of it is a function that
 * refuses.
 */
static void *refuse_all(void)
{
	enum { WORDS = 512 };
	int (**words)(void) = calloc(WORDS, sizeof(*words));
	int i;

	for (i = 0; i < WORDS; i++)
		words[i] = not_here;
	return words;
}

struct ibv_context *vf_open(void)
{
	struct verbs_context *v = calloc(1, sizeof(*v));

	v->sz = sizeof(*v);
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->priv = refuse_all();
	vf_null_ops(&v->context.ops);
	v->create_qp_ex = create_qp;
	v->create_wq = create_wq;
	v->modify_wq = modify_wq;
	v->destroy_wq = destroy_wq;
	v->create_rwq_ind_table = create_table;
	v->destroy_rwq_ind_table = destroy_table;
	v->ibv_create_flow = create_flow;
	v->ibv_destroy_flow = destroy_flow;
	v->create_flow_action_esp = create_esp;
	v->modify_flow_action_esp = modify_esp;
	v->destroy_flow_action = destroy_action;
	v->create_counters = create_counters;
	v->destroy_counters = destroy_counters;
	v->attach_counters_point_flow = attach_counters;
	v->read_counters = read_counters;
	serial = 0;
	memset(&posts, 0, sizeof(posts));
	posts.fail_at = sizeof(posts.wr) / sizeof(posts.wr[0]);
	posts.fail_with = ENOMEM;
	return &v->context;
}

void vf_close(struct ibv_context *ctx)
{
	free(container(ctx)->priv);
	free(container(ctx));
}

struct vf_posts *vf_posts(void)
{
	return &posts;
}

struct ibv_pd *vf_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = ctx;
	return pd;
}

struct ibv_qp *vf_qp(struct ibv_context *ctx)
{
	struct vf_null_qp *qp = calloc(1, sizeof(*qp));

	qp->qp.context = ctx;
	return &qp->qp;
}
