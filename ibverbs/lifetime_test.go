package ibverbs_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// Parents close after their children, and say who is in the way.
func TestCloseOrder(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		dev := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(target.Dev.Name()))
		pd := verbstest.Must[*ibverbs.PD](t)(dev.AllocPD())
		mr := verbstest.Must[*ibverbs.MR](t)(pd.AllocMR(4096, verbstest.AllAccess, ibverbs.BufferOptions{}))
		ch := verbstest.Must[*ibverbs.CompChannel](t)(dev.CreateCompChannel())
		cq := verbstest.Must[*ibverbs.CQ](t)(dev.CreateCQ(16, ibverbs.CQOptions{Channel: ch}))
		cq2 := verbstest.Must[*ibverbs.CQ](t)(dev.CreateCQ(16, ibverbs.CQOptions{}))
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq2, Cap: verbstest.PairCap}))

		refused(t, "device", dev.Close(), syscall.EBUSY, "1 PD")
		refused(t, "device", dev.Close(), syscall.EBUSY, "2 CQs")
		refused(t, "PD", pd.Close(), syscall.EBUSY, "1 QP ("+qp.String()+")")
		refused(t, "PD", pd.Close(), syscall.EBUSY, "1 MR ("+mr.String()+")")
		refused(t, "send CQ", cq.Close(), syscall.EBUSY, qp.String())
		refused(t, "receive CQ", cq2.Close(), syscall.EBUSY, qp.String())
		refused(t, "channel", ch.Close(), syscall.EBUSY, cq.String())
		// All of them still work.
		if _, err := dev.Query(); err != nil {
			t.Error(err)
		}
		if _, err := cq.Poll(make([]ibverbs.WC, 1)); err != nil {
			t.Error(err)
		}
		for _, object := range []interface{ Close() error }{qp, cq, ch, cq2, mr, pd, dev} {
			for range 2 {
				if err := object.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		for name, err := range closedCalls(dev, pd, cq, qp) {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s after Close: %v, want os.ErrClosed", name, err)
			}
		}
	})
}

// closedCalls calls everything on objects that are closed.
func closedCalls(dev *ibverbs.Device, pd *ibverbs.PD, cq *ibverbs.CQ, qp *ibverbs.QP) map[string]error {
	errs := make(map[string]error)
	_, errs["Query"] = dev.Query()
	_, errs["QueryPort"] = dev.QueryPort(1)
	_, errs["QueryGID"] = dev.QueryGID(1, 0)
	_, errs["QueryPKey"] = dev.QueryPKey(1, 0)
	_, errs["GIDTable"] = dev.GIDTable()
	_, errs["AllocPD"] = dev.AllocPD()
	_, errs["CreateCompChannel"] = dev.CreateCompChannel()
	_, errs["CreateCQ"] = dev.CreateCQ(1, ibverbs.CQOptions{})
	_, errs["AllocMR"] = pd.AllocMR(1, verbstest.AllAccess, ibverbs.BufferOptions{})
	_, errs["RegMR"] = pd.RegMR(make([]byte, 1), verbstest.AllAccess)
	_, errs["CreateQP"] = pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq})
	_, errs["PostSend"] = qp.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRSend}})
	_, errs["PostRecv"] = qp.PostRecv([]ibverbs.RecvWR{{}})
	_, errs["State"] = qp.State()
	errs["ToInit"] = qp.ToInit(ibverbs.QPAttr{})
	errs["ToError"] = qp.ToError()
	return errs
}

// Close races with every call of the data path: each call works or says that
// the object is closed.
func TestCloseRaces(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		again := ibverbs.QPAttr{State: ibverbs.QPStateRTS} // it is there already
		for range 10 {
			a, b := verbstest.Pair(t, target, verbstest.PairCap, nil)
			src, dst := verbstest.MR(t, a.PD, 64), verbstest.MR(t, b.PD, 64)
			var wg sync.WaitGroup
			loop := func(call func() error) {
				wg.Go(func() {
					for {
						err := call()
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
			for range 2 {
				loop(func() error {
					_, err := a.QP.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRRDMAWrite, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(0, 64)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()}})
					return err
				})
				loop(func() error {
					_, err := a.QP.PostRecv([]ibverbs.RecvWR{{SGList: []ibverbs.SGE{src.SGE(0, 64)}}})
					return err
				})
			}
			loop(func() error { _, err := a.QP.State(); return err })
			loop(func() error { return a.QP.Modify(again, ibverbs.QPAttrState) })
			poll := func(call func(wcs []ibverbs.WC) (int, error)) {
				loop(func() error { _, err := call(make([]ibverbs.WC, 4)); return err })
			}
			poll(a.CQ.Poll)
			poll(func(wcs []ibverbs.WC) (int, error) { return a.CQ.Spin(wcs, 100*time.Microsecond) })
			poll(func(wcs []ibverbs.WC) (int, error) { return a.CQ.Wait(context.Background(), wcs) })
			for range 3 {
				wg.Go(func() {
					if err := a.QP.Close(); err != nil {
						t.Error(err)
					}
					if err := a.CQ.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
	})
}

// Work requests that are outstanding when a QP fails end exactly once, as
// flushed.
func TestFlush(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const n = 64
		a, _ := verbstest.Pair(t, target, verbstest.PairCap, nil)
		mr := verbstest.MR(t, a.PD, 64)
		var recvs []ibverbs.RecvWR
		for i := range n {
			recvs = append(recvs, ibverbs.RecvWR{WRID: uint64(i), SGList: []ibverbs.SGE{mr.SGE(0, 64)}})
		}
		verbstest.Receive(t, a.QP, recvs...)
		if err := a.QP.ToError(); err != nil {
			t.Fatal(err)
		}
		seen := make(map[uint64]int)
		for _, wc := range verbstest.Poll(t, a.CQ, n) {
			seen[wc.WRID]++
			if wc.Status != ibverbs.WCStatusWRFlushErr {
				t.Errorf("%+v, want it flushed", wc)
			}
		}
		if len(seen) != n {
			t.Errorf("%d of %d work requests ended", len(seen), n)
		}
		if extra, err := a.CQ.Poll(make([]ibverbs.WC, 1)); extra != 0 || err != nil {
			t.Errorf("%d more completions, %v", extra, err)
		}
	})
}

// Sends that are outstanding when a QP fails end exactly once, in order: first
// those that were done in time, then the others as flushed.
func TestFlushSends(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const n, size = 64, 64 << 10
		p := newPipe(t, target, size, 0)
		// What cannot be done at once: rxe's SENDs wait for a receive, siw's
		// READs for the wire.
		wr := p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{p.src.SGE(0, size)}})
		if target.Has(verbstest.ReceiverNotReady) {
			wr.Opcode = ibverbs.WRSend
		}
		for i := range n {
			wr.WRID = uint64(i)
			verbstest.Post(t, p.a.QP, wr)
		}
		if err := p.a.QP.ToError(); err != nil {
			t.Fatal(err)
		}
		flushed := 0
		for i, wc := range verbstest.Poll(t, p.a.CQ, n) {
			if wc.WRID != uint64(i) || wc.QPN != p.a.QP.QPN() {
				t.Fatalf("completion %d: %+v", i, wc)
			}
			if wc.Status == ibverbs.WCStatusWRFlushErr {
				flushed++
			} else if flushed > 0 || wc.Err() != nil {
				t.Errorf("completion %d, after %d that were flushed: %v", i, flushed, wc.Err())
			}
		}
		if flushed == 0 {
			t.Error("nothing was flushed: the test has not tested it")
		}
		if extra, err := p.a.CQ.Poll(make([]ibverbs.WC, 1)); extra != 0 || err != nil {
			t.Errorf("%d more completions, %v", extra, err)
		}
	})
}
