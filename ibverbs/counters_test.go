package ibverbs

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/internal/verbsfake"
	"github.com/goverbs/goverbs/internal/verbsread"
)

// Counters from their creation to their end.
func TestCounters(t *testing.T) {
	var flow *Flow
	var fail syscall.Errno
	var attachTo uintptr
	f := newFake(t, func(c verbsfake.Call) syscall.Errno {
		switch c.Op {
		case "attach_counters_point_flow":
			diff := verbsread.Diff("ibv_counter_attach_attr", c.Arg, map[string]any{"counter_desc": uint32(1), "index": uint32(7)})
			if diff != "" || uintptr(c.Values[0]) != attachTo {
				t.Errorf("%s; attached to %#x, want %#x", diff, c.Values[0], attachTo)
			}
		case "read_counters":
			for i := range unsafe.Slice((*uint64)(c.Arg), c.Values[0]) {
				*(*uint64)(unsafe.Add(c.Arg, 8*i)) = uint64(100 + i)
			}
			if c.Values[1] != 1 {
				t.Errorf("flags %#x", c.Values[1])
			}
		}
		return fail
	})
	fail = syscall.EOPNOTSUPP
	_, err := f.dev.CreateCounters()
	refusal(t, "create", err, "ibv_create_counters", syscall.EOPNOTSUPP, "fake0")
	fail = 0
	counters, err := f.dev.CreateCounters()
	if err != nil {
		t.Fatal(err)
	}
	if err := counters.AttachPointFlow(nil, CounterBytes, 7); err != nil {
		t.Error(err)
	}
	if flow, err = f.qp.CreateFlow(FlowAttr{Type: FlowSniffer, Port: 1}); err != nil {
		t.Fatal(err)
	}
	attachTo = uintptr(unsafe.Pointer(flow.flow))
	if err := counters.AttachPointFlow(flow, CounterBytes, 7); err != nil {
		t.Error(err)
	}
	values := []uint64{1, 2, 3, 4}
	if err := counters.Read(values[:3], ReadCountersPreferCached); err != nil || !slices.Equal(values, []uint64{100, 101, 102, 4}) {
		t.Errorf("%v, %v", values, err)
	}
	f.Calls()
	refusal(t, "no room", counters.Read(nil, 1), "ibv_read_counters", syscall.EINVAL, "room")
	foreign := &Flow{qp: &QP{dev: &Device{}}}
	if err := foreign.adopt("flow"); err != nil {
		t.Fatal(err)
	}
	refusal(t, "foreign", counters.AttachPointFlow(foreign, CounterBytes, 7), "ibv_attach_counters_point_flow", syscall.EINVAL, "another device")
	if err := flow.Close(); err != nil {
		t.Error(err)
	}
	refusal(t, "closed flow", counters.AttachPointFlow(flow, CounterBytes, 7), "ibv_attach_counters_point_flow", os.ErrClosed, flow.String())
	if calls := f.Calls(); !slices.Equal(calls, []string{"destroy_flow"}) {
		t.Errorf("calls %v", calls)
	}
	attachTo, fail = 0, syscall.EBUSY
	refusal(t, "attach", counters.AttachPointFlow(nil, CounterBytes, 7), "ibv_attach_counters_point_flow", syscall.EBUSY, counters.String())
	refusal(t, "read", counters.Read(values, 1), "ibv_read_counters", syscall.EBUSY, counters.String())
	refusal(t, "close", counters.Close(), "ibv_destroy_counters", syscall.EBUSY, counters.String())
	fail = 0
	for range 2 {
		if err := counters.Close(); err != nil {
			t.Error(err)
		}
	}
	refusal(t, "closed", counters.Read(values, 0), "ibv_read_counters", os.ErrClosed)
	refusal(t, "closed", counters.AttachPointFlow(nil, 0, 0), "ibv_attach_counters_point_flow", os.ErrClosed)
	if counters.Device() != f.dev {
		t.Error("another device's")
	}
}
