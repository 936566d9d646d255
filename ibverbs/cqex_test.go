package ibverbs_test

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// exPipe is a pipe whose second end completes in an extended CQ.
type exPipe struct {
	*pipe
	cq *ibverbs.CQEx
}

func newExPipe(t *testing.T, target *verbstest.Target, size, recvs int, attr ibverbs.CQExInitAttr) *exPipe {
	t.Helper()
	ch := verbstest.Must[*ibverbs.CompChannel](t)(target.Dev.CreateCompChannel())
	verbstest.Close(t, ch)
	limits := verbstest.PairCap
	limits.MaxRecvWR = uint32(recvs)
	attr.CQE, attr.Channel = recvs, ch
	p := &exPipe{pipe: &pipe{a: verbstest.NewEnd(t, target, limits), b: verbstest.NewEnd(t, target, limits)}}
	p.cq = verbstest.Must[*ibverbs.CQEx](t)(target.Dev.CreateCQEx(attr))
	verbstest.Close(t, p.cq)
	p.b.CQ = &p.cq.CQ
	verbstest.Connect(t, target, limits, p.a, p.b, nil)
	p.src, p.dst = verbstest.MR(t, p.a.PD, size*recvs), verbstest.MR(t, p.b.PD, size*recvs)
	for i := range recvs {
		verbstest.Receive(t, p.b.QP, ibverbs.RecvWR{WRID: uint64(i), SGList: []ibverbs.SGE{p.dst.SGE(i*size, size)}})
	}
	return p
}

// An extended CQ that is drained again and again gives each completion once,
// with all that was asked for, whatever the size of the batches.
func TestCQEx(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size, n = 100, 60
		p := newExPipe(t, target, size, n, ibverbs.CQExInitAttr{Fields: ibverbs.WCExStandard})
		if p.cq.CQE() < n || p.cq.Fields() != ibverbs.WCExStandard {
			t.Errorf("%d entries, fields %v", p.cq.CQE(), p.cq.Fields())
		}
		verbstest.Pattern(p.src.Bytes(), 1)
		got := 0
		for round, room := range []int{1, 7, 64} {
			for i := range n / 3 {
				verbstest.Post(t, p.a.QP, ibverbs.SendWR{
					Opcode: ibverbs.WRSendWithImm, Flags: ibverbs.SendSignaled, ImmData: uint32(0x01020300 + got + i),
					SGList: []ibverbs.SGE{p.src.SGE((got+i)*size, size)},
				})
				verbstest.Complete(t, p.a.CQ, 1)
			}
			got = p.drain(t, got, room)
			if got != (round+1)*n/3 {
				t.Fatalf("round %d, batches of %d: %d completions so far, want %d", round, room, got, (round+1)*n/3)
			}
		}
		p.same(t)
		verbstest.Works(t, target.Dev, "extended CQs")
	}, verbstest.ExtendedCQ)
}

// drain takes what is there, and then sees that nothing is there.
func (p *exPipe) drain(t *testing.T, got, room int) int {
	t.Helper()
	wcs := make([]ibverbs.WCEx, room)
	for empty := 0; empty < 3; {
		n, err := p.cq.PollEx(wcs)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			empty++
		}
		for _, wc := range wcs[:n] {
			if err := wc.Err(); err != nil {
				t.Fatal(err)
			}
			want := ibverbs.WCEx{WRID: uint64(got), Opcode: ibverbs.WCRecv, ByteLen: 100, QPN: p.b.QP.QPN(), Flags: ibverbs.WCWithImm}
			if wc.WRID != want.WRID || wc.Opcode != want.Opcode || wc.ByteLen != want.ByteLen || wc.QPN != want.QPN ||
				wc.Flags&want.Flags == 0 || wc.ImmData() != uint32(0x01020300+got) || wc.CompletionTS != 0 {
				t.Fatalf("completion %d: %+v, immediate %#x", got, wc, wc.ImmData())
			}
			got++
		}
	}
	return got
}

// What was not asked for stays zero.
func TestCQExFields(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newExPipe(t, target, 100, 2, ibverbs.CQExInitAttr{Fields: ibverbs.WCExQPNum})
		verbstest.Post(t, p.a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(0, 100)}})
		wcs := make([]ibverbs.WCEx, 2)
		n, err := p.cq.WaitEx(verbstest.Context(t), wcs)
		wcs[0].Flags &^= ibverbs.WCGRH // RoCE packets have one, some drivers say
		if want := (ibverbs.WCEx{Opcode: ibverbs.WCRecv, QPN: p.b.QP.QPN()}); n != 1 || err != nil || wcs[0] != want {
			t.Errorf("%d completions, %v: %+v, want %+v", n, err, wcs[0], want)
		}
		// A failure has what identifies it.
		if err := p.b.QP.ToError(); err != nil {
			t.Fatal(err)
		}
		n, err = p.cq.WaitEx(verbstest.Context(t), wcs)
		if n != 1 || err != nil || wcs[0].WRID != 1 || wcs[0].QPN != p.b.QP.QPN() || wcs[0].Status != ibverbs.WCStatusWRFlushErr {
			t.Errorf("%d completions, %v: %+v", n, err, wcs[0])
		}
		if !errors.Is(wcs[0].Err(), &ibverbs.WCError{Status: ibverbs.WCStatusWRFlushErr}) {
			t.Errorf("error %v", wcs[0].Err())
		}
		_, err = p.cq.WaitEx(verbstest.Context(t), nil)
		refused(t, "WaitEx without room", err, syscall.EINVAL, "room")
		if n, err := p.cq.PollEx(nil); n != 0 || err != nil {
			t.Errorf("PollEx without room: %d, %v", n, err)
		}
	}, verbstest.ExtendedCQ)
}

// It is a CQ like any other: Poll and Wait work, and one takes what the other
// has left. Many goroutines may poll it.
func TestCQExShared(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size, n = 16, 300
		p := newExPipe(t, target, size, n, ibverbs.CQExInitAttr{Fields: ibverbs.WCExStandard})
		seen := make([]atomic.Int32, n)
		var taken atomic.Int32
		var wg sync.WaitGroup
		take := func(wrID uint64, err error) {
			seen[wrID].Add(1)
			taken.Add(1)
			if err != nil {
				t.Error(err)
			}
		}
		for range 2 {
			wg.Go(func() {
				wcs := make([]ibverbs.WCEx, 5)
				for taken.Load() < n && !t.Failed() {
					got, err := p.cq.PollEx(wcs)
					if err != nil {
						t.Error(err)
					}
					for i := range got {
						take(wcs[i].WRID, wcs[i].Err())
					}
				}
			})
			wg.Go(func() {
				wcs := make([]ibverbs.WC, 3)
				for taken.Load() < n && !t.Failed() {
					got, err := p.cq.Poll(wcs)
					if err != nil {
						t.Error(err)
					}
					for i := range got {
						take(wcs[i].WRID, wcs[i].Err())
					}
				}
			})
		}
		for i := range n {
			verbstest.Post(t, p.a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(i*size, size)}})
			verbstest.Complete(t, p.a.CQ, 1)
		}
		wg.Wait()
		for i := range seen {
			if got := seen[i].Load(); got != 1 {
				t.Errorf("receive %d completed %d times", i, got)
			}
		}
	}, verbstest.ExtendedCQ)
}

func TestCQExErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		dev := target.Dev
		_, err := dev.CreateCQEx(ibverbs.CQExInitAttr{CQE: target.Attr.MaxCQE + 1})
		refused(t, "too long", err, syscall.EINVAL, "entries")
		_, err = dev.CreateCQEx(ibverbs.CQExInitAttr{CQE: 1, CompVector: dev.CompVectors()})
		refused(t, "bad vector", err, syscall.EINVAL, "vector")
		for _, field := range []ibverbs.WCExFlags{
			ibverbs.WCExCompletionTS, ibverbs.WCExCompletionWallclockNS, ibverbs.WCExCVLAN, ibverbs.WCExFlowTag, ibverbs.WCExTMInfo,
		} {
			_, err := dev.CreateCQEx(ibverbs.CQExInitAttr{CQE: 1, Fields: field})
			refused(t, "a field that software lacks", err, errors.ErrUnsupported, field.String())
		}
		_, err = dev.CreateCQEx(ibverbs.CQExInitAttr{CQE: 1, Flags: ibverbs.CQIgnoreOverrun})
		refused(t, "a flag that software lacks", err, errors.ErrUnsupported, "IGNORE_OVERRUN")

		other := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(dev.Name()))
		defer other.Close()
		pd := verbstest.Must[*ibverbs.PD](t)(other.AllocPD())
		defer pd.Close()
		_, err = dev.CreateCQEx(ibverbs.CQExInitAttr{CQE: 1, ParentDomain: pd})
		refused(t, "another device's domain", err, syscall.EINVAL, "another device")

		cq := verbstest.Must[*ibverbs.CQEx](t)(dev.CreateCQEx(ibverbs.CQExInitAttr{CQE: 4}))
		for range 2 {
			if err := cq.Close(); err != nil {
				t.Error(err)
			}
		}
		_, poll := cq.PollEx(make([]ibverbs.WCEx, 1))
		_, wait := cq.WaitEx(t.Context(), make([]ibverbs.WCEx, 1))
		for name, err := range map[string]error{"PollEx": poll, "WaitEx": wait} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s after Close: %v, want os.ErrClosed", name, err)
			}
		}
	}, verbstest.ExtendedCQ)
}

func TestNoCQEx(t *testing.T) {
	verbstest.EachLacking(t, verbstest.ExtendedCQ, func(t *testing.T, target *verbstest.Target) {
		_, err := target.Dev.CreateCQEx(ibverbs.CQExInitAttr{CQE: 16, Fields: ibverbs.WCExStandard})
		refused(t, "CreateCQEx", err, syscall.EOPNOTSUPP, "extended")
		verbstest.Refused(t, target.Dev, "extended CQs")
	})
}
