package ibverbs

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/internal/verbsread"
)

// specCase is a spec, and what C is to see of it.
type specCase struct {
	spec FlowSpec
	name string // of the C struct
	size int    // in bytes, as rdma-core lays it out on 64-bit machines
	want map[string]any
}

var (
	ip4a, ip4b = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.2")
	ip6a, ip6b = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:1:2:3:4:5:6")
	mask4      = FlowMask(netip.MustParsePrefix("192.0.2.0/23"))
	mask6      = FlowMask(netip.MustParsePrefix("2001:db8::/33"))
)

// specCases have another value in each field.
func specCases(inner bool) []specCase {
	kind := func(t FlowSpecType) uint32 {
		if inner {
			return uint32(t) + 0x100
		}
		return uint32(t)
	}
	ports := map[string]any{
		"val.dst_port": verbsread.Net16(80), "val.src_port": verbsread.Net16(0x1234),
		"mask.dst_port": verbsread.Net16(0xffff), "mask.src_port": verbsread.Net16(0xff00),
	}
	val, mask := FlowTCPUDPFilter{DstPort: 80, SrcPort: 0x1234}, FlowTCPUDPFilter{DstPort: 0xffff, SrcPort: 0xff00}
	with := func(t uint32, size uint16, fields map[string]any) map[string]any {
		all := map[string]any{"type": t, "size": size}
		for name, v := range fields {
			all[name] = v
		}
		return all
	}
	return []specCase{
		{FlowSpecEth{
			FlowEthFilter{MAC{1, 2, 3, 4, 5, 6}, MAC{7, 8, 9, 10, 11, 12}, 0x0800, 0x2123},
			FlowEthFilter{MAC{0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa}, MAC{0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5}, 0xffff, 0x0fff}, inner,
		}, "ibv_flow_spec_eth", 40, with(kind(0x20), 40, map[string]any{
			"val.dst_mac": "\x01\x02\x03\x04\x05\x06", "val.src_mac": "\x07\x08\x09\x0a\x0b\x0c",
			"val.ether_type": verbsread.Net16(0x0800), "val.vlan_tag": verbsread.Net16(0x2123),
			"mask.dst_mac": "\xff\xfe\xfd\xfc\xfb\xfa", "mask.src_mac": "\xf0\xf1\xf2\xf3\xf4\xf5",
			"mask.ether_type": verbsread.Net16(0xffff), "mask.vlan_tag": verbsread.Net16(0x0fff),
		})},
		{FlowSpecIPv4{FlowIPv4Filter{ip4a, ip4b}, FlowIPv4Filter{mask4, netip.AddrFrom4([4]byte{255, 0, 255, 0})}, inner},
			"ibv_flow_spec_ipv4", 24, with(kind(0x30), 24, map[string]any{
				"val.src_ip": "\xc0\x00\x02\x01", "val.dst_ip": "\xc6\x33\x64\x02",
				"mask.src_ip": "\xff\xff\xfe\x00", "mask.dst_ip": "\xff\x00\xff\x00",
			})},
		{FlowSpecIPv4Ext{FlowIPv4ExtFilter{ip4a, ip4b, 17, 0x28, 64, 2}, FlowIPv4ExtFilter{mask4, mask4, 0xff, 0xfc, 0xfe, 6}, inner},
			"ibv_flow_spec_ipv4_ext", 32, with(kind(0x32), 32, map[string]any{
				"val.src_ip": "\xc0\x00\x02\x01", "val.dst_ip": "\xc6\x33\x64\x02", "val.proto": uint8(17),
				"val.tos": uint8(0x28), "val.ttl": uint8(64), "val.flags": uint8(2),
				"mask.src_ip": "\xff\xff\xfe\x00", "mask.dst_ip": "\xff\xff\xfe\x00", "mask.proto": uint8(0xff),
				"mask.tos": uint8(0xfc), "mask.ttl": uint8(0xfe), "mask.flags": uint8(6),
			})},
		{FlowSpecIPv6{FlowIPv6Filter{ip6a, ip6b, 0x54321, 6, 0xb8, 63}, FlowIPv6Filter{mask6, ip6b, 0xfffff, 0xfe, 0xfc, 0xfa}, inner},
			"ibv_flow_spec_ipv6", 88, with(kind(0x31), 88, map[string]any{
				"val.src_ip": string(ip6a.AsSlice()), "val.dst_ip": string(ip6b.AsSlice()), "val.flow_label": verbsread.Net32(0x54321),
				"val.next_hdr": uint8(6), "val.traffic_class": uint8(0xb8), "val.hop_limit": uint8(63),
				"mask.src_ip": "\xff\xff\xff\xff\x80" + strings.Repeat("\x00", 11), "mask.dst_ip": string(ip6b.AsSlice()),
				"mask.flow_label": verbsread.Net32(0xfffff), "mask.next_hdr": uint8(0xfe), "mask.traffic_class": uint8(0xfc),
				"mask.hop_limit": uint8(0xfa),
			})},
		{FlowSpecTCP{val, mask, inner}, "ibv_flow_spec_tcp_udp", 16, with(kind(0x40), 16, ports)},
		{FlowSpecUDP{val, mask, inner}, "ibv_flow_spec_tcp_udp", 16, with(kind(0x41), 16, ports)},
		{FlowSpecESP{FlowESPFilter{0x01020304, 5}, FlowESPFilter{0xffffffff, 0xff}, inner}, "ibv_flow_spec_esp", 24,
			with(kind(0x34), 24, map[string]any{
				"val.spi": verbsread.Net32(0x01020304), "val.seq": verbsread.Net32(5),
				"mask.spi": verbsread.Net32(0xffffffff), "mask.seq": verbsread.Net32(0xff),
			})},
		{FlowSpecMPLS{FlowMPLSFilter{0x12345940}, FlowMPLSFilter{0xfffff000}, inner}, "ibv_flow_spec_mpls", 16,
			with(kind(0x60), 16, map[string]any{"val.label": verbsread.Net32(0x12345940), "mask.label": verbsread.Net32(0xfffff000)})},
	}
}

// plainCases are specs that are never inner.
func plainCases(action *FlowAction, counters *Counters) []specCase {
	return []specCase{
		{FlowSpecVXLANTunnel{FlowTunnelFilter{0x123456}, FlowTunnelFilter{0xffffff}}, "ibv_flow_spec_tunnel", 16, map[string]any{
			"type": uint32(0x50), "size": uint16(16),
			"val.tunnel_id": verbsread.Net32(0x123456), "mask.tunnel_id": verbsread.Net32(0xffffff),
		}},
		{FlowSpecGRE{FlowGREFilter{0xb001, 0x6558, 7}, FlowGREFilter{0xffff, 0xff00, 0xfffe}}, "ibv_flow_spec_gre", 24, map[string]any{
			"type": uint32(0x51), "size": uint16(24), "val.c_ks_res0_ver": verbsread.Net16(0xb001),
			"val.protocol": verbsread.Net16(0x6558), "val.key": verbsread.Net32(7), "mask.c_ks_res0_ver": verbsread.Net16(0xffff),
			"mask.protocol": verbsread.Net16(0xff00), "mask.key": verbsread.Net32(0xfffe),
		}},
		{FlowSpecActionTag{0x123}, "ibv_flow_spec_action_tag", 12, map[string]any{
			"type": uint32(0x1000), "size": uint16(12), "tag_id": uint32(0x123),
		}},
		{FlowSpecActionDrop{}, "ibv_flow_spec_action_drop", 8, map[string]any{"type": uint32(0x1001), "size": uint16(8)}},
		{FlowSpecActionHandle{action}, "ibv_flow_spec_action_handle", 16, map[string]any{
			"type": uint32(0x1002), "size": uint16(16), "action": unsafe.Pointer(action.action),
		}},
		{FlowSpecActionCount{counters}, "ibv_flow_spec_counter_action", 16, map[string]any{
			"type": uint32(0x1003), "size": uint16(16), "counters": unsafe.Pointer(counters.counters),
		}},
	}
}

// noAction and noCounters point to memory that C never looks at.
func noAction() *FlowAction { return &FlowAction{action: &cFlowAction{}} }
func noCounters() *Counters { return &Counters{counters: &cCounters{}} }

func allSpecCases() []specCase {
	return append(append(specCases(false), specCases(true)...), plainCases(noAction(), noCounters())...)
}

// Each spec, alone: all of its fields, and nothing else.
func TestFlowSpecs(t *testing.T) {
	types := make(map[FlowSpecType]bool)
	for _, tc := range allSpecCases() {
		types[tc.spec.Type()] = true
		t.Run(fmt.Sprintf("%T %#x", tc.spec, uint32(tc.spec.Type())), func(t *testing.T) {
			if err := tc.spec.check(); err != nil {
				t.Error(err)
			}
			room := make([]uint64, (maxSpec+16)/8)
			at := unsafe.Pointer(&room[0])
			if size := tc.spec.put(specAt(at)); size != tc.size || verbsread.Size(tc.name) != tc.size {
				t.Errorf("%d bytes, want %d as in C, %d", size, tc.size, verbsread.Size(tc.name))
			}
			if diff := verbsread.Diff(tc.name, at, tc.want); diff != "" {
				t.Error(diff)
			}
			// libibverbs takes what is between C's fields for newer fields.
			bytes := unsafe.Slice((*byte)(at), len(room)*8)
			verbsread.Clear(tc.name, at)
			for i, b := range bytes {
				if b != 0 {
					t.Errorf("byte %d, in no field, is %#x", i, b)
				}
			}
		})
	}
	if len(types) != 2*8+6 {
		t.Errorf("%d types of specs", len(types))
	}
}

func TestFlowSpecChecks(t *testing.T) {
	zone := netip.MustParseAddr("fe80::1%eth0")
	for _, tc := range []struct {
		name string
		spec FlowSpec
		word string
	}{
		{"IPv6 in IPv4", FlowSpecIPv4{Val: FlowIPv4Filter{SrcIP: ip6a}}, "no IPv4 address"},
		{"IPv6 in an IPv4 mask", FlowSpecIPv4{Mask: FlowIPv4Filter{DstIP: mask6}}, "no IPv4 address"},
		{"IPv6 in IPv4Ext", FlowSpecIPv4Ext{Val: FlowIPv4ExtFilter{DstIP: ip6a}}, "no IPv4 address"},
		{"IPv4 in IPv6", FlowSpecIPv6{Val: FlowIPv6Filter{DstIP: ip4a}}, "no IPv6 address"},
		{"zone", FlowSpecIPv6{Val: FlowIPv6Filter{SrcIP: zone}}, "zone"},
		{"flow label", FlowSpecIPv6{Val: FlowIPv6Filter{FlowLabel: 1 << 20}}, "20 bits"},
		{"flow label's mask", FlowSpecIPv6{Mask: FlowIPv6Filter{FlowLabel: 1 << 20}}, "20 bits"},
		{"VNI", FlowSpecVXLANTunnel{Val: FlowTunnelFilter{1 << 24}}, "24 bits"},
		{"no action", FlowSpecActionHandle{}, "no Action"},
		{"empty action", FlowSpecActionHandle{&FlowAction{}}, "no Action"},
		{"no counters", FlowSpecActionCount{}, "no Counters"},
		{"empty counters", FlowSpecActionCount{&Counters{}}, "no Counters"},
	} {
		err := (&QP{}).checkFlow(&FlowAttr{Specs: []FlowSpec{tc.spec}})
		refusal(t, tc.name, wrap("op", "", err), "op", syscall.EINVAL, tc.word, "spec 0")
	}
	mapped := netip.MustParseAddr("::ffff:192.0.2.1")
	if err := (FlowSpecIPv4{Val: FlowIPv4Filter{SrcIP: mapped}}).check(); err != nil {
		t.Error(err)
	}
}

func TestFlowMask(t *testing.T) {
	for prefix, want := range map[string]string{
		"10.0.0.0/8": "255.0.0.0", "10.0.0.0/0": "0.0.0.0", "10.1.2.3/32": "255.255.255.255", "10.0.0.0/9": "255.128.0.0",
		"::/0": "::", "2001:db8::/47": "ffff:ffff:fffe::", "::1/128": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	} {
		if got := FlowMask(netip.MustParsePrefix(prefix)); got != netip.MustParseAddr(want) {
			t.Errorf("%s: %v, want %s", prefix, got, want)
		}
	}
}
