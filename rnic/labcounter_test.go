package rnic_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	"github.com/goverbs/goverbs/rnic"
)

// The counters are those that rdma(8) shows, no more and no fewer; as they only
// grow, its value is between one taken before and one after.
func TestLabCounters(t *testing.T) {
	for _, r := range labRNICs(t) {
		t.Run(r.Driver, func(t *testing.T) {
			before, shown, after := hwCounters(t, r.Name), shownCounters(t, r.Name), hwCounters(t, r.Name)
			for name, v := range shown {
				if low, ok := before[name]; !ok || v < low || v > after[name] {
					t.Errorf("rdma says %s is %d; rnic %d (there: %v) before and %d after", name, v, low, ok, after[name])
				}
			}
			if len(before) != len(shown) {
				t.Errorf("rnic has %d counters, rdma %d: %v, %v", len(before), len(shown), before, shown)
			}
			t.Logf("%d hw_counters", len(before))
		})
	}
}

func hwCounters(t *testing.T, name string) map[string]uint64 {
	t.Helper()
	c, err := rnic.ReadCounters(name)
	if err != nil || len(c.Problems) > 0 {
		t.Fatalf("%v, problems %v", err, c.Problems)
	}
	out := map[string]uint64{}
	for _, c := range c.Counters {
		if c.Source == rnic.CounterHW && c.Port > 0 {
			out[fmt.Sprintf("%d/%s", c.Port, c.Name)] = c.Value
		}
	}
	return out
}

// shownCounters asks rdma(8), which fails for a driver that has no counters.
func shownCounters(t *testing.T, name string) map[string]uint64 {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "rdma", "-j", "statistic", "show", "link", name+"/1").Output()
	if err != nil {
		return nil
	}
	var links []map[string]any
	if err := json.Unmarshal(text, &links); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out := map[string]uint64{}
	for _, link := range links {
		for key, v := range link {
			if n, ok := v.(float64); ok && key != "ifindex" && key != "port" {
				out[fmt.Sprintf("%v/%s", link["port"], key)] = uint64(n)
			}
		}
	}
	return out
}
