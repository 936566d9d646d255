package ibverbs_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// stalled is a READ that is under way.
type stalled struct {
	*pipe
	resume func() // lets the peer answer
}

// newStalled posts a READ of size bytes, and cancels the wait for it. Where QPs
// are connected by hand the peer does not answer before resume. Elsewhere the
// READ is long, and tried again until the wait is cut short.
func newStalled(t *testing.T, target *verbstest.Target, size int, sink func(*verbstest.End) *ibverbs.MR) *stalled {
	t.Helper()
	s := &stalled{pipe: newPipe(t, target, size, 0), resume: func() {}}
	if sink != nil {
		s.src = sink(s.a)
	}
	verbstest.Pattern(s.dst.Bytes(), 8)
	if target.Has(verbstest.StateMachine) {
		if err := s.b.QP.ToReset(); err != nil {
			t.Fatal(err)
		}
		verbstest.ToInit(t, target, s.b.QP)
		s.resume = func() { verbstest.ToRTS(t, target, s.b.QP, s.a.QP.QPN()) }
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		verbstest.Post(t, s.a.QP, s.remote(ibverbs.SendWR{WRID: 4, Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{s.src.SGE(0, size)}}))
		var wcs [1]ibverbs.WC
		n, err := s.a.CQ.Wait(ctx, wcs[:])
		if n == 0 && errors.Is(err, context.Canceled) {
			return s
		}
		if err != nil || wcs[0].Err() != nil {
			t.Fatal(err, wcs[0].Err())
		}
		clear(s.src.Bytes())
	}
	t.Fatal("each READ was done before the wait for it could be cancelled")
	return nil
}

// A wait that is cancelled takes nothing from the READ: it goes on, and its
// memory is there until its completion has come.
func TestCancelRead(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		s := newStalled(t, target, 1<<20, nil)
		if s.src.Bytes() == nil || s.a.PD.Close() == nil {
			t.Fatal("the region has gone with the wait")
		}
		s.resume()
		if wc := verbstest.Complete(t, s.a.CQ, 1)[0]; wc.WRID != 4 || wc.Opcode != ibverbs.WCRDMARead {
			t.Errorf("%+v", wc)
		}
		s.same(t)
	})
}

// Once a READ has been flushed, its memory is the program's again.
func TestCancelReadFlush(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		s := newStalled(t, target, 1<<20, nil)
		if err := s.a.QP.ToError(); err != nil {
			t.Fatal(err)
		}
		wc := verbstest.Poll(t, s.a.CQ, 1)[0]
		if wc.WRID != 4 || wc.Status != ibverbs.WCStatusWRFlushErr && wc.Status != ibverbs.WCStatusSuccess {
			t.Errorf("%+v", wc)
		}
		mine := bytes.Repeat([]byte{0x5a}, s.src.Len())
		copy(s.src.Bytes(), mine)
		s.resume()
		other := newPipe(t, target, 1<<20, 0) // as much traffic again
		verbstest.Post(t, other.a.QP, other.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{other.src.SGE(0, 1<<20)}}))
		verbstest.Complete(t, other.a.CQ, 1)
		if !bytes.Equal(s.src.Bytes(), mine) {
			t.Error("the device wrote to memory of a READ that had been flushed")
		}
	})
}

// Closing the region under a READ makes the READ fail, and the device leaves
// the memory alone.
func TestCloseUnderRead(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size = 1 << 20
		mem := verbstest.Must[[]byte](t)(unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))
		defer unix.Munmap(mem)
		s := newStalled(t, target, size, func(e *verbstest.End) *ibverbs.MR {
			mr := verbstest.Must[*ibverbs.MR](t)(e.PD.RegMR(mem, verbstest.AllAccess))
			verbstest.Close(t, mr)
			return mr
		})
		if err := s.src.Close(); err != nil {
			t.Fatal(err)
		}
		mine := bytes.Repeat([]byte{0x5a}, size)
		copy(mem, mine)
		s.resume()
		if wc := verbstest.Poll(t, s.a.CQ, 1)[0]; wc.WRID != 4 || wc.Status == ibverbs.WCStatusSuccess {
			t.Errorf("%+v, want a failure", wc)
		}
		if !bytes.Equal(mem, mine) {
			t.Error("the device wrote to memory that was no region any more")
		}
	}, verbstest.StateMachine)
}
