package bench

import (
	"math"
	"testing"
	"time"
)

func TestLatencySummary(t *testing.T) {
	r := NewRecorder()
	for i := 1; i <= 1000; i++ {
		r.Latency(time.Duration(i) * time.Microsecond)
	}
	got, err := r.LatencySummary()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"minimum", got.MinUS, 1}, {"median", got.P50US, 500}, {"99 %", got.P99US, 990},
		{"99.9 %", got.P999US, 999}, {"maximum", got.MaxUS, 1000}, {"mean", got.MeanUS, 500.5},
	} {
		if math.Abs(c.got-c.want) > c.want/500 {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if got.Samples != 1000 {
		t.Errorf("%d samples", got.Samples)
	}
}

// TestLatencySummaryStaysWithinWhatWasSeen: the histogram's rounding does not show.
func TestLatencySummaryStaysWithinWhatWasSeen(t *testing.T) {
	r := NewRecorder()
	r.Latency(123_457 * time.Nanosecond)
	got, err := r.LatencySummary()
	if err != nil {
		t.Fatal(err)
	}
	if got.MinUS != 123.457 || got.P50US != 123.457 || got.P999US != 123.457 || got.MaxUS != 123.457 {
		t.Errorf("one sample of 123.457 µs: %+v", got)
	}
}

func TestSummariesOfNothing(t *testing.T) {
	r := NewRecorder()
	if l, err := r.LatencySummary(); err == nil {
		t.Errorf("latency of nothing: %+v", l)
	}
	if b, err := r.ThroughputSummary(1); err == nil {
		t.Errorf("throughput of nothing: %+v", b)
	}
}

func TestThroughputSummary(t *testing.T) {
	r := NewRecorder()
	r.Finish(2*time.Second, 1000)
	got, err := r.ThroughputSummary(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if got.MiBPerSecond != 500 || got.MessagesPerSecond != 500 || math.Abs(got.GbitPerSecond-4.194304) > 1e-9 {
		t.Errorf("%+v", got)
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	r := NewRecorder()
	if n := testing.AllocsPerRun(100, func() { r.Latency(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestProcStat(t *testing.T) {
	from := parseProcStat("cpu  10 1 20 1000 5 2 3 4 7 7\ncpu0 1 2 3 4\n")
	if from.busy != 40 || from.total != 1045 {
		t.Fatalf("%+v", from)
	}
	to := parseProcStat("cpu  60 1 70 1100 5 2 3 4 7 7\n")
	if got := from.busyUntil(to); got != 50 {
		t.Errorf("busy %v %%, want 50", got)
	}
	if got := from.busyUntil(from); got != -1 {
		t.Errorf("no time at all: %v, want -1", got)
	}
	for _, bad := range []string{"", "cpu", "cpu0 1 2 3 4", "cpu a b c d"} {
		if got := parseProcStat(bad); got != (procStat{}) {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestMeter(t *testing.T) {
	m := StartMeter()
	for begin := time.Now(); time.Since(begin) < 20*time.Millisecond; {
	}
	u := m.Stop()
	if u.Percent() <= 0 || u.VoluntarySwitches < 0 || u.InvoluntarySwitches < 0 {
		t.Errorf("20 ms of work: %+v", u)
	}
}
