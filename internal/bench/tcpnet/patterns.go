package tcpnet

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/goverbs/goverbs/internal/bench"
)

// Active does the client's part of t.
func (c *Conn) Active(ctx context.Context, t bench.Task, r *bench.Recorder) error {
	defer c.until(ctx)()
	begin := time.Now()
	var err error
	switch {
	case t.Op == bench.OpRead && t.Kind == bench.KindLatency:
		err = c.request(t, r)
	case t.Op == bench.OpRead:
		err = c.requestStream(t)
	case t.Kind == bench.KindLatency:
		err = c.ping(t, r)
	default:
		err = c.stream(t)
	}
	r.Finish(time.Since(begin), t.Iters)
	return err
}

// Passive does the server's part of t.
func (c *Conn) Passive(ctx context.Context, t bench.Task) error {
	defer c.until(ctx)()
	switch {
	case t.Op == bench.OpRead:
		return c.serve(t)
	case t.Kind == bench.KindLatency:
		return c.pong(t)
	}
	return c.drain(t)
}

// ping sends a message and waits for the one that comes back; half of that time is
// the latency.
func (c *Conn) ping(t bench.Task, r *bench.Recorder) error {
	for seq := range t.Iters {
		out, in := c.Out(seq), c.In(seq)
		start := time.Now()
		if err := c.io.writeFull(out); err != nil {
			return err
		}
		if err := c.io.readFull(in); err != nil {
			return err
		}
		r.Latency(time.Since(start) / 2)
	}
	return nil
}

func (c *Conn) pong(t bench.Task) error {
	for seq := range t.Iters {
		out := c.Out(seq)
		if err := c.io.readFull(c.In(seq)); err != nil {
			return err
		}
		if err := c.io.writeFull(out); err != nil {
			return err
		}
	}
	return nil
}

// stream sends messages, at most t.Depth more than the peer has acknowledged, and
// ends when all are.
func (c *Conn) stream(t bench.Task) error {
	acked := 0
	for seq := range t.Iters {
		for seq-acked >= t.Depth {
			if err := c.readAck(&acked); err != nil {
				return err
			}
		}
		if err := c.io.writeFull(c.Out(seq)); err != nil {
			return err
		}
	}
	for acked < t.Iters {
		if err := c.readAck(&acked); err != nil {
			return err
		}
	}
	return nil
}

// readAck receives how many messages the peer has, which must be more than before.
func (c *Conn) readAck(acked *int) error {
	n, err := c.readNumber()
	if err != nil {
		return err
	}
	if n <= uint64(*acked) || n > bench.MaxIters {
		return fmt.Errorf("the peer acknowledged %d messages after %d", n, *acked)
	}
	*acked = int(n)
	return nil
}

// drain receives a stream and acknowledges it.
func (c *Conn) drain(t bench.Task) error {
	for seq := range t.Iters {
		if err := c.io.readFull(c.In(seq)); err != nil {
			return err
		}
		if n := seq + 1; n%t.AckEvery() == 0 || n == t.Iters {
			if err := c.writeNumber(uint64(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// request asks for a message and waits for it.
func (c *Conn) request(t bench.Task, r *bench.Recorder) error {
	for seq := range t.Iters {
		in := c.In(seq)
		start := time.Now()
		if err := c.writeNumber(uint64(seq)); err != nil {
			return err
		}
		if err := c.io.readFull(in); err != nil {
			return err
		}
		r.Latency(time.Since(start))
	}
	return nil
}

// requestStream has t.Depth requests under way.
func (c *Conn) requestStream(t bench.Task) error {
	asked := 0
	for seq := range t.Iters {
		for asked < t.Iters && asked-seq < t.Depth {
			if err := c.writeNumber(uint64(asked)); err != nil {
				return err
			}
			asked++
		}
		if err := c.io.readFull(c.In(seq)); err != nil {
			return err
		}
	}
	return nil
}

// serve answers requests.
func (c *Conn) serve(t bench.Task) error {
	for range t.Iters {
		seq, err := c.readNumber()
		if err != nil {
			return err
		}
		if seq >= uint64(t.Iters) {
			return fmt.Errorf("the peer asked for message %d of %d", seq, t.Iters)
		}
		if err := c.io.writeFull(c.Out(int(seq))); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) readNumber() (uint64, error) {
	if err := c.io.readFull(c.small[:]); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(c.small[:]), nil
}

func (c *Conn) writeNumber(n uint64) error {
	binary.BigEndian.PutUint64(c.small[:], n)
	return c.io.writeFull(c.small[:])
}
