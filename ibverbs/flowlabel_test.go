package ibverbs

import (
	"errors"
	"syscall"
	"testing"
)

func TestTrafficClass(t *testing.T) {
	for dscp := range uint8(64) {
		class, err := TrafficClass(dscp)
		if err != nil || class != dscp<<2 || (GRH{TrafficClass: class | 3}).DSCP() != dscp || (AHAttr{TrafficClass: class | 1}).DSCP() != dscp {
			t.Errorf("DSCP %d: class %#x, %v", dscp, class, err)
		}
	}
	if _, err := TrafficClass(64); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("DSCP 64: %v, want EINVAL", err)
	}
}

func TestFlowLabels(t *testing.T) {
	for label, want := range map[uint32]uint16{
		0:       0xc000,
		1:       0xc001,
		0x03fff: 0xffff,
		0x04000: 0xc001, // the upper bits are folded in
		0xfffff: 0xffff ^ 0x3f,
		1 << 20: 0xc000, // what is no part of the label
	} {
		if got := FlowLabelToUDPSport(label); got != want {
			t.Errorf("flow label %#x: port %#x, want %#x", label, got, want)
		}
	}
	for _, tc := range []struct{ a, b, want uint32 }{
		{0, 17, 0},
		{17, 19, 17 * 19},
		{0x800000, 0x20, 0x100}, // 2^28 folds once
		{0xffffff, 0xffffff, 0xfff1e},
		{0x123456, 0x6789ab, 0x136f9},
	} {
		if got, back := FlowLabelFromQPNs(tc.a, tc.b), FlowLabelFromQPNs(tc.b, tc.a); got != tc.want || back != tc.want {
			t.Errorf("QPs %#x and %#x: %#x and %#x, want %#x", tc.a, tc.b, got, back, tc.want)
		}
	}
	seen := make(map[uint32]bool)
	for range 1000 {
		label := RandomFlowLabel()
		if label == 0 || label>>flowLabelBits != 0 {
			t.Fatalf("flow label %#x", label)
		}
		seen[label] = true
	}
	if len(seen) < 900 {
		t.Errorf("%d different labels in 1000", len(seen))
	}
}
