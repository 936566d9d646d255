package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// No more than the gate's number are inside at once, and all get in.
func TestBound(t *testing.T) {
	const places, callers = 3, 100
	g := New(places, time.Hour)
	var inside, most, done atomic.Int32
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			leave := g.Enter()
			n := inside.Add(1)
			for {
				m := most.Load()
				if n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			time.Sleep(time.Millisecond)
			inside.Add(-1)
			leave()
			done.Add(1)
		})
	}
	wg.Wait()
	if most.Load() != places || done.Load() != callers {
		t.Errorf("%d were inside at once, want %d; %d of %d got in", most.Load(), places, done.Load(), callers)
	}
}

// A caller that stays gives its place up, and gives back only its own.
func TestPatience(t *testing.T) {
	g := New(1, time.Millisecond)
	stays := g.Enter()
	goes := g.Enter() // waits until the first has lost its place
	stays()
	entered := make(chan func())
	h := New(1, time.Hour)
	leave := h.Enter()
	go func() { entered <- h.Enter() }()
	select {
	case <-entered:
		t.Fatal("two are inside a gate for one")
	case <-time.After(10 * time.Millisecond):
	}
	leave()
	(<-entered)()
	goes()
	if g.free != 1 || h.free != 1 {
		t.Errorf("%d and %d places are free after everybody left, want one each", g.free, h.free)
	}
}

// A caller that gives up takes no place.
func TestEnterContext(t *testing.T) {
	g := New(1, time.Hour)
	leave, err := g.EnterContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.EnterContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	leave()
	if g.free != 1 || len(g.waiting) != 0 {
		t.Errorf("%d places are free and %d wait after everybody left", g.free, len(g.waiting))
	}
}

// While some come and go, one that stays keeps its place, and no more than the
// gate's number are inside.
func TestProgress(t *testing.T) {
	g := New(2, 50*time.Millisecond)
	stays := g.Enter()
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 40 {
				leave := g.Enter()
				if n := inside.Add(1); n > 1 {
					t.Errorf("%d are inside besides the one that stays, want 1", n)
				}
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				leave()
			}
		})
	}
	wg.Wait()
	stays()
	if g.free != 2 {
		t.Errorf("%d places are free after everybody left, want 2", g.free)
	}
}
