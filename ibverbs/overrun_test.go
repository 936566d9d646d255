package ibverbs_test

import (
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// smallCQ makes a CQ of the least room, with a channel.
func smallCQ(t *testing.T, dev *ibverbs.Device) *ibverbs.CQ {
	t.Helper()
	ch := verbstest.Must[*ibverbs.CompChannel](t)(dev.CreateCompChannel())
	verbstest.Close(t, ch)
	cq := verbstest.Must[*ibverbs.CQ](t)(dev.CreateCQ(4, ibverbs.CQOptions{Channel: ch}))
	verbstest.Close(t, cq)
	return cq
}

// overran waits until cq has reported that it has overflowed, and sees that it
// has all that it had room for. What was too much is lost, or ends as flushed
// where the QP has failed and there is room again; it never succeeds.
func overran(t *testing.T, dev *ibverbs.Device, cq *ibverbs.CQ) {
	t.Helper()
	if event := awaitEvent(t, dev, ibverbs.EventCQErr); event.CQ != cq {
		t.Errorf("event %v, want one of %v", event, cq)
	}
	room := cq.CQE()
	wcs := make([]ibverbs.WC, room+16)
	n, err := cq.Poll(wcs)
	if err != nil || n < room {
		t.Fatalf("%d completions, %v; there was room for %d", n, err, room)
	}
	for i, wc := range wcs[:n] {
		if i < room && (wc.WRID != uint64(i) || wc.Err() != nil) {
			t.Errorf("completion %d: %+v", i, wc)
		}
		if i >= room && (wc.WRID <= wcs[i-1].WRID || wc.Status != ibverbs.WCStatusWRFlushErr) {
			t.Errorf("completion %d, after the overrun: %+v", i, wc)
		}
	}
}

// A CQ that overflows says so with an event. What it had room for is there.
func TestCQOverrun(t *testing.T) {
	t.Run("receives", func(t *testing.T) {
		verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
			a, b := verbstest.NewEnd(t, target, verbstest.PairCap), verbstest.NewEnd(t, target, verbstest.PairCap)
			b.CQ = smallCQ(t, target.Dev)
			verbstest.Connect(t, target, verbstest.PairCap, a, b, nil)
			src, dst := verbstest.MR(t, a.PD, 16), verbstest.MR(t, b.PD, 16)
			for i := range b.CQ.CQE() + 4 {
				verbstest.Receive(t, b.QP, ibverbs.RecvWR{WRID: uint64(i), SGList: []ibverbs.SGE{dst.SGE(0, 16)}})
			}
			for range b.CQ.CQE() + 1 {
				verbstest.Post(t, a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, SGList: []ibverbs.SGE{src.SGE(0, 16)}})
			}
			overran(t, target.Dev, b.CQ)
			if !target.Has(verbstest.StateMachine) {
				return // and its state is not to be had
			}
			if state, err := b.QP.State(); err != nil || state != ibverbs.QPStateErr {
				t.Errorf("the QP is in state %v, %v, and a completion of it is lost", state, err)
			}
		})
	})
	t.Run("sends", func(t *testing.T) {
		verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
			a, b := verbstest.NewEnd(t, target, verbstest.PairCap), verbstest.NewEnd(t, target, verbstest.PairCap)
			a.CQ = smallCQ(t, target.Dev)
			verbstest.Connect(t, target, verbstest.PairCap, a, b, nil)
			src, dst := verbstest.MR(t, a.PD, 16), verbstest.MR(t, b.PD, 16)
			for i := range a.CQ.CQE() + 1 {
				verbstest.Post(t, a.QP, ibverbs.SendWR{
					WRID: uint64(i), Opcode: ibverbs.WRRDMAWrite, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(0, 16)},
					RemoteAddr: dst.Addr(), RKey: dst.RKey(),
				})
			}
			overran(t, target.Dev, a.CQ)
		})
	})
}
