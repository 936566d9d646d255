package ibverbs

import (
	"errors"
	"net/netip"
	"reflect"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/internal/verbsread"
)

// flowNamesInC are C's names of the filters' fields.
var flowNamesInC = map[string]string{
	"DstMAC": "dst_mac", "SrcMAC": "src_mac", "EtherType": "ether_type", "VLANTag": "vlan_tag", "SrcIP": "src_ip", "DstIP": "dst_ip",
	"Proto": "proto", "TOS": "tos", "TTL": "ttl", "Flags": "flags", "FlowLabel": "flow_label", "NextHdr": "next_hdr",
	"TrafficClass": "traffic_class", "HopLimit": "hop_limit", "DstPort": "dst_port", "SrcPort": "src_port", "SPI": "spi", "Seq": "seq",
	"TunnelID": "tunnel_id", "CKSRes0Ver": "c_ks_res0_ver", "Protocol": "protocol", "Key": "key", "Label": "label",
}

// inC is what C is to see of a filter's field.
func inC(v any, ipv6 bool) any {
	switch v := v.(type) {
	case uint16:
		return verbsread.Net16(v)
	case uint32:
		return verbsread.Net32(v)
	case MAC:
		return string(v[:])
	case netip.Addr:
		switch {
		case !v.IsValid() && ipv6:
			v = netip.IPv6Unspecified()
		case !v.IsValid():
			v = netip.IPv4Unspecified()
		case !ipv6:
			v = v.Unmap()
		}
		return string(v.AsSlice())
	}
	return v
}

// specInC is what C is to see of a spec, and in which struct.
func specInC(s FlowSpec) (name string, want map[string]any) {
	want = map[string]any{"type": uint32(s.Type())}
	switch s := s.(type) {
	case FlowSpecActionTag:
		want["tag_id"] = s.TagID
		return "ibv_flow_spec_action_tag", want
	case FlowSpecActionDrop:
		return "ibv_flow_spec_action_drop", want
	case FlowSpecActionHandle:
		want["action"] = unsafe.Pointer(s.Action.action)
		return "ibv_flow_spec_action_handle", want
	case FlowSpecActionCount:
		want["counters"] = unsafe.Pointer(s.Counters.counters)
		return "ibv_flow_spec_counter_action", want
	}
	for part, prefix := range map[string]string{"Val": "val.", "Mask": "mask."} {
		filter := reflect.ValueOf(s).FieldByName(part)
		for i := range filter.NumField() {
			field := filter.Type().Field(i).Name
			want[prefix+flowNamesInC[field]] = inC(filter.Field(i).Interface(), reflect.TypeOf(s) == reflect.TypeFor[FlowSpecIPv6]())
		}
	}
	return map[FlowSpecType]string{
		FlowSpecTypeEth: "ibv_flow_spec_eth", FlowSpecTypeIPv4: "ibv_flow_spec_ipv4", FlowSpecTypeIPv4Ext: "ibv_flow_spec_ipv4_ext",
		FlowSpecTypeIPv6: "ibv_flow_spec_ipv6", FlowSpecTypeTCP: "ibv_flow_spec_tcp_udp", FlowSpecTypeUDP: "ibv_flow_spec_tcp_udp",
		FlowSpecTypeESP: "ibv_flow_spec_esp", FlowSpecTypeVXLANTunnel: "ibv_flow_spec_tunnel", FlowSpecTypeGRE: "ibv_flow_spec_gre",
		FlowSpecTypeMPLS: "ibv_flow_spec_mpls",
	}[s.Type()&^FlowSpecTypeInner], want
}

// spec makes a spec, whose fields are the bytes that come next.
func (b *bytesOf) spec(dev *Device) FlowSpec {
	kinds := []reflect.Type{
		reflect.TypeFor[FlowSpecEth](), reflect.TypeFor[FlowSpecIPv4](), reflect.TypeFor[FlowSpecIPv4Ext](), reflect.TypeFor[FlowSpecIPv6](),
		reflect.TypeFor[FlowSpecTCP](), reflect.TypeFor[FlowSpecUDP](), reflect.TypeFor[FlowSpecESP](), reflect.TypeFor[FlowSpecMPLS](),
		reflect.TypeFor[FlowSpecVXLANTunnel](), reflect.TypeFor[FlowSpecGRE](), reflect.TypeFor[FlowSpecActionTag](),
		reflect.TypeFor[FlowSpecActionDrop](), reflect.TypeFor[FlowSpecActionHandle](), reflect.TypeFor[FlowSpecActionCount](),
	}
	kind := b.next() % (len(kinds) + 1)
	if kind == len(kinds) {
		return nil
	}
	v := reflect.New(kinds[kind]).Elem()
	b.fill(v, dev)
	return v.Interface().(FlowSpec)
}

func (b *bytesOf) fill(v reflect.Value, dev *Device) {
	switch field := v.Addr().Interface().(type) {
	case *netip.Addr:
		*field = b.addr()
		return
	case **FlowAction:
		if *field = noAction(); b.next()%8 > 0 {
			(*field).dev = dev
		}
		return
	case **Counters:
		if *field = noCounters(); b.next()%8 > 0 {
			(*field).dev = dev
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			b.fill(v.Field(i), dev)
		}
	case reflect.Array:
		for i := range v.Len() {
			b.fill(v.Index(i), dev)
		}
	case reflect.Bool:
		v.SetBool(b.next()%2 == 1)
	default:
		v.SetUint(b.uint64() >> (8 * (b.next() % 8))) // cut to the field's size
	}
}

func (b *bytesOf) addr() netip.Addr {
	switch b.next() % 8 {
	case 0:
		return netip.Addr{}
	case 1:
		return netip.AddrFrom16([16]byte{0xfe, 0x80, 15: byte(b.next())}).WithZone("eth0")
	case 2, 3, 4:
		return netip.AddrFrom4([4]byte(b.exactly(4)))
	}
	return netip.AddrFrom16([16]byte(b.exactly(16)))
}

func (b *bytesOf) exactly(n int) []byte {
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = byte(b.next())
	}
	return bytes
}

// FuzzFlowSpecs: any specs are refused with EINVAL, or laid out for C one
// after the other, each with all of its fields.
func FuzzFlowSpecs(f *testing.F) {
	f.Add([]byte{})
	for kind := range byte(15) {
		f.Add([]byte{0, 0, 0, 9, 1, 2, kind, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, kind + 3, 17, 18, 19, 20, 21, 22})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &bytesOf{data: data}
		qp := &QP{dev: &Device{}}
		attr := FlowAttr{Type: FlowType(b.next()), Priority: uint16(b.uint32()), Port: uint8(b.next()), Flags: FlowFlags(b.uint32())}
		for len(b.data) > 0 && len(attr.Specs) < 260 {
			attr.Specs = append(attr.Specs, b.spec(qp.dev))
		}
		if err := qp.checkFlow(&attr); err != nil {
			if !errors.Is(err, syscall.EINVAL) {
				t.Errorf("%+v: %v", attr, err)
			}
			return
		}
		c := flowAttrToC(&attr)
		defer freeFlowAttr(c)
		want := map[string]any{
			"type": uint32(attr.Type), "priority": attr.Priority, "port": attr.Port, "flags": uint32(attr.Flags),
		}
		seen := 0
		walkFlow(t, unsafe.Pointer(c), want, func(i int, spec unsafe.Pointer) {
			seen++
			name, want := specInC(attr.Specs[i])
			want["size"] = uint16(verbsread.Size(name))
			if diff := verbsread.Diff(name, spec, want); diff != "" {
				t.Errorf("spec %d, %+v: %s", i, attr.Specs[i], diff)
			}
		})
		if seen != len(attr.Specs) {
			t.Errorf("%d specs of %d", seen, len(attr.Specs))
		}
	})
}
