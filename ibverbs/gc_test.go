package ibverbs_test

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// collect has the collector run at least n times while work runs, with
// something around that wants memory.
func collect(n int, work func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			runtime.GC()
			_ = bytes.Repeat([]byte{0xee}, 1<<20)
			select {
			case <-done:
				if i >= n {
					return
				}
			default:
			}
		}
	})
	work()
	close(done)
	wg.Wait()
}

// heapMR registers memory of Go's heap to which nobody else refers.
func heapMR(t *testing.T, pd *ibverbs.PD, size, seed int) *ibverbs.MR {
	t.Helper()
	b := make([]byte, size)
	verbstest.Pattern(b, seed)
	mr := verbstest.Must[*ibverbs.MR](t)(pd.RegMR(b, verbstest.AllAccess))
	verbstest.Close(t, mr)
	return mr
}

// Buffers of Go's heap to which only their regions refer stay where they are,
// while the collector runs and messages, WRITEs and READs come and go.
func TestHeapBuffersUnderGC(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size, rounds = 8192, 8
		a, b := verbstest.Pair(t, target, verbstest.PairCap, nil)
		want := make([]byte, size)
		collect(10, func() {
			for round := range rounds {
				src, back := heapMR(t, a.PD, size, round), heapMR(t, a.PD, size, 99)
				inbox, dst := heapMR(t, b.PD, size, 99), heapMR(t, b.PD, size, 99)
				verbstest.Receive(t, b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{inbox.SGE(0, size)}})
				verbstest.Post(t, a.QP,
					ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{src.SGE(0, size)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()},
					ibverbs.SendWR{Opcode: ibverbs.WRSend, SGList: []ibverbs.SGE{src.SGE(0, size)}},
					ibverbs.SendWR{Opcode: ibverbs.WRRDMARead, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{back.SGE(0, size)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()},
				)
				verbstest.Complete(t, a.CQ, 1)
				verbstest.Complete(t, b.CQ, 1)
				verbstest.Pattern(want, round)
				for name, mr := range map[string]*ibverbs.MR{"sent": src, "received": inbox, "written": dst, "read": back} {
					if !bytes.Equal(mr.Bytes(), want) {
						t.Errorf("round %d: what was %s differs", round, name)
					}
				}
			}
		})
	})
}

// A region of which the program remembers no more than the numbers is still
// there, as long as its PD is.
func TestDroppedRegion(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size = 8192
		p := newPipe(t, target, size, 0)
		wr, found := dropped(t, p.b.PD, size)
		verbstest.Pattern(p.src.Bytes(), 1)
		wr.SGList = []ibverbs.SGE{p.src.SGE(0, size)}
		collect(10, func() {
			for _, op := range []ibverbs.WROpcode{ibverbs.WRRDMAWrite, ibverbs.WRRDMARead} {
				wr.Opcode = op
				verbstest.Post(t, p.a.QP, wr)
				verbstest.Complete(t, p.a.CQ, 1)
			}
		})
		mr := found.Value()
		if mr == nil {
			t.Fatal("the region was collected")
		}
		verbstest.Pattern(p.dst.Bytes(), 1)
		if !bytes.Equal(mr.Bytes(), p.dst.Bytes()) || !bytes.Equal(p.src.Bytes(), p.dst.Bytes()) {
			t.Error("the data differs")
		}
		if err := mr.Close(); err != nil {
			t.Error(err)
		}
	})
}

func dropped(t *testing.T, pd *ibverbs.PD, size int) (ibverbs.SendWR, weak.Pointer[ibverbs.MR]) {
	t.Helper()
	mr := verbstest.Must[*ibverbs.MR](t)(pd.RegMR(make([]byte, size), verbstest.AllAccess))
	return ibverbs.SendWR{RemoteAddr: mr.Addr(), RKey: mr.RKey(), Flags: ibverbs.SendSignaled}, weak.Make(mr)
}

// forgetChild makes this test binary forget a region, its PD and its device.
const forgetChild = "GOVERBS_TEST_FORGET_DEVICE"

// A program that forgets a region of pinned memory leaks it. It does not die of
// it, though the runtime panics when it finds a forgotten pinner.
func TestForgottenRegion(t *testing.T) {
	if name := os.Getenv(forgetChild); name != "" {
		forget(t, name)
		return
	}
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		exe := verbstest.Must[string](t)(os.Executable())
		cmd := exec.Command(exe, "-test.run=^TestForgottenRegion$", "-test.v")
		cmd.Env = append(os.Environ(), forgetChild+"="+target.Dev.Name())
		out, err := cmd.CombinedOutput()
		// Its TestMain finds what is left in the kernel, and fails it.
		if err == nil {
			t.Error("the child left nothing behind")
		}
		for _, want := range []string{"--- PASS: TestForgottenRegion", "reported: " + target.Dev.Name(), "the kernel still has mr"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
	})
}

func forget(t *testing.T, name string) {
	reports := make(chan string, 10)
	ibverbs.ReportLeaks(func(object, stack string) { reports <- object })
	func() {
		dev := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(name))
		pd := verbstest.Must[*ibverbs.PD](t)(dev.AllocPD())
		verbstest.Must[*ibverbs.MR](t)(pd.RegMR(make([]byte, 4096), verbstest.AllAccess))
	}()
	ibverbs.ReportLeaks(nil)
	for got := 0; got < 3; {
		runtime.GC()
		select {
		case object := <-reports:
			t.Log("reported:", object)
			got++
		default:
		}
	}
	for range 10 { // now the pinner would be found
		runtime.GC()
	}
}
