package ibverbs

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/verbsfake"
)

// The bindings' own cost, on a device that completes everything at once. Go and
// C post and poll the same work requests in turn, in one run; each figure is the
// median over pairs of (Go's time - C's) / an empty cgo call's time. Times are
// the thread's CPU time, and a pair is short: what else runs on the machine
// takes no part in it, and a change of its speed changes a pair as a whole.
//
// It is run by make bench: ci/bench reads the metrics.

// workload is one way to post.
type workload struct {
	name   string
	batch  int
	sges   int // 0: inline
	opcode WROpcode
	recv   bool
}

var workloads = []workload{
	{name: "post_poll", batch: 1, sges: 1},
	{name: "post_poll", batch: 8, sges: 1},
	{name: "post_poll", batch: 32, sges: 1},
	{name: "post_poll", batch: 128, sges: 1},
	{name: "two_sges", batch: 1, sges: 2},
	{name: "two_sges", batch: 32, sges: 2},
	{name: "inline", batch: 1, sges: 0},
	{name: "inline", batch: 32, sges: 0},
	{name: "immediate", batch: 1, sges: 1, opcode: WRSendWithImm},
	{name: "immediate", batch: 32, sges: 1, opcode: WRSendWithImm},
	{name: "recv", batch: 1, sges: 1, recv: true},
	{name: "recv", batch: 32, sges: 1, recv: true},
	{name: "recv", batch: 128, sges: 1, recv: true},
}

const (
	emptyCalls  = 4096
	benchPairs  = 301
	benchSample = 200 * time.Microsecond // of each measurement
)

func BenchmarkOverhead(b *testing.B) {
	for _, w := range workloads {
		b.Run(fmt.Sprintf("%s/%d", w.name, w.batch), func(b *testing.B) {
			for range b.N {
				w.measure(b)
			}
		})
	}
}

// measure reports the medians of a workload's pairs.
func (w workload) measure(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := newNull(b)
	goLoop, cLoop := w.goLoop(b, n), w.cLoop(b, n)
	rounds := calibrate(cLoop)
	var ratios, goTimes, cTimes, empties []float64
	for pair := range benchPairs {
		var goNS, cNS float64
		empty := each(timed(verbsfake.EmptyCalls, emptyCalls), emptyCalls)
		if pair%2 == 0 {
			goNS, cNS = timed(goLoop, rounds), timed(cLoop, rounds)
		} else {
			cNS, goNS = timed(cLoop, rounds), timed(goLoop, rounds)
		}
		wrs := rounds * w.batch
		goNS, cNS = each(goNS, wrs), each(cNS, wrs)
		goTimes, cTimes, empties = append(goTimes, goNS), append(cTimes, cNS), append(empties, empty)
		ratios = append(ratios, (goNS-cNS)/empty)
	}
	b.ReportMetric(median(ratios), "overhead/wr")
	b.ReportMetric(median(goTimes), "go-ns/wr")
	b.ReportMetric(median(cTimes), "c-ns/wr")
	b.ReportMetric(median(empties), "empty-cgo-ns")
	b.ReportMetric(0, "ns/op")
}

func each(total float64, n int) float64 { return total / float64(n) }

// goLoop posts a batch and polls until all has completed.
func (w workload) goLoop(b *testing.B, n *null) func(rounds int) {
	wcs := make([]WC, w.batch)
	drain := func(cq *CQ) {
		for left := w.batch; left > 0; {
			got, err := cq.Poll(wcs[:left])
			if err != nil {
				b.Fatal(err)
			}
			left -= got
		}
	}
	if w.recv {
		wrs := n.recvs(w.batch, w.sges)
		return func(rounds int) {
			for range rounds {
				if _, err := n.qp.PostRecv(wrs); err != nil {
					b.Fatal(err)
				}
				drain(n.recvCQ)
			}
		}
	}
	wrs := n.sends(w.batch, w.sges, w.opcode)
	if w.sges == 0 {
		for i := range wrs {
			wrs[i].Inline = n.mem[:32]
		}
	}
	return func(rounds int) {
		for range rounds {
			if _, err := n.qp.PostSend(wrs); err != nil {
				b.Fatal(err)
			}
			drain(n.sendCQ)
		}
	}
}

func (w workload) cLoop(b *testing.B, n *null) func(rounds int) {
	sge := n.sge()
	l := verbsfake.Loop{
		QP: n.qp.c(), CQ: n.sendCQ.c(), Batch: w.batch, SGEs: w.sges, Opcode: uint32(w.opcode),
		Flags: uint32(SendSignaled), Recv: w.recv, Addr: sge.Addr, Length: sge.Length, LKey: sge.LKey,
	}
	if w.recv {
		l.CQ = n.recvCQ.c()
	}
	if w.sges == 0 {
		l.SGEs, l.Length, l.Flags = 1, 32, l.Flags|uint32(SendInline)
	}
	return func(rounds int) {
		if !l.Run(rounds) {
			b.Fatal("the loop in C failed")
		}
	}
}

// calibrate finds how many rounds take about as long as a measurement should.
func calibrate(loop func(rounds int)) int {
	for rounds := 64; ; rounds *= 2 {
		if d := timed(loop, rounds); d >= float64(benchSample) {
			return rounds
		}
	}
}

func timed(loop func(rounds int), rounds int) float64 {
	start := threadTime()
	loop(rounds)
	return threadTime() - start
}

// threadTime is the CPU time of this thread in nanoseconds.
func threadTime() float64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return float64(ts.Nano())
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return v[len(v)/2]
}

// BenchmarkConcurrent has several callers post and poll: each on a QP and CQs of
// its own, or all on one QP, with a CQ that each may find the others' completions
// in.
func BenchmarkConcurrent(b *testing.B) {
	for _, shared := range []bool{false, true} {
		for _, callers := range []int{1, 2, 8} {
			b.Run(fmt.Sprintf("shared=%v/callers=%d", shared, callers), func(b *testing.B) {
				n := newNull(b)
				qps := make([]*QP, callers)
				for i := range qps {
					qps[i] = n.qp
					if !shared {
						qps[i] = n.newQP(b, n.newCQ(b), n.newCQ(b))
					}
				}
				b.ResetTimer()
				var all sync.WaitGroup
				for _, qp := range qps {
					all.Go(func() {
						wrs, wcs := n.sends(32, 1, WRSend), make([]WC, 32)
						for range b.N / callers / 32 {
							if _, err := qp.PostSend(wrs); err != nil {
								b.Error(err)
								return
							}
							for left := 32; left > 0; {
								got, err := qp.sendCQ.Poll(wcs[:left])
								if err != nil {
									b.Error(err)
									return
								}
								left -= got
							}
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// BenchmarkAllocs reports the most that any step of the data path allocates.
func BenchmarkAllocs(b *testing.B) {
	n := newNull(b)
	n.withChannel(b, n.recvCQ)
	most := 0.0
	for _, step := range dataPath(b, n) {
		most = max(most, testing.AllocsPerRun(100, step))
	}
	b.ReportMetric(most, "most-allocs/op")
	b.ReportMetric(0, "ns/op")
}
