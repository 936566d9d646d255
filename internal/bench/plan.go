package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Plan is what a client measures: every combination of mode, operation and size, on
// each of the transports.
type Plan struct {
	Transports []string
	Ops        []Op
	Modes      []Mode
	Sizes      []int
	// Iters is the number of messages of each measurement; 0: DefaultLatencyIters,
	// or as many as make DefaultVolume bytes.
	Iters int
	// Duration, if not 0, is how long a measurement takes on the slowest
	// transport: the number of messages is chosen for that, the same for all
	// transports. Iters, if not 0, is the most then.
	Duration time.Duration
	Depth    int           // messages under way, for throughput
	Limit    time.Duration // longest time for one measurement
}

// What a Plan measures where it does not say.
const (
	DefaultLatencyIters = 1000
	DefaultVolume       = 32 << 20 // bytes
	MinThroughputIters  = 16
	DefaultDepth        = 8
	DefaultLimit        = 60 * time.Second
)

const (
	maxThroughputIters = 100_000
	maxDurationIters   = 10_000_000
	minDurationIters   = 10

	// One message in so many is sent once more, before the run, to warm up.
	warmupShare      = 10
	latencyWarmup    = 50 // at least
	throughputWarmup = 4  // at least
	maxWarmup        = 1000
)

// Validate reports the first thing in p that cannot be measured.
func (p Plan) Validate() error {
	if len(p.Transports) == 0 || len(p.Ops) == 0 || len(p.Modes) == 0 || len(p.Sizes) == 0 {
		return fmt.Errorf("nothing to measure: name at least one transport, operation, mode and size")
	}
	for _, t := range p.Transports {
		if !slices.Contains(AllTransports(), t) {
			return fmt.Errorf("unknown transport %q: use %s", t, strings.Join(AllTransports(), ", "))
		}
	}
	if p.Iters < 0 || p.Duration < 0 {
		return fmt.Errorf("iterations and duration cannot be negative")
	}
	for _, row := range p.Rows() {
		if err := row.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// AllTransports are the known transports, in the order of the tables.
func AllTransports() []string { return []string{TransportRoCE, TransportIWARP, TransportTCP} }

// Rows are the Tasks of p in the order they are run; each runs on every transport
// before the next one does, so that what changes on the machine meanwhile meets
// all transports alike.
func (p Plan) Rows() []Task {
	var rows []Task
	for _, mode := range p.Modes {
		for _, kind := range []Kind{KindLatency, KindThroughput} {
			for _, op := range p.Ops {
				for _, size := range p.Sizes {
					if KindOf(size) == kind {
						rows = append(rows, p.row(mode, kind, op, size))
					}
				}
			}
		}
	}
	return rows
}

// KindOf is what is measured at a size.
func KindOf(size int) Kind {
	if size <= LatencyMaxSize {
		return KindLatency
	}
	return KindThroughput
}

func (p Plan) row(mode Mode, kind Kind, op Op, size int) Task {
	t := Task{Op: op, Mode: mode, Kind: kind, Size: size, Iters: p.Iters, Depth: 1, Limit: p.Limit}
	if kind == KindThroughput {
		t.Depth = p.Depth
	}
	switch {
	case t.Iters > 0:
	case kind == KindLatency:
		t.Iters = DefaultLatencyIters
	default:
		t.Iters = min(max(DefaultVolume/max(size, 1), MinThroughputIters), maxThroughputIters)
	}
	return t
}

// Warmup is t as it is run before it counts, with fewer messages.
func (t Task) Warmup() Task {
	least := latencyWarmup
	if t.Kind == KindThroughput {
		least = throughputWarmup
	}
	t.Iters = min(t.Iters, max(least, min(t.Iters/warmupShare, maxWarmup)))
	return t
}

// itersFor is how many messages of t take p.Duration, if so many took elapsed on
// the slowest transport.
func (p Plan) itersFor(messages int, elapsed time.Duration) int {
	most := maxDurationIters
	if p.Iters > 0 {
		most = p.Iters
	}
	n := float64(messages) * float64(p.Duration) / float64(max(elapsed, 1))
	return int(min(max(n, min(minDurationIters, float64(most))), float64(most)))
}

// params is what data connections need to carry every row of p.
func (p Plan) params() Params {
	params := Params{Depth: 1}
	for _, t := range p.Rows() {
		if p.Duration > 0 {
			t.Iters = maxDurationIters
		}
		params.Depth = max(params.Depth, t.Depth)
		params.Region = max(params.Region, t.Region())
	}
	return params
}
