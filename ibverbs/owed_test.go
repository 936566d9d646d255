package ibverbs_test

import (
	"errors"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// flushed waits for the completions of work requests 0 to n-1, which must all
// be flushed, each once.
func flushed(t *testing.T, cq *ibverbs.CQ, n int) {
	t.Helper()
	seen := make(map[uint64]bool)
	for _, wc := range verbstest.Poll(t, cq, n) {
		if wc.Status != ibverbs.WCStatusWRFlushErr || seen[wc.WRID] || wc.WRID >= uint64(n) {
			t.Errorf("completion %+v; want each work request once, flushed", wc)
		}
		seen[wc.WRID] = true
	}
	if extra, err := cq.Poll(make([]ibverbs.WC, 1)); extra != 0 || err != nil {
		t.Errorf("after all %d: %d completions more, %v", n, extra, err)
	}
}

// postNumbered posts sends and receives with the numbers from and up.
func postNumbered(t *testing.T, p *pipe, from, sends, recvs int) {
	t.Helper()
	for i := range sends {
		wr := p.remote(ibverbs.SendWR{WRID: uint64(from + i), Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{p.src.SGE(0, 8)}})
		if i%2 == 1 {
			wr.Flags = 0 // an error completes it all the same
		}
		verbstest.Post(t, p.a.QP, wr)
	}
	for i := range recvs {
		verbstest.Receive(t, p.a.QP, ibverbs.RecvWR{WRID: uint64(from + sends + i), SGList: []ibverbs.SGE{p.src.SGE(0, 8)}})
	}
}

// What is posted to a QP in the error state completes as flushed.
func TestPostAfterError(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 0)
		for i := range 3 { // before
			verbstest.Receive(t, p.a.QP, ibverbs.RecvWR{WRID: uint64(i), SGList: []ibverbs.SGE{p.src.SGE(0, 8)}})
		}
		if err := p.a.QP.ToError(); err != nil {
			t.Fatal(err)
		}
		postNumbered(t, p, 3, 4, 2)
		flushed(t, p.a.CQ, 9)
		postNumbered(t, p, 0, 3, 3)
		flushed(t, p.a.CQ, 6)
	})
}

// The same where the error was a work request's, and nobody has said so.
func TestPostAfterFailure(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 0)
		bad := p.src.SGE(0, 8)
		bad.LKey ^= 0x5500
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{WRID: 9, Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{bad}}))
		if wc := verbstest.Poll(t, p.a.CQ, 1)[0]; wc.Err() == nil || wc.WRID != 9 {
			t.Fatalf("%+v", wc)
		}
		postNumbered(t, p, 0, 4, 2)
		flushed(t, p.a.CQ, 6)
	})
}

// The connection ends while this side goes on posting: nothing that was
// accepted is lost, whether the kernel saw it or not.
func TestPostWhileEnding(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 0)
		if err := p.b.QP.ToError(); err != nil {
			t.Fatal(err)
		}
		// Receives only: rxe would send to the peer until its retries end.
		n := 0
		for range 40 {
			done, err := p.a.QP.PostRecv([]ibverbs.RecvWR{{WRID: uint64(n), SGList: []ibverbs.SGE{p.src.SGE(0, 8)}}})
			if n += done; err != nil {
				t.Fatal(err)
			}
		}
		if err := p.a.QP.ToError(); err != nil {
			t.Fatal(err)
		}
		flushed(t, p.a.CQ, n)
	})
}

// A queue in the error state is as long as before.
func TestQueueFullAfterError(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 0)
		if err := p.a.QP.ToError(); err != nil {
			t.Fatal(err)
		}
		batch := make([]ibverbs.RecvWR, 4*p.a.QP.Cap().MaxRecvWR+64)
		for i := range batch {
			batch[i] = ibverbs.RecvWR{WRID: uint64(i), SGList: []ibverbs.SGE{p.src.SGE(0, 8)}}
		}
		n, err := p.a.QP.PostRecv(batch)
		if n == len(batch) || !errors.Is(err, ibverbs.ErrQueueFull) {
			t.Fatalf("%d of %d receives accepted, %v; want fewer, and ErrQueueFull", n, len(batch), err)
		}
		flushed(t, p.a.CQ, n)
	})
}

// A QP's completions that are still in the CQ when it is closed are nobody
// else's, though the next QP gets its number.
func TestReusedNumber(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 64)
		mr := verbstest.MR(t, pd, 64)
		init := ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap}
		recv := ibverbs.RecvWR{WRID: 0, SGList: []ibverbs.SGE{mr.SGE(0, 8)}}
		old := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(init))
		if target.Has(verbstest.StateMachine) {
			verbstest.ToInit(t, target, old)
		}
		verbstest.Receive(t, old, recv)
		if err := old.ToError(); err != nil {
			t.Fatal(err)
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(init))
		verbstest.Close(t, qp)
		if target.Has(verbstest.StateMachine) {
			verbstest.ToInit(t, target, qp)
		}
		verbstest.Receive(t, qp, recv)
		// The old completion may be there or not; the new receive is still open.
		wcs := make([]ibverbs.WC, 8)
		if n, err := cq.Poll(wcs); err != nil || n > 1 {
			t.Fatalf("%d completions, %v", n, err)
		}
		if err := qp.ToError(); err != nil {
			t.Fatal(err)
		}
		flushed(t, cq, 1)
	})
}
