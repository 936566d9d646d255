package ibverbs_test

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// storm sends signals to all threads of the process, as Go's preemption and its
// CPU profiler do, until stop is closed.
func storm(t *testing.T, stop <-chan struct{}) {
	for {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Error(err)
			return
		}
		for _, thread := range threads {
			select {
			case <-stop:
				return
			default:
			}
			var tid int
			for _, c := range thread.Name() {
				tid = 10*tid + int(c-'0')
			}
			for _, sig := range []syscall.Signal{syscall.SIGURG, syscall.SIGPROF} {
				// A thread may have gone meanwhile.
				if err := unix.Tgkill(os.Getpid(), tid, sig); err != nil && err != unix.ESRCH {
					t.Error(err)
					return
				}
			}
		}
	}
}

// Calls that take long in the kernel succeed on threads that signals rain on:
// none gives up with EINTR.
func TestSignalStorm(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		// Without a handler of the program's own SIGPROF may be the end of it.
		caught := make(chan os.Signal, 1)
		// SIGURG is what is looked for: Go's runtime keeps SIGPROF to itself.
		signal.Notify(caught, syscall.SIGPROF, syscall.SIGURG)
		defer signal.Stop(caught)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { storm(t, stop) })
		defer wg.Wait()
		defer close(stop)
		pd := verbstest.PD(t, target.Dev)
		for range 20 {
			mr, err := pd.AllocMR(1<<20, verbstest.AllAccess, ibverbs.BufferOptions{})
			if err != nil {
				t.Fatal(err)
			}
			cq := verbstest.Must[*ibverbs.CQ](t)(target.Dev.CreateCQ(1024, ibverbs.CQOptions{}))
			qp, err := pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap})
			if err != nil {
				t.Fatal(err)
			}
			_, query := target.Dev.QueryPort(target.Port)
			if err := errors.Join(query, qp.Close(), cq.Close(), mr.Close()); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-caught:
		default:
			t.Error("no signal came: the test has not tested it")
		}
	})
}
