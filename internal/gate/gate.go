// Package gate bounds how many OS threads are in the kernel for control calls.
//
// Such a call (create a QP, destroy an ID) takes locks there and may sleep. Go
// gives its processor to another thread meanwhile, so that a thousand goroutines
// that set up connections would become a thousand threads. The kernel does little
// of this at once anyway: goroutines queue here instead, where they need no thread.
package gate

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Gate lets few callers in at a time, in the order in which they came. Make one
// with New.
type Gate struct {
	patience time.Duration

	mu      sync.Mutex
	free    int
	inside  []*visit // who holds a place, the longest first
	waiting []*visit
	left    time.Time   // when somebody last left while others waited
	timer   *time.Timer // runs while somebody waits
}

// visit is a caller's way through a gate.
type visit struct {
	entered chan struct{} // closed when the caller may go in
	since   time.Time     // when it went in
}

// Control is for calls that the kernel answers soon; Slow for those that may wait
// for a peer, which must not hold up the others.
var (
	Control = New(3, time.Second)
	Slow    = New(2, 50*time.Millisecond)
)

// New makes a gate for n callers. Where nobody leaves for as long as patience,
// those who have been inside since then give their places to others: no call is
// held up for long by calls that do not return. While some return, the gate keeps
// its number.
func New(n int, patience time.Duration) *Gate { return &Gate{free: n, patience: patience} }

// Enter waits for a place. The caller makes one call and then leaves with the
// function that Enter returns; it enters no gate before that.
func (g *Gate) Enter() (leave func()) {
	v := g.come()
	<-v.entered
	return func() { g.leave(v) }
}

// EnterContext is Enter, but gives up with ctx's error.
func (g *Gate) EnterContext(ctx context.Context) (leave func(), err error) {
	v := g.come()
	select {
	case <-v.entered:
		return func() { g.leave(v) }, nil
	case <-ctx.Done():
		g.leave(v)
		return nil, ctx.Err()
	}
}

// open is what visits get that need not wait.
var open = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (g *Gate) come() *visit {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := &visit{entered: open}
	if g.free > 0 {
		g.free--
		g.admit(v)
		return v
	}
	v.entered = make(chan struct{})
	g.waiting = append(g.waiting, v)
	if len(g.waiting) == 1 {
		g.watch()
	}
	return v
}

func (g *Gate) admit(v *visit) {
	v.since = time.Now()
	g.inside = append(g.inside, v)
}

// leave ends a visit: one that is inside, one that has lost its place meanwhile,
// or one that still waits.
func (g *Gate) leave(v *visit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, v); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		return
	}
	if len(g.waiting) > 0 {
		g.left = time.Now()
	}
	if i := slices.Index(g.inside, v); i >= 0 {
		g.inside = slices.Delete(g.inside, i, i+1)
		g.pass()
	}
}

// pass gives a place to whoever waits for one.
func (g *Gate) pass() {
	if len(g.waiting) == 0 {
		g.free++
		return
	}
	next := g.waiting[0]
	g.waiting = g.waiting[1:]
	g.admit(next)
	close(next.entered)
}

// stuck is for how long nobody has left.
func (g *Gate) stuck() time.Duration {
	return min(time.Since(g.inside[0].since), time.Since(g.left))
}

// watch looks again when the gate's patience may have been tried.
func (g *Gate) watch() {
	wait := g.patience - g.stuck()
	if g.timer == nil {
		g.timer = time.AfterFunc(wait, g.expire)
	} else {
		g.timer.Reset(wait)
	}
}

// expire takes the places of those who have stayed for too long.
func (g *Gate) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		return
	}
	if time.Since(g.left) >= g.patience {
		for len(g.waiting) > 0 && time.Since(g.inside[0].since) >= g.patience {
			g.inside = g.inside[1:]
			g.pass()
		}
	}
	if len(g.waiting) > 0 {
		g.watch()
	}
}
