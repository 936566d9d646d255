package ibverbs_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// ToRTR's 0 is not the kernel's, which is the longest wait there is; Modify's
// is.
func TestDefaultRNRTimer(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap}))
		verbstest.Close(t, qp)
		timer := func() uint8 {
			t.Helper()
			return verbstest.Must[ibverbs.QPAttr](t)(qp.Query(ibverbs.QPAttrMinRNRTimer)).MinRNRTimer
		}
		verbstest.ToInit(t, target, qp)
		attr := verbstest.RTRAttr(t, target, qp.QPN())
		attr.MinRNRTimer = 0
		if err := qp.ToRTR(attr); err != nil {
			t.Fatal(err)
		}
		if got := timer(); got != ibverbs.DefaultRNRTimer {
			t.Errorf("after ToRTR: %d, want %d", got, ibverbs.DefaultRNRTimer)
		}
		if err := qp.ToRTS(verbstest.RTSAttr); err != nil {
			t.Fatal(err)
		}
		if err := qp.Modify(ibverbs.QPAttr{}, ibverbs.QPAttrMinRNRTimer); err != nil {
			t.Fatal(err)
		}
		if got := timer(); got != 0 {
			t.Errorf("after Modify to 0: %d", got)
		}
	}, verbstest.StateMachine)
}

// A SEND that finds no receive is tried again as often as was said, and then
// fails.
func TestRNRBound(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		a, b := verbstest.NewEnd(t, target, verbstest.PairCap), verbstest.NewEnd(t, target, verbstest.PairCap)
		for _, e := range []*verbstest.End{a, b} {
			e.QP = verbstest.Must[*ibverbs.QP](t)(e.PD.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: e.CQ, RecvCQ: e.CQ, Cap: verbstest.PairCap}))
			verbstest.Close(t, e.QP)
			verbstest.ToInit(t, target, e.QP)
		}
		rts := verbstest.RTSAttr
		rts.RNRRetry = 2
		for _, pair := range [][2]*verbstest.End{{a, b}, {b, a}} {
			attr := verbstest.RTRAttr(t, target, pair[1].QP.QPN())
			attr.MinRNRTimer = 0 // the default
			if err := pair[0].QP.ToRTR(attr); err != nil {
				t.Fatal(err)
			}
			if err := pair[0].QP.ToRTS(rts); err != nil {
				t.Fatal(err)
			}
		}
		verbstest.Post(t, a.QP, ibverbs.SendWR{WRID: 5, Opcode: ibverbs.WRSend, Inline: []byte("x"), Flags: ibverbs.SendSignaled})
		wc := verbstest.Poll(t, a.CQ, 1)[0]
		if wc.WRID != 5 || wc.Status != ibverbs.WCStatusRNRRetryExcErr {
			t.Errorf("%+v, want %v", wc, ibverbs.WCStatusRNRRetryExcErr)
		}
	}, verbstest.ReceiverNotReady)
}

// Most work requests are unsignaled: as long as one in the queue's length is
// not, the queue never fills for ever.
func TestUnsignaledCredit(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		limits := ibverbs.QPCap{MaxSendWR: 16, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
		a, b := verbstest.Pair(t, target, limits, nil)
		src, dst := verbstest.MR(t, a.PD, 8), verbstest.MR(t, b.PD, 8)
		depth := int(a.QP.Cap().MaxSendWR)
		total, under := 20*depth, 0
		for i := 0; i < total; {
			wr := ibverbs.SendWR{WRID: uint64(i), Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{src.SGE(0, 8)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()}
			signaled := i%(depth/2) == depth/2-1 || i == total-1
			if signaled {
				wr.Flags = ibverbs.SendSignaled
			}
			n, err := a.QP.PostSend([]ibverbs.SendWR{wr})
			switch {
			case n == 1:
				i++
				if signaled {
					under++
				}
				if under > 4 { // the CQ has an end too
					under -= len(verbstest.Complete(t, a.CQ, 1))
				}
			case !isFull(err):
				t.Fatalf("work request %d of %d: %v", i, total, err)
			case under == 0:
				t.Fatalf("full at work request %d of %d, with none under way that would complete", i, total)
			default:
				under -= len(verbstest.Complete(t, a.CQ, 1))
			}
		}
		verbstest.Complete(t, a.CQ, under)
	})
}

func isFull(err error) bool {
	return errors.Is(err, ibverbs.ErrQueueFull) && errors.Is(err, syscall.ENOMEM)
}
