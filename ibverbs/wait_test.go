package ibverbs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// A wait ends with its context, and leaves the CQ as good as before.
func TestWaitContext(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 1)
		var wcs [1]ibverbs.WC
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error)
		go func() {
			_, err := p.b.CQ.Wait(ctx, wcs[:])
			got <- err
		}()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		short, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		if _, err := p.b.CQ.Wait(short, wcs[:]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("deadline: %v", err)
		}
		verbstest.Post(t, p.a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(0, 64)}})
		verbstest.Complete(t, p.b.CQ, 1)
		verbstest.Complete(t, p.a.CQ, 1)
	})
}

// Close wakes whoever waits for a CQ or a channel, and every later call says
// that it is closed.
func TestCloseWakes(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ch := verbstest.Must[*ibverbs.CompChannel](t)(target.Dev.CreateCompChannel())
		var cqs []*ibverbs.CQ
		for range 3 {
			cqs = append(cqs, verbstest.Must[*ibverbs.CQ](t)(target.Dev.CreateCQ(8, ibverbs.CQOptions{Channel: ch})))
		}
		errs := make(chan error, 9)
		for _, cq := range cqs {
			for range 3 {
				go func() {
					_, err := cq.Wait(context.Background(), make([]ibverbs.WC, 1))
					errs <- err
				}()
			}
		}
		for _, cq := range cqs {
			if err := cq.Close(); err != nil {
				t.Error(err)
			}
		}
		for range 9 {
			if err := <-errs; !errors.Is(err, os.ErrClosed) {
				t.Errorf("wait on a closed CQ: %v, want os.ErrClosed", err)
			}
		}
		go func() {
			_, err := ch.Wait(context.Background())
			errs <- err
		}()
		if err := ch.Close(); err != nil {
			t.Error(err)
		}
		if err := <-errs; !errors.Is(err, os.ErrClosed) {
			t.Errorf("wait on a closed channel: %v, want os.ErrClosed", err)
		}
		cq := cqs[0]
		_, poll := cq.Poll(make([]ibverbs.WC, 1))
		_, spin := cq.Spin(make([]ibverbs.WC, 1), time.Second)
		_, wait := cq.Wait(t.Context(), make([]ibverbs.WC, 1))
		for name, err := range map[string]error{"Poll": poll, "Spin": spin, "Wait": wait, "ReqNotify": cq.ReqNotify(false)} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s after Close: %v, want os.ErrClosed", name, err)
			}
		}
	})
}

// Many CQs on one channel: an event that one goroutine reads for another gets
// to it.
func TestSharedChannel(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const pairs, rounds = 4, 25
		ctx := verbstest.Context(t)
		p := make([]*pipe, pairs)
		for i := range p {
			p[i] = newPipe(t, target, 64, rounds)
		}
		var wg sync.WaitGroup
		for _, p := range p {
			wg.Go(func() {
				for i := range rounds {
					var wcs [1]ibverbs.WC
					_, err := p.a.QP.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(i*64, 64)}}})
					if err == nil {
						_, err = p.a.CQ.Wait(ctx, wcs[:])
					}
					if err = errors.Join(err, wcs[0].Err()); err != nil {
						t.Error(err)
						return
					}
				}
			})
			for range 2 { // two goroutines wait for one CQ
				wg.Go(func() {
					for range rounds / 2 {
						var wcs [1]ibverbs.WC
						_, err := p.b.CQ.Wait(ctx, wcs[:])
						if err = errors.Join(err, wcs[0].Err()); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		for _, p := range p {
			verbstest.Complete(t, p.b.CQ, rounds%2)
			p.same(t)
		}
	})
}

// Two goroutines wait for one CQ. The one that is served first goes away, and
// the other must still see what comes next.
func TestWaitersOfOneCQ(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const rounds = 100
		p := newPipe(t, target, 64, 0)
		dst := verbstest.MR(t, p.b.PD, 64)
		recv := ibverbs.RecvWR{SGList: []ibverbs.SGE{dst.SGE(0, 64)}}
		ctx := verbstest.Context(t)
		for range rounds {
			verbstest.Receive(t, p.b.QP, recv, recv)
			got := make(chan error, 2)
			for range 2 {
				go func() {
					var wcs [4]ibverbs.WC
					n, err := p.b.CQ.Wait(ctx, wcs[:])
					for i := range n {
						err = errors.Join(err, wcs[i].Err())
					}
					got <- err
				}()
			}
			for range 2 {
				verbstest.Post(t, p.a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(0, 64)}})
				verbstest.Complete(t, p.a.CQ, 1)
				if err := <-got; err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// The thin way: one goroutine takes a channel's events and learns whose they
// are.
func TestChannelWait(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 1)
		if err := p.b.CQ.ReqNotify(false); err != nil {
			t.Fatal(err)
		}
		verbstest.Post(t, p.a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(0, 64)}})
		cq, err := p.b.CQ.Channel().Wait(verbstest.Context(t))
		if err != nil || cq != p.b.CQ {
			t.Fatalf("event of %v, %v; want %v", cq, err, p.b.CQ)
		}
		var wcs [2]ibverbs.WC
		if n, err := cq.Poll(wcs[:]); n != 1 || err != nil || wcs[0].Err() != nil {
			t.Errorf("after the event: %d completions, %v", n, err)
		}
		verbstest.Complete(t, p.a.CQ, 1)
	})
}

// Two thousand goroutines that wait do not need two thousand threads.
func TestWaitThreads(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const waiters = 2000
		cq := verbstest.CQ(t, target.Dev, 8)
		ctx, cancel := context.WithCancel(t.Context())
		before := pprof.Lookup("threadcreate").Count()
		var wg, started sync.WaitGroup
		started.Add(waiters)
		for range waiters {
			wg.Go(func() {
				started.Done()
				if _, err := cq.Wait(ctx, make([]ibverbs.WC, 1)); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		started.Wait()
		cancel()
		wg.Wait()
		if grown := pprof.Lookup("threadcreate").Count() - before; grown > 12 {
			t.Errorf("%d waiters took %d more OS threads", waiters, grown)
		}
	})
}

// A long ping-pong by events, with delays wherever the scheduler may put them,
// never stalls: arm, poll, wait leaves no gap. And no event that was read or
// not read holds up the end of its CQ. make soak plays a million rounds.
func TestEventPingPong(t *testing.T) {
	rounds := 1000
	if s := os.Getenv("GOVERBS_ROUNDS"); s != "" {
		rounds = verbstest.Must[int](t)(strconv.Atoi(s))
	}
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 1)
		mr := verbstest.MR(t, p.a.PD, 64)
		verbstest.Receive(t, p.a.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{mr.SGE(0, 64)}})
		errs := make(chan error, 2)
		go func() { errs <- (&player{end: p.a, from: p.src, to: mr, ahead: 1}).play(t.Context(), rounds) }()
		go func() { errs <- (&player{end: p.b, from: p.dst, to: p.dst}).play(t.Context(), rounds) }()
		for range 2 {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		// Leave an event unread.
		if err := p.a.CQ.ReqNotify(false); err != nil {
			t.Fatal(err)
		}
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{p.src.SGE(0, 8)}}))
		n, err := p.a.CQ.Spin(make([]ibverbs.WC, 1), verbstest.Limit)
		if n != 1 || err != nil {
			t.Errorf("%d completions, %v", n, err)
		}
	})
}

// player is one side of a ping-pong.
type player struct {
	end      *verbstest.End
	from, to *ibverbs.MR
	ahead    int // 1 for the side that sends before it has received

	posted, sent, received int
}

// play plays that many rounds; a stall is a thousand that do not end.
func (p *player) play(ctx context.Context, rounds int) error {
	for upTo := min(1000, rounds); p.received < rounds || p.sent < rounds; upTo = min(upTo+1000, rounds) {
		ctx, cancel := context.WithTimeout(ctx, verbstest.Limit)
		err := p.playUpTo(ctx, upTo)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *player) playUpTo(ctx context.Context, rounds int) error {
	var wcs [4]ibverbs.WC
	for p.received < rounds || p.sent < rounds {
		for p.posted < min(p.received+p.ahead, rounds) {
			dawdle()
			if _, err := p.end.QP.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.from.SGE(0, 8)}}}); err != nil {
				return err
			}
			p.posted++
		}
		dawdle()
		n, err := p.end.CQ.Wait(ctx, wcs[:])
		if err != nil {
			return fmt.Errorf("after %d of %d rounds: %w", p.received, rounds, err)
		}
		for i := range n {
			if err := p.completed(&wcs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *player) completed(wc *ibverbs.WC) error {
	if err := wc.Err(); err != nil {
		return err
	}
	if wc.Opcode != ibverbs.WCRecv {
		p.sent++
		return nil
	}
	p.received++
	_, err := p.end.QP.PostRecv([]ibverbs.RecvWR{{SGList: []ibverbs.SGE{p.to.SGE(0, 64)}}})
	return err
}

// dawdle waits now and then, for about as long as a message takes.
func dawdle() {
	switch rand.IntN(8) {
	case 0:
		time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
	case 1:
		runtime.Gosched()
	}
}
