package verbsnet

import (
	"context"
	"fmt"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/bench"
)

const (
	// spinBudget is how long one call polls in C before it looks whether the
	// Task has been stopped.
	spinBudget = time.Millisecond
	// batch is how many completions are taken at once.
	batch = 16
)

// queue is a CQ and the completions taken from it and not yet used.
type queue struct {
	cq   *ibverbs.CQ
	wcs  [batch]ibverbs.WC
	next int
	have int
}

// take returns the next completion. It polls or waits, as mode says, until there is
// one; the completion is valid until the next call.
func (c *Conn) take(ctx context.Context, q *queue, mode bench.Mode) (*ibverbs.WC, error) {
	for q.next == q.have {
		var n int
		var err error
		if mode == bench.ModePoll {
			n, err = q.cq.Spin(q.wcs[:], spinBudget)
			if n == 0 && err == nil && c.stopped.Load() {
				return nil, errStopped
			}
		} else {
			n, err = q.cq.Wait(ctx, q.wcs[:])
		}
		if err != nil {
			return nil, err
		}
		q.next, q.have = 0, n
	}
	wc := &q.wcs[q.next]
	q.next++
	if wc.Status != ibverbs.WCStatusSuccess {
		return nil, c.explain(wc)
	}
	return wc, nil
}

// explain says why a work request failed. One that was flushed tells only that the
// connection has ended, which rdmacm knows more about.
func (c *Conn) explain(wc *ibverbs.WC) error {
	if end := c.rc.Err(); end != nil {
		return fmt.Errorf("the data connection ended: %w", end)
	}
	return wc.Err()
}

// sent waits for one send completion.
func (c *Conn) sent(ctx context.Context) error {
	if _, err := c.take(ctx, &c.sends, c.mode); err != nil {
		return err
	}
	c.under--
	return nil
}

// drainSends waits until at most left send work requests are under way.
func (c *Conn) drainSends(ctx context.Context, left int) error {
	for c.under > left {
		if err := c.sent(ctx); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom makes sure that n more work requests fit into the send queue. In a
// ping-pong their completions have come long before, so that this costs a call in
// many messages, and never waits.
func (c *Conn) makeRoom(ctx context.Context, n int) error {
	if c.under+n <= c.room {
		return nil
	}
	return c.drainSends(ctx, (c.room-n)/2)
}

// received waits for one message and posts nothing anew.
func (c *Conn) received(ctx context.Context, mode bench.Mode) (*ibverbs.WC, error) {
	return c.take(ctx, &c.recvs, mode)
}

// pollSends takes send completions that are there, and does not wait.
func (c *Conn) pollSends() error {
	q := &c.sends
	if q.next == q.have {
		n, err := q.cq.Poll(q.wcs[:])
		if err != nil {
			return err
		}
		q.next, q.have = 0, n
	}
	for ; q.next < q.have; q.next++ {
		if wc := &q.wcs[q.next]; wc.Status != ibverbs.WCStatusSuccess {
			return c.explain(wc)
		}
		c.under--
	}
	return nil
}
