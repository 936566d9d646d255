package bench

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The histogram's range and precision: nanoseconds to MaxLimit, to three
// significant digits. Minimum and maximum are kept exactly.
const (
	histogramMin    = 1
	histogramMax    = int64(MaxLimit)
	histogramDigits = 3
)

// Recorder takes what the active side of a run times. It is made before the run
// and allocates nothing during it. It is used by one goroutine.
type Recorder struct {
	hist     *hdrhistogram.Histogram
	min, max int64
	elapsed  time.Duration
	messages int
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder {
	return &Recorder{
		hist: hdrhistogram.New(histogramMin, histogramMax, histogramDigits),
		min:  math.MaxInt64,
	}
}

// Latency records one message of a latency run.
func (r *Recorder) Latency(d time.Duration) {
	ns := max(int64(d), histogramMin)
	r.min, r.max = min(r.min, ns), max(r.max, ns)
	// Out of range only past MaxLimit, which ends a run anyway.
	_ = r.hist.RecordValue(min(ns, histogramMax))
}

// Finish records how long the whole run took, from the first message posted to the
// last one known to have arrived, and how many messages that was.
func (r *Recorder) Finish(elapsed time.Duration, messages int) {
	r.elapsed, r.messages = elapsed, messages
}

// Elapsed is what Finish was told.
func (r *Recorder) Elapsed() time.Duration { return r.elapsed }

// Latency is the distribution of a latency run, in microseconds.
type Latency struct {
	Samples int64   `json:"samples"`
	MinUS   float64 `json:"min_us"`
	P50US   float64 `json:"p50_us"`
	P99US   float64 `json:"p99_us"`
	P999US  float64 `json:"p999_us"`
	MaxUS   float64 `json:"max_us"`
	MeanUS  float64 `json:"mean_us"`
}

// LatencySummary sums up the latencies recorded; it fails if there are none.
func (r *Recorder) LatencySummary() (*Latency, error) {
	if r.hist.TotalCount() == 0 {
		return nil, fmt.Errorf("no latency was recorded")
	}
	us := func(ns float64) float64 { return ns / 1e3 }
	// The histogram rounds to its precision, which must not put a percentile
	// outside what was seen.
	quantile := func(q float64) float64 {
		return us(float64(min(max(r.hist.ValueAtQuantile(q), r.min), r.max)))
	}
	return &Latency{
		Samples: r.hist.TotalCount(),
		MinUS:   us(float64(r.min)),
		P50US:   quantile(50),
		P99US:   quantile(99),
		P999US:  quantile(99.9),
		MaxUS:   us(float64(r.max)),
		MeanUS:  us(r.hist.Mean()),
	}, nil
}

// Throughput is the speed of a throughput run. MiB are 2^20 bytes, Gbit 10^9
// bits; only the messages' own bytes count, no headers.
type Throughput struct {
	MiBPerSecond      float64 `json:"mib_per_second"`
	GbitPerSecond     float64 `json:"gbit_per_second"`
	MessagesPerSecond float64 `json:"messages_per_second"`
}

// ThroughputSummary sums up a run of messages of the given size; it fails if
// the run was not finished.
func (r *Recorder) ThroughputSummary(size int) (*Throughput, error) {
	if r.elapsed <= 0 || r.messages <= 0 {
		return nil, fmt.Errorf("the run has no duration")
	}
	perSecond := float64(r.messages) / r.elapsed.Seconds()
	bytes := perSecond * float64(size)
	return &Throughput{
		MiBPerSecond:      bytes / (1 << 20),
		GbitPerSecond:     bytes * 8 / 1e9,
		MessagesPerSecond: perSecond,
	}, nil
}
