package ibverbs

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/internal/verbsfake"
	"github.com/goverbs/goverbs/internal/verbsread"
)

// pointer reads a field that is a pointer.
func pointer(name string, p unsafe.Pointer, field string) unsafe.Pointer {
	return pointerIn(unsafe.Pointer(&verbsread.Fields(name, p)[field][0]))
}

func ptr[T any](v T) *T { return &v }

// fullESP has another value in each field.
var fullESP = FlowActionESPAttr{
	Attr: &ESPAttr{SPI: 0x01020304, Seq: 5, TFCPad: 6, Flags: ESPFullOffload | ESPEncrypt, HardLimitPkts: 1 << 40},
	Keymat: &ESPAESGCM{
		IV: 0x0102030405060708, IVAlgo: ESPIVAlgoSeq, Salt: 0xa0b0c0d0, ICVLen: 12, Key: []byte("a key of twenty-four byt"),
	},
	Replay: &ESPReplay{Type: ESPReplayBMP, Size: 64},
	Encap: []FlowSpec{
		FlowSpecIPv6{Val: FlowIPv6Filter{SrcIP: ip6a, DstIP: ip6b, NextHdr: 17}},
		FlowSpecUDP{Val: FlowTCPUDPFilter{DstPort: 4500, SrcPort: 4501}},
	},
	ESN: ptr(uint32(9)),
}

// checkFullESP sees that attr is fullESP.
func checkFullESP(t *testing.T, attr unsafe.Pointer) {
	t.Helper()
	const name, encap = "ibv_flow_action_esp_attr", "ibv_flow_action_esp_encap"
	esp, keymat, replay := pointer(name, attr, "esp_attr"), pointer(name, attr, "keymat_ptr"), pointer(name, attr, "replay_ptr")
	first := pointer(name, attr, "esp_encap")
	second := pointer(encap, first, "next_ptr")
	ip, udp := pointer(encap, first, "val_ptr"), pointer(encap, second, "val_ptr")
	for _, part := range []struct {
		name string
		at   unsafe.Pointer
		want map[string]any
	}{
		{name, attr, map[string]any{
			"esp_attr": esp, "keymat_proto": uint32(0), "keymat_len": uint16(56), "keymat_ptr": keymat, "replay_proto": uint32(1),
			"replay_len": uint16(4), "replay_ptr": replay, "esp_encap": first, "comp_mask": uint32(1), "esn": uint32(9),
		}},
		{"ibv_flow_action_esp", esp, map[string]any{
			"spi": uint32(0x01020304), "seq": uint32(5), "tfc_pad": uint32(6), "flags": uint32(1 | 4), "hard_limit_pkts": uint64(1 << 40),
		}},
		{"ibv_flow_action_esp_keymat_aes_gcm", keymat, map[string]any{
			"iv": uint64(0x0102030405060708), "salt": uint32(0xa0b0c0d0), "icv_len": uint32(12), "key_len": uint32(24),
			"aes_key": "a key of twenty-four byt" + strings.Repeat("\x00", 8),
		}},
		{"ibv_flow_action_esp_replay_bmp", replay, map[string]any{"size": uint32(64)}},
		{encap, first, map[string]any{"val_ptr": ip, "next_ptr": second, "len": uint16(40), "type": uint16(0x31)}},
		{encap, second, map[string]any{"val_ptr": udp, "len": uint16(4), "type": uint16(0x41)}},
		{"ibv_flow_ipv6_filter", ip, map[string]any{
			"src_ip": string(ip6a.AsSlice()), "dst_ip": string(ip6b.AsSlice()), "next_hdr": uint8(17),
		}},
		{"ibv_flow_tcp_udp_filter", udp, map[string]any{"dst_port": verbsread.Net16(4500), "src_port": verbsread.Net16(4501)}},
	} {
		if diff := verbsread.Diff(part.name, part.at, part.want); diff != "" {
			t.Error(diff)
		}
	}
	if size := verbsread.Size("ibv_flow_action_esp_keymat_aes_gcm"); size != 56 {
		t.Errorf("key material has %d bytes", size)
	}
}

// An ESP action from its creation to its end.
func TestFlowActionESP(t *testing.T) {
	var check func(t *testing.T, attr unsafe.Pointer)
	var fail syscall.Errno
	f := newFake(t, func(c verbsfake.Call) syscall.Errno {
		if c.Arg != nil {
			check(t, c.Arg)
		}
		return fail
	})
	check = checkFullESP
	fail = syscall.EOPNOTSUPP
	_, err := f.dev.CreateFlowActionESP(fullESP)
	refusal(t, "create", err, "ibv_create_flow_action_esp", syscall.EOPNOTSUPP, "fake0")
	fail = 0
	action, err := f.dev.CreateFlowActionESP(fullESP)
	if err != nil {
		t.Fatal(err)
	}
	if err := action.ModifyESP(fullESP); err != nil || action.Device() != f.dev {
		t.Error(err)
	}
	// What is nil is left as it is; no replay protection is a value of its own.
	check = func(t *testing.T, attr unsafe.Pointer) {
		if diff := verbsread.Diff("ibv_flow_action_esp_attr", attr, nil); diff != "" {
			t.Error(diff)
		}
	}
	if err := action.ModifyESP(FlowActionESPAttr{}); err != nil {
		t.Error(err)
	}
	check = func(t *testing.T, attr unsafe.Pointer) {
		replay := pointer("ibv_flow_action_esp_attr", attr, "replay_ptr")
		if diff := verbsread.Diff("ibv_flow_action_esp_attr", attr, map[string]any{"replay_ptr": replay}); diff != "" || replay == nil {
			t.Error(diff, replay)
		}
	}
	if err := action.ModifyESP(FlowActionESPAttr{Replay: &ESPReplay{}}); err != nil {
		t.Error(err)
	}
	fail = syscall.ENOENT
	err = action.ModifyESP(FlowActionESPAttr{Replay: &ESPReplay{}})
	refusal(t, "modify", err, "ibv_modify_flow_action_esp", syscall.ENOENT, action.String())
	refusal(t, "close", action.Close(), "ibv_destroy_flow_action", syscall.ENOENT, action.String())
	fail = 0
	for range 2 {
		if err := action.Close(); err != nil {
			t.Error(err)
		}
	}
	refusal(t, "closed", action.ModifyESP(fullESP), "ibv_modify_flow_action_esp", os.ErrClosed)
	want := slices.Concat(slices.Repeat([]string{"create_flow_action_esp"}, 2), slices.Repeat([]string{"modify_flow_action_esp"}, 4),
		slices.Repeat([]string{"destroy_flow_action"}, 2))
	if got := f.Calls(); !slices.Equal(got, want) {
		t.Errorf("calls %v", got)
	}
}

// What is wrong with an ESP action does not reach the provider.
func TestFlowActionESPChecks(t *testing.T) {
	f := newFake(t, nil)
	key := func(n int, icv uint32) *ESPAESGCM { return &ESPAESGCM{ICVLen: icv, Key: make([]byte, n)} }
	full := func(change func(*FlowActionESPAttr)) FlowActionESPAttr {
		attr := fullESP
		change(&attr)
		return attr
	}
	for _, tc := range []struct {
		name string
		attr FlowActionESPAttr
		word string
	}{
		{"no attr", full(func(a *FlowActionESPAttr) { a.Attr = nil }), "needs Attr"},
		{"no key", full(func(a *FlowActionESPAttr) { a.Keymat = nil }), "needs Keymat"},
		{"key of 0", full(func(a *FlowActionESPAttr) { a.Keymat = key(0, 8) }), "key of 0 bytes"},
		{"key of 40", full(func(a *FlowActionESPAttr) { a.Keymat = key(40, 8) }), "key of 40 bytes"},
		{"ICV of 4", full(func(a *FlowActionESPAttr) { a.Keymat = key(16, 4) }), "ICVLen 4"},
		{"bitmap of 0", full(func(a *FlowActionESPAttr) { a.Replay = &ESPReplay{Type: ESPReplayBMP} }), "BMP with Size 0"},
		{"size of none", full(func(a *FlowActionESPAttr) { a.Replay = &ESPReplay{Size: 1} }), "NONE with Size 1"},
		{"nil header", full(func(a *FlowActionESPAttr) { a.Encap = []FlowSpec{nil} }), "spec 0 is nil"},
		{"bad header", full(func(a *FlowActionESPAttr) { a.Encap = []FlowSpec{FlowSpecIPv4{Val: FlowIPv4Filter{SrcIP: ip6a}}} }), "spec 0"},
		{"action", full(func(a *FlowActionESPAttr) { a.Encap = []FlowSpec{FlowSpecUDP{}, FlowSpecActionDrop{}} }), "spec 1: ACTION_DROP is no header"},
		{"inner header", full(func(a *FlowActionESPAttr) { a.Encap = []FlowSpec{FlowSpecUDP{Inner: true}} }), "is no header"},
		{"mask", full(func(a *FlowActionESPAttr) { a.Encap = []FlowSpec{FlowSpecUDP{Mask: FlowTCPUDPFilter{SrcPort: 1}}} }), "no Mask"},
	} {
		_, err := f.dev.CreateFlowActionESP(tc.attr)
		refusal(t, tc.name, err, "ibv_create_flow_action_esp", syscall.EINVAL, tc.word)
	}
	if calls := f.Calls(); calls != nil {
		t.Errorf("C was called: %v", calls)
	}
}

// The headers before ESP: where each kind's value is, and how long.
func TestEncapLayouts(t *testing.T) {
	for _, tc := range append(specCases(false), plainCases(noAction(), noCounters())...) {
		if _, ok := tc.want["val.spi"]; ok || tc.spec.Type() >= FlowSpecTypeActionTag {
			continue
		}
		layout, ok := specLayouts[tc.spec.Type()]
		if !ok {
			t.Errorf("no layout of %T", tc.spec)
			continue
		}
		// A value ends where the mask begins, and the mask with the struct.
		val, mask := verbsread.Offset(tc.name, "val."), verbsread.Offset(tc.name, "mask.")
		if int(layout.at) != val || int(layout.at+layout.size) != mask || int(layout.at+2*layout.size) > verbsread.Size(tc.name) {
			t.Errorf("%T: value at %d and mask at %d, want %d and %d", tc.spec, layout.at, layout.at+layout.size, val, mask)
		}
	}
}
