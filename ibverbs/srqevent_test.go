package ibverbs_test

import (
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// The limit event comes once, when fewer receives than the limit are left, and
// again when the SRQ has been armed again.
func TestSRQLimit(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const wrs, size, limit = 8, 20, 4
		s := newShared(t, target, 2, wrs, size)
		src := []ibverbs.SGE{verbstest.MR(t, s.peers[0].PD, size).SGE(0, size), verbstest.MR(t, s.peers[1].PD, size).SGE(0, size)}
		armed := func(want uint32) {
			t.Helper()
			if !target.Has(verbstest.SRQQuery) {
				return
			}
			if attr, err := s.srq.Query(); err != nil || attr.Limit != want {
				t.Errorf("armed at %d, %v; want %d", attr.Limit, err, want)
			}
		}
		for round := range 2 {
			s.post(t, 0, wrs)
			if err := s.srq.Arm(limit); err != nil {
				t.Fatal(err)
			}
			for i := range wrs - limit {
				s.send(t, i%2, src[i%2])
			}
			verbstest.Complete(t, s.cq(), wrs-limit)
			armed(limit)
			s.send(t, 0, src[0])
			verbstest.Complete(t, s.cq(), 1)
			event := awaitEvent(t, target.Dev, ibverbs.EventSRQLimitReached)
			if event.SRQ != s.srq || event.QP != nil || event.CQ != nil {
				t.Errorf("round %d: event %+v, want one of %v", round, event, s.srq)
			}
			armed(0)
			for range limit - 1 {
				s.send(t, 1, src[1])
			}
			verbstest.Complete(t, s.cq(), limit-1)
		}
		verbstest.Works(t, target.Dev, "limit events of SRQs")
	})
}

// An SRQ can be armed as it is made.
func TestSRQInitLimit(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size = 20
		a, b := verbstest.NewEnd(t, target, verbstest.PairCap), verbstest.NewEnd(t, target, verbstest.PairCap)
		b.SRQ = verbstest.Must[*ibverbs.SRQ](t)(b.PD.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: 8, MaxSGE: 1, Limit: 1}))
		verbstest.Close(t, b.SRQ)
		src, dst := verbstest.MR(t, a.PD, size), verbstest.MR(t, b.PD, size)
		if n, err := b.SRQ.PostRecv([]ibverbs.RecvWR{{SGList: []ibverbs.SGE{dst.SGE(0, size)}}}); n != 1 {
			t.Fatal(err)
		}
		verbstest.Connect(t, target, verbstest.PairCap, a, b, nil)
		verbstest.Post(t, a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(0, size)}})
		if event := awaitEvent(t, target.Dev, ibverbs.EventSRQLimitReached); event.SRQ != b.SRQ {
			t.Errorf("event %v, want one of %v", event, b.SRQ)
		}
		verbstest.Complete(t, b.CQ, 1)
		verbstest.Complete(t, a.CQ, 1)
	})
}

// A QP that fails takes no more receives from its SRQ, and flushes none: the
// others go on with them. Newer drivers tell that it has taken its last one.
func TestSRQOutlivesQP(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const n, size = 64, 20
		s := newShared(t, target, 2, n, size)
		s.post(t, 0, n)
		if err := s.srq.Arm(n / 2); err != nil {
			t.Fatal(err)
		}
		if err := s.ends[0].QP.ToError(); err != nil {
			t.Fatal(err)
		}
		src := verbstest.MR(t, s.peers[1].PD, size)
		for i := range n {
			s.send(t, 1, src.SGE(0, size))
			if wc := verbstest.Complete(t, s.cq(), 1)[0]; wc.WRID != uint64(i) || wc.QPN != s.ends[1].QP.QPN() {
				t.Fatalf("receive %d: %+v", i, wc)
			}
		}
		if extra, err := s.cq().Poll(make([]ibverbs.WC, 1)); extra != 0 || err != nil {
			t.Errorf("%d more completions, %v", extra, err)
		}
		if got := lastWQE(t, target, s); got != target.Has(verbstest.LastWQE) {
			t.Errorf("the device has told of the last receive: %v, want %v", got, !got)
		}
	})
}

// lastWQE reads events up to the SRQ's limit event, and tells whether one was
// that the first QP has taken its last receive.
func lastWQE(t *testing.T, target *verbstest.Target, s *shared) (told bool) {
	t.Helper()
	for {
		event, err := target.Dev.ReadAsyncEvent(verbstest.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		switch event.Type {
		case ibverbs.EventSRQLimitReached:
			return told
		case ibverbs.EventQPLastWQEReached:
			if event.QP != s.ends[0].QP {
				t.Errorf("event %v, want one of %v", event, s.ends[0].QP)
			}
			told = true
		}
	}
}
