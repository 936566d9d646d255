package bench

import (
	"strings"
	"testing"
	"time"
)

func validTask() Task {
	return Task{Op: OpSend, Mode: ModePoll, Kind: KindThroughput, Size: 4096, Iters: 100, Depth: 8, Limit: time.Second}
}

func TestTaskValidate(t *testing.T) {
	if err := validTask().Validate(); err != nil {
		t.Fatalf("a good task: %v", err)
	}
	for _, tt := range []struct {
		name   string
		change func(*Task)
		want   string
	}{
		{"operation", func(t *Task) { t.Op = "atomic" }, `unknown operation "atomic"`},
		{"mode", func(t *Task) { t.Mode = "" }, `unknown mode ""`},
		{"kind", func(t *Task) { t.Kind = "x" }, `unknown kind`},
		{"no size", func(t *Task) { t.Size = 0 }, "message size 0"},
		{"huge", func(t *Task) { t.Size = MaxSize + 1 }, "message size"},
		{"no iterations", func(t *Task) { t.Iters = 0 }, "0 iterations"},
		{"endless", func(t *Task) { t.Iters = MaxIters + 1 }, "iterations"},
		{"no depth", func(t *Task) { t.Depth = 0 }, "depth 0"},
		{"deep", func(t *Task) { t.Depth = MaxDepth + 1 }, "depth 257"},
		{"latency at depth", func(t *Task) { t.Kind = KindLatency }, "one message under way"},
		{"no limit", func(t *Task) { t.Limit = 0 }, "time limit"},
		{"long limit", func(t *Task) { t.Limit = MaxLimit + 1 }, "time limit"},
		{"memory", func(t *Task) { t.Size, t.Depth, t.Iters = MaxSize, 16, 1000 }, "buffers"},
	} {
		task := validTask()
		tt.change(&task)
		if err := task.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error about %q", tt.name, err, tt.want)
		}
	}
}

func TestTaskRegion(t *testing.T) {
	for _, tt := range []struct {
		size, iters, depth  int
		region, slotsInHalf int
	}{
		{64, 1000, 1, 64000, 500},
		{1, 1000, 1, 64000, 500},
		{65, 10, 1, 1280, 5},
		{1 << 20, 16, 8, 16 << 20, 8},
		{1 << 20, 1000, 8, 32 << 20, 16}, // a slot each would be too much
		{32 << 20, 100, 2, 128 << 20, 2}, // but the depth must fit
		{64, 1 << 30, 1, 32 << 20, 1 << 18},
	} {
		task := Task{Size: tt.size, Iters: tt.iters, Depth: tt.depth}
		if got := task.Region(); got != tt.region {
			t.Errorf("size %d, %d iterations, depth %d: region %d, want %d", tt.size, tt.iters, tt.depth, got, tt.region)
		}
		if got := task.Slots(tt.region / 2); got != tt.slotsInHalf {
			t.Errorf("size %d: %d slots in %d bytes, want %d", tt.size, got, tt.region/2, tt.slotsInHalf)
		}
	}
}

func TestTaskFits(t *testing.T) {
	task := validTask()
	for _, tt := range []struct {
		params Params
		ok     bool
	}{
		{Params{Depth: 8, Region: 16 * 4096}, true},
		{Params{Depth: 7, Region: 1 << 20}, false},
		{Params{Depth: 8, Region: 16*4096 - 1}, false},
	} {
		if err := task.fits(tt.params); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.params, err)
		}
	}
}

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int
	}{
		{"1", 1}, {"64", 64}, {"64b", 64}, {" 4K ", 4096}, {"4k", 4096}, {"4KiB", 4096}, {"4 kb", 4096},
		{"1M", 1 << 20}, {"64MiB", 64 << 20},
	} {
		if got, err := ParseSize(tt.text); err != nil || got != tt.want {
			t.Errorf("%q: %d, %v, want %d", tt.text, got, err, tt.want)
		}
	}
	for _, bad := range []string{"", "0", "-1", "65M", "1G", "1.5K", "K", "0x10", "99999999999999999999", "4294967297"} {
		if got, err := ParseSize(bad); err == nil {
			t.Errorf("%q: accepted as %d", bad, got)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int]string{1: "1 B", 1000: "1000 B", 1024: "1 KiB", 1536: "1536 B", 1 << 20: "1 MiB", 3 << 19: "1536 KiB"} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPlanRows(t *testing.T) {
	p := Plan{
		Transports: AllTransports(), Ops: []Op{OpSend, OpRead}, Modes: []Mode{ModePoll, ModeEvent},
		Sizes: []int{64, 1 << 20}, Depth: 8, Limit: time.Minute,
	}
	var got []string
	for _, row := range p.Rows() {
		if err := row.Validate(); err != nil {
			t.Error(err)
		}
		got = append(got, row.String())
	}
	want := "SEND 64 B latency poll, READ 64 B latency poll, SEND 1 MiB throughput poll, READ 1 MiB throughput poll, " +
		"SEND 64 B latency event, READ 64 B latency event, SEND 1 MiB throughput event, READ 1 MiB throughput event"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("rows: %s\nwant: %s", all, want)
	}
	params := p.params()
	for _, row := range p.Rows() {
		if err := row.fits(params); err != nil {
			t.Errorf("%v: %v", row, err)
		}
		if row.Slots(params.Region) != row.Iters {
			t.Errorf("%v: not every message has a slot", row)
		}
	}
}

func TestPlanValidate(t *testing.T) {
	good := Plan{Transports: []string{"tcp"}, Ops: []Op{OpSend}, Modes: []Mode{ModePoll}, Sizes: []int{64}, Depth: 1, Limit: time.Minute}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Plan){
		"no transport": func(p *Plan) { p.Transports = nil },
		"no size":      func(p *Plan) { p.Sizes = nil },
		"transport":    func(p *Plan) { p.Transports = []string{"udp"} },
		"operation":    func(p *Plan) { p.Ops = []Op{"x"} },
		"iterations":   func(p *Plan) { p.Iters = -1 },
		"duration":     func(p *Plan) { p.Duration = -1 },
	} {
		p := good
		change(&p)
		if p.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestItersFor(t *testing.T) {
	for _, tt := range []struct {
		duration          time.Duration
		most, trial, want int
		elapsed           time.Duration
	}{
		{time.Second, 0, 50, 500, 100 * time.Millisecond},
		{time.Second, 200, 50, 200, 100 * time.Millisecond}, // --iters is the most
		{time.Second, 0, 4, minDurationIters, time.Minute},  // never too few to mean anything
		{time.Second, 3, 4, 3, time.Minute},
		{time.Hour, 0, 50, maxDurationIters, time.Microsecond},
	} {
		p := Plan{Duration: tt.duration, Iters: tt.most}
		if got := p.itersFor(tt.trial, tt.elapsed); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

func TestWarmup(t *testing.T) {
	for _, tt := range []struct {
		kind        Kind
		iters, want int
	}{
		{KindLatency, 10, 10}, {KindLatency, 100, 50}, {KindLatency, 5000, 500}, {KindLatency, 1 << 20, maxWarmup},
		{KindThroughput, 2, 2}, {KindThroughput, 16, 4}, {KindThroughput, 256, 25},
	} {
		if got := (Task{Kind: tt.kind, Iters: tt.iters}).Warmup().Iters; got != tt.want {
			t.Errorf("%s, %d iterations: warm-up %d, want %d", tt.kind, tt.iters, got, tt.want)
		}
	}
}
