#include "fields.h"

#include <infiniband/verbs.h>
#include <string.h>

#define FIELD(type, member) { #type, #member, offsetof(struct type, member), sizeof(((struct type *)0)->member) }
/* The struct itself is a field without a name. */
#define STRUCT(type) { #type, "", 0, sizeof(struct type) }

static const struct vr_field fields[] = {
	STRUCT(ibv_wq_init_attr),
	FIELD(ibv_wq_init_attr, wq_context),
	FIELD(ibv_wq_init_attr, wq_type),
	FIELD(ibv_wq_init_attr, max_wr),
	FIELD(ibv_wq_init_attr, max_sge),
	FIELD(ibv_wq_init_attr, pd),
	FIELD(ibv_wq_init_attr, cq),
	FIELD(ibv_wq_init_attr, comp_mask),
	FIELD(ibv_wq_init_attr, create_flags),

	STRUCT(ibv_wq_attr),
	FIELD(ibv_wq_attr, attr_mask),
	FIELD(ibv_wq_attr, wq_state),
	FIELD(ibv_wq_attr, curr_wq_state),
	FIELD(ibv_wq_attr, flags),
	FIELD(ibv_wq_attr, flags_mask),

	STRUCT(ibv_rwq_ind_table_init_attr),
	FIELD(ibv_rwq_ind_table_init_attr, log_ind_tbl_size),
	FIELD(ibv_rwq_ind_table_init_attr, ind_tbl),
	FIELD(ibv_rwq_ind_table_init_attr, comp_mask),

	STRUCT(ibv_rx_hash_conf),
	FIELD(ibv_rx_hash_conf, rx_hash_function),
	FIELD(ibv_rx_hash_conf, rx_hash_key_len),
	FIELD(ibv_rx_hash_conf, rx_hash_key),
	FIELD(ibv_rx_hash_conf, rx_hash_fields_mask),

	STRUCT(ibv_qp_init_attr_ex),
	FIELD(ibv_qp_init_attr_ex, qp_context),
	FIELD(ibv_qp_init_attr_ex, send_cq),
	FIELD(ibv_qp_init_attr_ex, recv_cq),
	FIELD(ibv_qp_init_attr_ex, srq),
	FIELD(ibv_qp_init_attr_ex, cap.max_send_wr),
	FIELD(ibv_qp_init_attr_ex, cap.max_recv_wr),
	FIELD(ibv_qp_init_attr_ex, cap.max_send_sge),
	FIELD(ibv_qp_init_attr_ex, cap.max_recv_sge),
	FIELD(ibv_qp_init_attr_ex, cap.max_inline_data),
	FIELD(ibv_qp_init_attr_ex, qp_type),
	FIELD(ibv_qp_init_attr_ex, sq_sig_all),
	FIELD(ibv_qp_init_attr_ex, comp_mask),
	FIELD(ibv_qp_init_attr_ex, pd),
	FIELD(ibv_qp_init_attr_ex, xrcd),
	FIELD(ibv_qp_init_attr_ex, create_flags),
	FIELD(ibv_qp_init_attr_ex, max_tso_header),
	FIELD(ibv_qp_init_attr_ex, rwq_ind_tbl),
	FIELD(ibv_qp_init_attr_ex, rx_hash_conf.rx_hash_function),
	FIELD(ibv_qp_init_attr_ex, rx_hash_conf.rx_hash_key_len),
	FIELD(ibv_qp_init_attr_ex, rx_hash_conf.rx_hash_key),
	FIELD(ibv_qp_init_attr_ex, rx_hash_conf.rx_hash_fields_mask),
	FIELD(ibv_qp_init_attr_ex, source_qpn),
	FIELD(ibv_qp_init_attr_ex, send_ops_flags),

	STRUCT(ibv_flow_attr),
	FIELD(ibv_flow_attr, comp_mask),
	FIELD(ibv_flow_attr, type),
	FIELD(ibv_flow_attr, size),
	FIELD(ibv_flow_attr, priority),
	FIELD(ibv_flow_attr, num_of_specs),
	FIELD(ibv_flow_attr, port),
	FIELD(ibv_flow_attr, flags),

	STRUCT(ibv_flow_spec_eth),
	FIELD(ibv_flow_spec_eth, type),
	FIELD(ibv_flow_spec_eth, size),
	FIELD(ibv_flow_spec_eth, val.dst_mac),
	FIELD(ibv_flow_spec_eth, val.src_mac),
	FIELD(ibv_flow_spec_eth, val.ether_type),
	FIELD(ibv_flow_spec_eth, val.vlan_tag),
	FIELD(ibv_flow_spec_eth, mask.dst_mac),
	FIELD(ibv_flow_spec_eth, mask.src_mac),
	FIELD(ibv_flow_spec_eth, mask.ether_type),
	FIELD(ibv_flow_spec_eth, mask.vlan_tag),

	STRUCT(ibv_flow_spec_ipv4),
	FIELD(ibv_flow_spec_ipv4, type),
	FIELD(ibv_flow_spec_ipv4, size),
	FIELD(ibv_flow_spec_ipv4, val.src_ip),
	FIELD(ibv_flow_spec_ipv4, val.dst_ip),
	FIELD(ibv_flow_spec_ipv4, mask.src_ip),
	FIELD(ibv_flow_spec_ipv4, mask.dst_ip),

	STRUCT(ibv_flow_spec_ipv4_ext),
	FIELD(ibv_flow_spec_ipv4_ext, type),
	FIELD(ibv_flow_spec_ipv4_ext, size),
	FIELD(ibv_flow_spec_ipv4_ext, val.src_ip),
	FIELD(ibv_flow_spec_ipv4_ext, val.dst_ip),
	FIELD(ibv_flow_spec_ipv4_ext, val.proto),
	FIELD(ibv_flow_spec_ipv4_ext, val.tos),
	FIELD(ibv_flow_spec_ipv4_ext, val.ttl),
	FIELD(ibv_flow_spec_ipv4_ext, val.flags),
	FIELD(ibv_flow_spec_ipv4_ext, mask.src_ip),
	FIELD(ibv_flow_spec_ipv4_ext, mask.dst_ip),
	FIELD(ibv_flow_spec_ipv4_ext, mask.proto),
	FIELD(ibv_flow_spec_ipv4_ext, mask.tos),
	FIELD(ibv_flow_spec_ipv4_ext, mask.ttl),
	FIELD(ibv_flow_spec_ipv4_ext, mask.flags),

	STRUCT(ibv_flow_spec_ipv6),
	FIELD(ibv_flow_spec_ipv6, type),
	FIELD(ibv_flow_spec_ipv6, size),
	FIELD(ibv_flow_spec_ipv6, val.src_ip),
	FIELD(ibv_flow_spec_ipv6, val.dst_ip),
	FIELD(ibv_flow_spec_ipv6, val.flow_label),
	FIELD(ibv_flow_spec_ipv6, val.next_hdr),
	FIELD(ibv_flow_spec_ipv6, val.traffic_class),
	FIELD(ibv_flow_spec_ipv6, val.hop_limit),
	FIELD(ibv_flow_spec_ipv6, mask.src_ip),
	FIELD(ibv_flow_spec_ipv6, mask.dst_ip),
	FIELD(ibv_flow_spec_ipv6, mask.flow_label),
	FIELD(ibv_flow_spec_ipv6, mask.next_hdr),
	FIELD(ibv_flow_spec_ipv6, mask.traffic_class),
	FIELD(ibv_flow_spec_ipv6, mask.hop_limit),

	STRUCT(ibv_flow_spec_tcp_udp),
	FIELD(ibv_flow_spec_tcp_udp, type),
	FIELD(ibv_flow_spec_tcp_udp, size),
	FIELD(ibv_flow_spec_tcp_udp, val.dst_port),
	FIELD(ibv_flow_spec_tcp_udp, val.src_port),
	FIELD(ibv_flow_spec_tcp_udp, mask.dst_port),
	FIELD(ibv_flow_spec_tcp_udp, mask.src_port),

	STRUCT(ibv_flow_spec_esp),
	FIELD(ibv_flow_spec_esp, type),
	FIELD(ibv_flow_spec_esp, size),
	FIELD(ibv_flow_spec_esp, val.spi),
	FIELD(ibv_flow_spec_esp, val.seq),
	FIELD(ibv_flow_spec_esp, mask.spi),
	FIELD(ibv_flow_spec_esp, mask.seq),

	STRUCT(ibv_flow_spec_tunnel),
	FIELD(ibv_flow_spec_tunnel, type),
	FIELD(ibv_flow_spec_tunnel, size),
	FIELD(ibv_flow_spec_tunnel, val.tunnel_id),
	FIELD(ibv_flow_spec_tunnel, mask.tunnel_id),

	STRUCT(ibv_flow_spec_gre),
	FIELD(ibv_flow_spec_gre, type),
	FIELD(ibv_flow_spec_gre, size),
	FIELD(ibv_flow_spec_gre, val.c_ks_res0_ver),
	FIELD(ibv_flow_spec_gre, val.protocol),
	FIELD(ibv_flow_spec_gre, val.key),
	FIELD(ibv_flow_spec_gre, mask.c_ks_res0_ver),
	FIELD(ibv_flow_spec_gre, mask.protocol),
	FIELD(ibv_flow_spec_gre, mask.key),

	STRUCT(ibv_flow_spec_mpls),
	FIELD(ibv_flow_spec_mpls, type),
	FIELD(ibv_flow_spec_mpls, size),
	FIELD(ibv_flow_spec_mpls, val.label),
	FIELD(ibv_flow_spec_mpls, mask.label),

	STRUCT(ibv_flow_spec_action_tag),
	FIELD(ibv_flow_spec_action_tag, type),
	FIELD(ibv_flow_spec_action_tag, size),
	FIELD(ibv_flow_spec_action_tag, tag_id),

	STRUCT(ibv_flow_spec_action_drop),
	FIELD(ibv_flow_spec_action_drop, type),
	FIELD(ibv_flow_spec_action_drop, size),

	STRUCT(ibv_flow_spec_action_handle),
	FIELD(ibv_flow_spec_action_handle, type),
	FIELD(ibv_flow_spec_action_handle, size),
	FIELD(ibv_flow_spec_action_handle, action),

	STRUCT(ibv_flow_spec_counter_action),
	FIELD(ibv_flow_spec_counter_action, type),
	FIELD(ibv_flow_spec_counter_action, size),
	FIELD(ibv_flow_spec_counter_action, counters),

	STRUCT(ibv_flow_action_esp_attr),
	FIELD(ibv_flow_action_esp_attr, esp_attr),
	FIELD(ibv_flow_action_esp_attr, keymat_proto),
	FIELD(ibv_flow_action_esp_attr, keymat_len),
	FIELD(ibv_flow_action_esp_attr, keymat_ptr),
	FIELD(ibv_flow_action_esp_attr, replay_proto),
	FIELD(ibv_flow_action_esp_attr, replay_len),
	FIELD(ibv_flow_action_esp_attr, replay_ptr),
	FIELD(ibv_flow_action_esp_attr, esp_encap),
	FIELD(ibv_flow_action_esp_attr, comp_mask),
	FIELD(ibv_flow_action_esp_attr, esn),

	STRUCT(ibv_flow_action_esp),
	FIELD(ibv_flow_action_esp, spi),
	FIELD(ibv_flow_action_esp, seq),
	FIELD(ibv_flow_action_esp, tfc_pad),
	FIELD(ibv_flow_action_esp, flags),
	FIELD(ibv_flow_action_esp, hard_limit_pkts),

	STRUCT(ibv_flow_action_esp_keymat_aes_gcm),
	FIELD(ibv_flow_action_esp_keymat_aes_gcm, iv),
	FIELD(ibv_flow_action_esp_keymat_aes_gcm, iv_algo),
	FIELD(ibv_flow_action_esp_keymat_aes_gcm, salt),
	FIELD(ibv_flow_action_esp_keymat_aes_gcm, icv_len),
	FIELD(ibv_flow_action_esp_keymat_aes_gcm, key_len),
	FIELD(ibv_flow_action_esp_keymat_aes_gcm, aes_key),

	STRUCT(ibv_flow_action_esp_replay_bmp),
	FIELD(ibv_flow_action_esp_replay_bmp, size),

	STRUCT(ibv_flow_action_esp_encap),
	FIELD(ibv_flow_action_esp_encap, val_ptr),
	FIELD(ibv_flow_action_esp_encap, next_ptr),
	FIELD(ibv_flow_action_esp_encap, len),
	FIELD(ibv_flow_action_esp_encap, type),

	STRUCT(ibv_flow_tcp_udp_filter),
	FIELD(ibv_flow_tcp_udp_filter, dst_port),
	FIELD(ibv_flow_tcp_udp_filter, src_port),

	STRUCT(ibv_flow_ipv6_filter),
	FIELD(ibv_flow_ipv6_filter, src_ip),
	FIELD(ibv_flow_ipv6_filter, dst_ip),
	FIELD(ibv_flow_ipv6_filter, flow_label),
	FIELD(ibv_flow_ipv6_filter, next_hdr),
	FIELD(ibv_flow_ipv6_filter, traffic_class),
	FIELD(ibv_flow_ipv6_filter, hop_limit),

	STRUCT(ibv_counter_attach_attr),
	FIELD(ibv_counter_attach_attr, counter_desc),
	FIELD(ibv_counter_attach_attr, index),
	FIELD(ibv_counter_attach_attr, comp_mask),
};

enum { COUNT = sizeof(fields) / sizeof(fields[0]) };

const struct vr_field *vr_field(const char *type, int i)
{
	int at;

	for (at = 0; at < COUNT; at++) {
		int whole = !fields[at].name[0];

		if ((type ? !whole && !strcmp(fields[at].type, type) : whole) && i-- == 0)
			return &fields[at];
	}
	return NULL;
}

size_t vr_size(const char *type)
{
	int at;

	for (at = 0; at < COUNT; at++)
		if (!strcmp(fields[at].type, type))
			return fields[at].size;
	return 0;
}
