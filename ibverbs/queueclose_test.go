package ibverbs_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// until calls fn again and again until its object is closed.
func until(t *testing.T, wg *sync.WaitGroup, fn func() error) {
	wg.Go(func() {
		for {
			err := fn()
			if errors.Is(err, os.ErrClosed) {
				return
			}
			if err != nil && !errors.Is(err, ibverbs.ErrQueueFull) {
				t.Error(err)
				return
			}
		}
	})
}

// Close races with every call on an SRQ: each works or says that it is closed.
func TestSRQCloseRaces(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		mr := verbstest.MR(t, pd, 16)
		recv := []ibverbs.RecvWR{{SGList: []ibverbs.SGE{mr.SGE(0, 16)}}, {SGList: []ibverbs.SGE{mr.SGE(0, 8)}}}
		for range 20 {
			srq := verbstest.Must[*ibverbs.SRQ](t)(pd.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: 64, MaxSGE: 1}))
			var wg sync.WaitGroup
			for range 2 {
				until(t, &wg, func() error { _, err := srq.PostRecv(recv); return err })
			}
			until(t, &wg, func() error { return srq.Arm(1) })
			until(t, &wg, func() error {
				_, err := srq.Query()
				if errors.Is(err, errors.ErrUnsupported) {
					return nil
				}
				return err
			})
			for range 3 {
				wg.Go(func() {
					if err := srq.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
	})
}

// And on an extended CQ.
func TestCQExCloseRaces(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ch := verbstest.Must[*ibverbs.CompChannel](t)(target.Dev.CreateCompChannel())
		verbstest.Close(t, ch)
		for i := range 20 {
			cq := verbstest.Must[*ibverbs.CQEx](t)(target.Dev.CreateCQEx(ibverbs.CQExInitAttr{CQE: 16, Channel: ch}))
			var wg sync.WaitGroup
			until(t, &wg, func() error { _, err := cq.PollEx(make([]ibverbs.WCEx, 4)); return err })
			until(t, &wg, func() error { _, err := cq.WaitEx(context.Background(), make([]ibverbs.WCEx, 4)); return err })
			until(t, &wg, func() error { _, err := cq.Wait(context.Background(), make([]ibverbs.WC, 4)); return err })
			until(t, &wg, func() error { return cq.Resize(16 + i) })
			for range 3 {
				wg.Go(func() {
					if err := cq.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
	}, verbstest.ExtendedCQ)
}

// A device that was closed before anything was asked of it makes no objects.
func TestClosedDevice(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		dev := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(target.Dev.Name()))
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
		_, cq := dev.CreateCQ(1, ibverbs.CQOptions{})
		_, ex := dev.CreateCQEx(ibverbs.CQExInitAttr{CQE: 1})
		_, xrcd := dev.OpenXRCD(-1, 0)
		for name, err := range map[string]error{"CreateCQ": cq, "CreateCQEx": ex, "OpenXRCD": xrcd} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s after Close: %v, want os.ErrClosed", name, err)
			}
		}
		if n := dev.CompVectors(); n != 0 {
			t.Errorf("a closed device has %d vectors", n)
		}
	})
}

// Posting to an SRQ and draining an extended CQ allocate nothing.
func TestSRQNoAllocation(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		s := newShared(t, target, 1, 8, 20)
		src := verbstest.MR(t, s.peers[0].PD, 20)
		send := []ibverbs.SendWR{{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(0, 20)}}}
		recv := []ibverbs.RecvWR{s.recv(0)}
		wcs := make([]ibverbs.WC, 4)
		allocs := testing.AllocsPerRun(50, func() {
			if n, err := s.srq.PostRecv(recv); n != 1 {
				t.Fatal(err)
			}
			if n, err := s.peers[0].QP.PostSend(send); n != 1 {
				t.Fatal(err)
			}
			for _, cq := range []*ibverbs.CQ{s.cq(), s.peers[0].CQ} {
				if n, err := cq.Spin(wcs, verbstest.Limit); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations a round trip, want 0", allocs)
		}
	})
}

func TestCQExNoAllocation(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newExPipe(t, target, 16, 64, ibverbs.CQExInitAttr{Fields: ibverbs.WCExStandard})
		send := []ibverbs.SendWR{{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(0, 16)}}}
		wcs, exs := make([]ibverbs.WC, 4), make([]ibverbs.WCEx, 4)
		allocs := testing.AllocsPerRun(50, func() {
			if n, err := p.a.QP.PostSend(send); n != 1 {
				t.Fatal(err)
			}
			if n, err := p.a.CQ.Spin(wcs, verbstest.Limit); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			for n := 0; n == 0; { // it is there already, or will be at once
				var err error
				if n, err = p.cq.PollEx(exs); err != nil {
					t.Fatal(err)
				}
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations a round trip, want 0", allocs)
		}
	}, verbstest.ExtendedCQ)
}
