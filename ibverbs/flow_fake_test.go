package ibverbs

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/internal/verbsfake"
	"github.com/goverbs/goverbs/internal/verbsread"
)

// walkFlow follows a rule as its provider does, and calls fn for each spec.
func walkFlow(t *testing.T, attr unsafe.Pointer, want map[string]any, fn func(i int, spec unsafe.Pointer)) {
	t.Helper()
	fields := verbsread.Fields("ibv_flow_attr", attr)
	want["size"], want["num_of_specs"] = fields["size"], fields["num_of_specs"]
	if diff := verbsread.Diff("ibv_flow_attr", attr, want); diff != "" {
		t.Error(diff)
	}
	size := *(*uint16)(unsafe.Pointer(&fields["size"][0]))
	at := verbsread.Size("ibv_flow_attr")
	for i := range int(fields["num_of_specs"][0]) {
		spec := unsafe.Add(attr, at)
		fn(i, spec)
		head := verbsread.Fields("ibv_flow_spec_action_drop", spec) // as all begin
		at += int(*(*uint16)(unsafe.Pointer(&head["size"][0])))
	}
	if at != int(size) {
		t.Errorf("the specs end at %d, the rule at %d", at, size)
	}
}

// objects makes an action and counters of the fake's.
func (f *fake) objects(t *testing.T) (*FlowAction, *Counters) {
	t.Helper()
	action, err := f.dev.CreateFlowActionESP(FlowActionESPAttr{Attr: &ESPAttr{}, Keymat: &ESPAESGCM{ICVLen: 8, Key: make([]byte, 16)}})
	if err != nil {
		t.Fatal(err)
	}
	counters, err := f.dev.CreateCounters()
	if err != nil {
		t.Fatal(err)
	}
	return action, counters
}

// A rule with every kind of spec: what its provider gets, who is kept open by
// it, and in which order all close.
func TestFlow(t *testing.T) {
	var cases []specCase
	var f *fake
	var fail syscall.Errno
	walked := 0
	f = newFake(t, func(c verbsfake.Call) syscall.Errno {
		if c.Op == "create_flow" {
			if c.Object != unsafe.Pointer(f.qp.qp) {
				t.Error("the rule is another QP's")
			}
			want := map[string]any{"type": uint32(0), "priority": uint16(0x102), "port": uint8(3), "flags": uint32(2)}
			walkFlow(t, c.Arg, want, func(i int, spec unsafe.Pointer) {
				walked++
				if diff := verbsread.Diff(cases[i].name, spec, cases[i].want); diff != "" {
					t.Errorf("spec %d: %s", i, diff)
				}
			})
		}
		return fail
	})
	action, counters := f.objects(t)
	cases = append(append(specCases(false), plainCases(action, counters)...), specCases(true)...)
	// With MPLS, order would count.
	cases = slices.DeleteFunc(cases, func(c specCase) bool { return c.spec.Type() == FlowSpecTypeMPLS })
	attr := FlowAttr{Priority: 0x102, Port: 3, Flags: FlowDontTrap}
	for _, tc := range cases {
		attr.Specs = append(attr.Specs, tc.spec)
	}
	fail = syscall.EPERM
	_, err := f.qp.CreateFlow(attr)
	refusal(t, "CreateFlow", err, "ibv_create_flow", syscall.EPERM, "fake0/pd1/qp1", "CAP_NET_RAW")
	fail = syscall.EOPNOTSUPP
	_, err = f.qp.CreateFlow(attr)
	refusal(t, "CreateFlow", err, "ibv_create_flow", errors.ErrUnsupported, "flow steering")
	fail = 0
	flow, err := f.qp.CreateFlow(attr)
	if err != nil {
		t.Fatal(err)
	}
	if walked != 3*len(cases) || flow.QP() != f.qp || flow.String() != "fake0/pd1/qp1/flow3" {
		t.Errorf("%v: %d specs seen, want %d", flow, walked, 3*len(cases))
	}
	word := "1 flow (" + flow.String() + ")"
	refusal(t, "QP", f.qp.handle.close("close", nil, nil), "close", syscall.EBUSY, word)
	refusal(t, "action", action.Close(), "ibv_destroy_flow_action", syscall.EBUSY, word)
	refusal(t, "counters", counters.Close(), "ibv_destroy_counters", syscall.EBUSY, word)
	fail = syscall.EINVAL
	refusal(t, "Close", flow.Close(), "ibv_destroy_flow", syscall.EINVAL, flow.String())
	fail = 0
	for range 2 {
		if err := errors.Join(flow.Close(), action.Close(), counters.Close()); err != nil {
			t.Error(err)
		}
	}
	_, err = f.qp.CreateFlow(attr)
	refusal(t, "closed action", err, "ibv_create_flow", os.ErrClosed)
}

// A rule without specs, where its type needs none, and pointers to specs.
func TestFlowSpecForms(t *testing.T) {
	seen := 0
	f := newFake(t, func(c verbsfake.Call) syscall.Errno {
		if c.Op == "create_flow" {
			typ := *(*uint32)(unsafe.Pointer(&verbsread.Fields("ibv_flow_attr", c.Arg)["type"][0]))
			walkFlow(t, c.Arg, map[string]any{"type": typ, "port": uint8(1)}, func(int, unsafe.Pointer) { seen++ })
		}
		return 0
	})
	action, counters := f.objects(t)
	for _, attr := range []FlowAttr{
		{Type: FlowSniffer, Port: 1},
		{Type: FlowAllDefault, Port: 1},
		{Type: FlowMCDefault, Port: 1},
		{Port: 1, Specs: []FlowSpec{&FlowSpecActionHandle{action}, &FlowSpecActionCount{counters}, &FlowSpecUDP{}}},
	} {
		flow, err := f.qp.CreateFlow(attr)
		if err != nil {
			t.Fatal(err)
		}
		if attr.Specs != nil {
			refusal(t, "action", action.Close(), "ibv_destroy_flow_action", syscall.EBUSY)
			refusal(t, "counters", counters.Close(), "ibv_destroy_counters", syscall.EBUSY)
		}
		if err := flow.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(action.Close(), counters.Close()); err != nil || seen != 3 {
		t.Errorf("%v, %d specs", err, seen)
	}
}

// What is wrong with a rule does not reach the provider.
func TestFlowChecks(t *testing.T) {
	f := newFake(t, nil)
	action, counters := f.objects(t)
	f.Calls()
	other := &QP{dev: &Device{}}
	eth, ip := FlowSpecEth{}, FlowSpecIPv4{Inner: true}
	for _, tc := range []struct {
		name  string
		qp    *QP
		specs []FlowSpec
		word  string
	}{
		{"none", f.qp, nil, "needs Specs"},
		{"256", f.qp, slices.Repeat([]FlowSpec{eth}, 256), "256 Specs"},
		{"nil", f.qp, []FlowSpec{eth, nil}, "spec 1 is nil"},
		{"another device's action", other, []FlowSpec{FlowSpecActionHandle{action}}, action.String() + " is another device's"},
		{"another device's counters", other, []FlowSpec{&FlowSpecActionCount{counters}}, counters.String() + " is another device's"},
		{"inner only", f.qp, []FlowSpec{ip, FlowSpecActionDrop{}}, "spec for the tunnel"},
		{"outer after inner, with MPLS", f.qp, []FlowSpec{eth, FlowSpecMPLS{}, ip, FlowSpecUDP{}}, "spec 3: an outer UDP after inner"},
		{"outer after inner MPLS", f.qp, []FlowSpec{eth, FlowSpecMPLS{Inner: true}, FlowSpecIPv6{}}, "spec 2: an outer IPV6"},
	} {
		_, err := tc.qp.CreateFlow(FlowAttr{Port: 1, Specs: tc.specs})
		refusal(t, tc.name, err, "ibv_create_flow", syscall.EINVAL, tc.word)
	}
	if calls := f.Calls(); calls != nil {
		t.Errorf("C was called: %v", calls)
	}
	for name, specs := range map[string][]FlowSpec{
		"VXLAN":                   {eth, FlowSpecUDP{}, FlowSpecVXLANTunnel{}, ip, FlowSpecActionTag{1}},
		"outer after inner":       {ip, eth},
		"MPLS":                    {eth, FlowSpecMPLS{}, ip, FlowSpecActionDrop{}, FlowSpecTCP{Inner: true}},
		"255":                     slices.Repeat([]FlowSpec{FlowSpecIPv6{}}, 255),
		"actions only, of egress": {FlowSpecActionHandle{action}},
	} {
		flow, err := f.qp.CreateFlow(FlowAttr{Port: 1, Specs: specs})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		flow.Close()
	}
	if err := errors.Join(action.Close(), counters.Close()); err != nil {
		t.Error(err)
	}
}
