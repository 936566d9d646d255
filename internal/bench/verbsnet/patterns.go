package verbsnet

import (
	"context"
	"fmt"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/bench"
)

// Active does the client's part of t.
func (c *Conn) Active(ctx context.Context, t bench.Task, r *bench.Recorder) error {
	defer c.until(ctx)()
	begin := time.Now()
	if err := c.active(ctx, t, r); err != nil {
		return err
	}
	r.Finish(time.Since(begin), t.Iters)
	return c.drainSends(ctx, 0)
}

func (c *Conn) active(ctx context.Context, t bench.Task, r *bench.Recorder) error {
	latency := t.Kind == bench.KindLatency
	switch {
	case t.Op == bench.OpRead && latency:
		return c.readPing(ctx, t, r)
	case t.Op == bench.OpRead:
		return c.readStream(ctx, t)
	case t.Op == bench.OpSend && latency:
		return c.sendPing(ctx, t, r)
	case t.Op == bench.OpSend:
		return c.sendStream(ctx, t)
	case latency:
		return c.writePing(ctx, t, r)
	}
	return c.writeStream(ctx, t)
}

// Passive does the server's part of t. In a READ it has none, and in a stream of
// WRITEs only the end: there it sleeps in polling mode too, since a program that
// the data passes by would not look for it.
func (c *Conn) Passive(ctx context.Context, t bench.Task) error {
	defer c.until(ctx)()
	if err := c.passive(ctx, t); err != nil {
		return err
	}
	return c.drainSends(ctx, 0)
}

func (c *Conn) passive(ctx context.Context, t bench.Task) error {
	latency := t.Kind == bench.KindLatency
	switch {
	case t.Op == bench.OpRead:
		return nil
	case t.Op == bench.OpSend && latency:
		return c.sendPong(ctx, t)
	case t.Op == bench.OpSend:
		return c.sendDrain(ctx, t)
	case latency:
		return c.writePong(ctx, t)
	}
	if _, err := c.receivedNote(ctx, bench.ModeEvent); err != nil {
		return err
	}
	return c.postNote(ctx, uint64(t.Iters))
}

// sendPing sends a message and waits for the one that comes back; half of that time
// is the latency.
func (c *Conn) sendPing(ctx context.Context, t bench.Task, r *bench.Recorder) error {
	for seq := range t.Iters {
		start := time.Now()
		if err := c.postData(ctx, ibverbs.WRSend, seq); err != nil {
			return err
		}
		if err := c.receivedData(ctx, t, seq); err != nil {
			return err
		}
		r.Latency(time.Since(start) / 2)
		if err := c.postRecv(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) sendPong(ctx context.Context, t bench.Task) error {
	for seq := range t.Iters {
		if err := c.receivedData(ctx, t, seq); err != nil {
			return err
		}
		if err := c.postData(ctx, ibverbs.WRSend, seq); err != nil {
			return err
		}
		// One more receive is posted already, so that this is not in the way.
		if err := c.postRecv(); err != nil {
			return err
		}
	}
	return nil
}

// sendStream sends messages, at most t.Depth more than the peer has acknowledged,
// and ends when all are.
func (c *Conn) sendStream(ctx context.Context, t bench.Task) error {
	acked := 0
	for seq := 0; acked < t.Iters; {
		if seq < t.Iters && seq-acked < t.Depth {
			if err := c.postData(ctx, ibverbs.WRSend, seq); err != nil {
				return err
			}
			seq++
			continue
		}
		n, err := c.receivedNote(ctx, c.mode)
		if err != nil {
			return err
		}
		if n <= uint64(acked) || n > uint64(seq) {
			return fmt.Errorf("the peer acknowledged %d messages after %d of %d", n, acked, seq)
		}
		acked = int(n)
	}
	return nil
}

// sendDrain receives a stream and acknowledges it. The receives for what an
// acknowledgement allows are posted before it.
func (c *Conn) sendDrain(ctx context.Context, t bench.Task) error {
	for seq := range t.Iters {
		if err := c.receivedData(ctx, t, seq); err != nil {
			return err
		}
		if err := c.postRecv(); err != nil {
			return err
		}
		if n := seq + 1; n%t.AckEvery() == 0 || n == t.Iters {
			if err := c.postNote(ctx, uint64(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writePing writes to the peer's memory and waits until the peer has written to
// this end's; half of that time is the latency.
func (c *Conn) writePing(ctx context.Context, t bench.Task, r *bench.Recorder) error {
	for seq := range t.Iters {
		c.expectWrite(t, seq)
		start := time.Now()
		if err := c.postWrite(ctx, t, seq); err != nil {
			return err
		}
		if err := c.written(ctx, t, seq); err != nil {
			return err
		}
		r.Latency(time.Since(start) / 2)
	}
	return nil
}

func (c *Conn) writePong(ctx context.Context, t bench.Task) error {
	for seq := range t.Iters {
		if err := c.written(ctx, t, seq); err != nil {
			return err
		}
		// The peer writes again only when it has this answer.
		c.expectWrite(t, seq+1)
		if err := c.postWrite(ctx, t, seq); err != nil {
			return err
		}
	}
	return nil
}

// expectWrite makes the place of message seq ready to be watched, if it has been used
// before.
func (c *Conn) expectWrite(t bench.Task, seq int) {
	if t.Mode == bench.ModePoll && seq < t.Iters && seq >= c.SlotCount() {
		c.expect(c.Offset(seq), t.Size)
	}
}

func (c *Conn) postWrite(ctx context.Context, t bench.Task, seq int) error {
	if t.Mode == bench.ModePoll {
		return c.postData(ctx, ibverbs.WRRDMAWrite, seq)
	}
	return c.postDataAndNote(ctx, seq)
}

// written waits until the peer has written message seq.
func (c *Conn) written(ctx context.Context, t bench.Task, seq int) error {
	if t.Mode == bench.ModePoll {
		return c.watchMemory(c.Offset(seq), t.Size)
	}
	n, err := c.receivedNote(ctx, c.mode)
	if err == nil && n != uint64(seq) {
		err = fmt.Errorf("the peer told of message %d, not %d", n, seq)
	}
	return err
}

// watchMemory looks until a message is there. Now and then it looks at the
// completions, too: of this end's own writes, one of which may have failed.
func (c *Conn) watchMemory(off, size int) error {
	for look := 0; !c.arrived(off, size); look++ {
		if look&0xff != 0xff {
			continue
		}
		if c.stopped.Load() {
			return errStopped
		}
		if err := c.pollSends(); err != nil {
			return err
		}
	}
	return nil
}

// writeStream has at most t.Depth WRITEs under way, and ends when the peer, told
// behind the last one, has answered: on iWARP a WRITE's completion does not say that
// the data has arrived.
func (c *Conn) writeStream(ctx context.Context, t bench.Task) error {
	for seq := range t.Iters {
		if err := c.drainSends(ctx, t.Depth-1); err != nil {
			return err
		}
		if err := c.postData(ctx, ibverbs.WRRDMAWrite, seq); err != nil {
			return err
		}
	}
	if err := c.postNote(ctx, uint64(t.Iters)); err != nil {
		return err
	}
	n, err := c.receivedNote(ctx, c.mode)
	if err == nil && n != uint64(t.Iters) {
		err = fmt.Errorf("the peer acknowledged %d messages, not %d", n, t.Iters)
	}
	return err
}

// readPing reads a message and waits until it is there.
func (c *Conn) readPing(ctx context.Context, t bench.Task, r *bench.Recorder) error {
	for seq := range t.Iters {
		start := time.Now()
		if err := c.postRead(ctx, seq); err != nil {
			return err
		}
		if err := c.sent(ctx); err != nil {
			return err
		}
		r.Latency(time.Since(start))
	}
	return nil
}

// readStream has t.Depth READs under way, or as many as the connection allows.
func (c *Conn) readStream(ctx context.Context, t bench.Task) error {
	depth := min(t.Depth, c.readDepth)
	for seq := range t.Iters {
		if err := c.drainSends(ctx, depth-1); err != nil {
			return err
		}
		if err := c.postRead(ctx, seq); err != nil {
			return err
		}
	}
	return c.drainSends(ctx, 0)
}
