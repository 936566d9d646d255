#define _GNU_SOURCE
#include "shim_flow.h"

#include <stdlib.h>
#include <string.h>

struct ibv_flow *gv_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	return ibv_create_flow(qp, attr);
}

int gv_destroy_flow(struct ibv_flow *flow)
{
	return ibv_destroy_flow(flow);
}

void gv_esp_set_keymat(struct gv_esp *esp)
{
	esp->attr.keymat_proto = IBV_FLOW_ACTION_ESP_KEYMAT_AES_GCM;
	esp->attr.keymat_ptr = &esp->keymat;
	esp->attr.keymat_len = sizeof(esp->keymat);
}

void gv_esp_set_replay(struct gv_esp *esp, uint32_t type)
{
	esp->attr.replay_proto = type;
	esp->attr.replay_ptr = &esp->replay;
	/* "None" comes without data, but must not look as if it were left out. */
	esp->attr.replay_len = type == IBV_FLOW_ACTION_ESP_REPLAY_NONE ? 0 : sizeof(esp->replay);
}

void gv_esp_link_encap(struct gv_esp *esp, int i, int val_offset, int val_size)
{
	struct gv_esp_encap *e = &esp->encap[i];

	e->link.val_ptr = (char *)&e->spec + val_offset;
	e->link.len = val_size;
	e->link.type = e->spec.hdr.type;
	if (i == 0)
		esp->attr.esp_encap = &e->link;
	else
		esp->encap[i - 1].link.next_ptr = &e->link;
}

void gv_esp_free(struct gv_esp *esp)
{
	explicit_bzero(&esp->keymat, sizeof(esp->keymat));
	free(esp);
}

struct ibv_flow_action *gv_create_flow_action_esp(struct ibv_context *ctx, struct gv_esp *esp)
{
	return ibv_create_flow_action_esp(ctx, &esp->attr);
}

int gv_modify_flow_action_esp(struct ibv_flow_action *action, struct gv_esp *esp)
{
	return ibv_modify_flow_action_esp(action, &esp->attr);
}

int gv_destroy_flow_action(struct ibv_flow_action *action)
{
	return ibv_destroy_flow_action(action);
}

struct ibv_counters *gv_create_counters(struct ibv_context *ctx)
{
	struct ibv_counters_init_attr attr = { 0 };

	return ibv_create_counters(ctx, &attr);
}

int gv_destroy_counters(struct ibv_counters *counters)
{
	return ibv_destroy_counters(counters);
}

int gv_attach_counters_point_flow(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
				  struct ibv_flow *flow)
{
	return ibv_attach_counters_point_flow(counters, attr, flow);
}

int gv_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t n, uint32_t flags)
{
	return ibv_read_counters(counters, values, n, flags);
}
