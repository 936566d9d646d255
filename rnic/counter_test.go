package rnic

import (
	"errors"
	"io/fs"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const countersTree = `class/infiniband/mlx5_0 -> ../../devices/mlx5_0
devices/mlx5_0/hw_counters/lifespan = 10
devices/mlx5_0/hw_counters/vport_loopback = 7
devices/mlx5_0/ports/1/counters/port_xmit_data = 18446744073709551615
devices/mlx5_0/ports/1/counters/port_rcv_errors = N/A (no PMA)
devices/mlx5_0/ports/1/hw_counters/lifespan = 10
devices/mlx5_0/ports/1/hw_counters/out_of_sequence = 3
devices/mlx5_0/ports/1/hw_counters/np_cnp_sent !
devices/mlx5_0/ports/1/hw_counters/negative = -1
devices/mlx5_0/ports/1/hw_counters/none =
"devices/mlx5_0/ports/1/hw_counters/a\x1b[2J" = 4
devices/mlx5_0/ports/2/hw_counters !
`

func TestReadCounters(t *testing.T) {
	h := treeOf(t, countersTree)
	got, err := h.ReadCounters("mlx5_0")
	if err != nil {
		t.Fatal(err)
	}
	want := []Counter{
		{CounterHW, 0, "vport_loopback", 7},
		{CounterPort, 1, "port_xmit_data", math.MaxUint64},
		{CounterHW, 1, "a\x1b[2J", 4},
		{CounterHW, 1, "out_of_sequence", 3},
	}
	if d := cmp.Diff(want, got.Counters); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got.RNIC != "mlx5_0" || got.Time.IsZero() {
		t.Errorf("RNIC %q at %v", got.RNIC, got.Time)
	}
	wantProblems := []string{
		`class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors: "N/A (no PMA)" is not a counter's value`,
		`class/infiniband/mlx5_0/ports/1/hw_counters/negative: "-1" is not a counter's value`,
		`class/infiniband/mlx5_0/ports/1/hw_counters/none: "" is not a counter's value`,
		`class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent: too many levels of symbolic links`,
		`class/infiniband/mlx5_0/ports/2/hw_counters: too many levels of symbolic links`,
	}
	if d := cmp.Diff(wantProblems, problemLines(h, RNIC{Problems: got.Problems})); d != "" {
		t.Errorf("problems: -want +got\n%s", d)
	}
}

// No counters is no problem; no port, no device behind the link, and no RNIC are.
func TestReadCountersNone(t *testing.T) {
	tests := []struct {
		name, tree string
		problems   []string
		err        error
	}{
		{name: "no counters", tree: "class/infiniband/siw0/ports/1 /"},
		{name: "no port", tree: "class/infiniband/siw0 /", problems: []string{"class/infiniband/siw0/ports: empty"}},
		{name: "half removed", tree: "class/infiniband/siw0 -> gone", problems: []string{"class/infiniband/siw0: no such file or directory"}},
		{name: "no RNIC", tree: "class/infiniband /", err: fs.ErrNotExist},
		{name: "no RDMA", tree: "class /", err: ErrNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := treeOf(t, tt.tree)
			got, err := h.ReadCounters("siw0")
			if tt.err != nil {
				checkOpError(t, err, "counters", "siw0", tt.err, nil)
				return
			}
			if err != nil || got.Counters == nil || len(got.Counters) != 0 {
				t.Errorf("%+v, %v, want an empty list", got, err)
			}
			if d := cmp.Diff(tt.problems, problemLines(h, RNIC{Problems: got.Problems})); d != "" {
				t.Errorf("problems: -want +got\n%s", d)
			}
		})
	}
	if _, err := treeOf(t, "class /").ReadCounters("../x"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("a name that is none: %v", err)
	}
}
