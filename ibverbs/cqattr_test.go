package ibverbs_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// A CQ keeps what is in it when it grows and shrinks.
func TestResizeCQ(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const n = 20
		p := newPipe(t, target, 16, n)
		cq := p.b.CQ
		for i := range n {
			verbstest.Post(t, p.a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(i*16, 16)}})
			verbstest.Complete(t, p.a.CQ, 1)
		}
		// All are in the CQ: the peer's receives have completed before its ACKs.
		for _, cqe := range []int{1000, n, 200} {
			if err := cq.Resize(cqe); err != nil {
				t.Fatalf("to %d: %v", cqe, err)
			}
			if cq.CQE() < cqe {
				t.Errorf("%d entries after the resize to %d", cq.CQE(), cqe)
			}
		}
		before := cq.CQE()
		refused(t, "less than is in it", cq.Resize(n-1), syscall.EINVAL, "Poll them first")
		refused(t, "too much", cq.Resize(target.Attr.MaxCQE+1), syscall.EINVAL, "entries")
		refused(t, "nothing", cq.Resize(0), syscall.EINVAL, "entries")
		if cq.CQE() != before {
			t.Errorf("%d entries after refusals, %d before", cq.CQE(), before)
		}
		for i, wc := range verbstest.Complete(t, cq, n) {
			if wc.WRID != uint64(i) {
				t.Errorf("completion %d is of receive %d", i, wc.WRID)
			}
		}
		verbstest.Works(t, target.Dev, "resizing a CQ")
	}, verbstest.ResizeCQ)
}

// Completions come and go while the CQ is resized.
func TestResizeCQUnderLoad(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const rounds = 60
		p := newPipe(t, target, 16, rounds)
		done := make(chan error)
		go func() {
			for i := range rounds {
				if err := p.b.CQ.Resize(rounds + i%7*64); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for i := range rounds {
			verbstest.Post(t, p.a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(i*16, 16)}})
			verbstest.Complete(t, p.a.CQ, 1)
			if wc := verbstest.Complete(t, p.b.CQ, 1)[0]; wc.WRID != uint64(i) {
				t.Fatalf("completion %d is of receive %d", i, wc.WRID)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}, verbstest.ResizeCQ)
}

func TestNoResizeCQ(t *testing.T) {
	verbstest.EachLacking(t, verbstest.ResizeCQ, func(t *testing.T, target *verbstest.Target) {
		cq := verbstest.CQ(t, target.Dev, 16)
		before := cq.CQE()
		refused(t, "Resize", cq.Resize(64), errors.ErrUnsupported, "ibv_resize_cq")
		if cq.CQE() != before {
			t.Errorf("%d entries, %d before", cq.CQE(), before)
		}
		verbstest.Refused(t, target.Dev, "resizing a CQ")
	})
}

// No software driver moderates its events.
func TestCQModeration(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		cq := verbstest.CQ(t, target.Dev, 16)
		refused(t, "Modify", cq.Modify(ibverbs.CQModeration{Count: 8, Period: 100}), errors.ErrUnsupported, "ibv_modify_cq")
		verbstest.Refused(t, target.Dev, "moderation of a CQ")
	})
}

// Every vector that the device says it has can be used, and gives events.
func TestCompVectors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		vectors := target.Dev.CompVectors()
		if vectors < 1 {
			t.Fatalf("%d completion vectors", vectors)
		}
		for vector := range vectors {
			ch := verbstest.Must[*ibverbs.CompChannel](t)(target.Dev.CreateCompChannel())
			verbstest.Close(t, ch)
			a, b := verbstest.NewEnd(t, target, verbstest.PairCap), verbstest.NewEnd(t, target, verbstest.PairCap)
			b.CQ = verbstest.Must[*ibverbs.CQ](t)(target.Dev.CreateCQ(128, ibverbs.CQOptions{Channel: ch, CompVector: vector}))
			verbstest.Close(t, b.CQ)
			verbstest.Connect(t, target, verbstest.PairCap, a, b, nil)
			src, dst := verbstest.MR(t, a.PD, 16), verbstest.MR(t, b.PD, 16)
			verbstest.Receive(t, b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{dst.SGE(0, 16)}})
			verbstest.Post(t, a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(0, 16)}})
			verbstest.Complete(t, a.CQ, 1)
			verbstest.Complete(t, b.CQ, 1)
		}
		for _, vector := range []int{-1, vectors} {
			_, err := target.Dev.CreateCQ(1, ibverbs.CQOptions{CompVector: vector})
			refused(t, "bad vector", err, syscall.EINVAL, "vector")
		}
	})
}
