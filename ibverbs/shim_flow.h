/* Flow rules, flow actions and counters: static inline verbs and unions. */
#ifndef GV_SHIM_FLOW_H
#define GV_SHIM_FLOW_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* What every spec begins with. */
struct gv_flow_spec_head {
	uint32_t type;
	uint16_t size;
};

struct ibv_flow *gv_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int gv_destroy_flow(struct ibv_flow *flow);

/* A header that an ESP action puts before packets: a link of a list. */
struct gv_esp_encap {
	struct ibv_flow_action_esp_encap link;
	struct ibv_flow_spec spec; /* link's value is within */
};

/* All that an ESP action's attributes point to. */
struct gv_esp {
	struct ibv_flow_action_esp_attr attr;
	struct ibv_flow_action_esp esp;
	struct ibv_flow_action_esp_keymat_aes_gcm keymat;
	struct ibv_flow_action_esp_replay_bmp replay;
	struct gv_esp_encap encap[];
};

/* The pieces are filled in before. */
void gv_esp_set_keymat(struct gv_esp *esp);
void gv_esp_set_replay(struct gv_esp *esp, uint32_t type);
void gv_esp_link_encap(struct gv_esp *esp, int i, int val_offset, int val_size);

/* Frees it, and leaves no key behind. */
void gv_esp_free(struct gv_esp *esp);

struct ibv_flow_action *gv_create_flow_action_esp(struct ibv_context *ctx, struct gv_esp *esp);
int gv_modify_flow_action_esp(struct ibv_flow_action *action, struct gv_esp *esp);
int gv_destroy_flow_action(struct ibv_flow_action *action);

struct ibv_counters *gv_create_counters(struct ibv_context *ctx);
int gv_destroy_counters(struct ibv_counters *counters);
int gv_attach_counters_point_flow(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
				  struct ibv_flow *flow);
int gv_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t n, uint32_t flags);

#endif
