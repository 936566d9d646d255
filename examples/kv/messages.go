package main

import (
	"context"
	"errors"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/rdmacm"
)

// messages sends and receives whole messages on a connection, one at a time
// each way.
type messages struct {
	conn *rdmacm.Conn
	ring *ibverbs.RecvRing
	out  *ibverbs.MR
}

// config sets a connection up with its buffers, which it can find again.
func config() rdmacm.Config {
	return rdmacm.Config{SendDepth: 4, RecvDepth: 4, Prepare: func(c *rdmacm.Conn) (err error) {
		m := &messages{conn: c}
		// Receives are posted before the connection is made: no message finds
		// none. The peer has one request under way, so that a few do.
		if m.ring, err = ibverbs.NewRecvRing(c.QP(), ibverbs.RecvRingOptions{Buffers: 4, Size: maxMessage, Batch: 1}); err != nil {
			return err
		}
		c.Own(m.ring) // closed with the connection
		if m.out, err = c.PD().AllocMR(maxMessage, ibverbs.AccessLocalWrite, ibverbs.BufferOptions{}); err != nil {
			return err
		}
		c.Own(m.out)
		c.SetUserData(m)
		return nil
	}}
}

// send sends a message that build appends to the buffer, and waits until the
// buffer is free again.
func (m *messages) send(ctx context.Context, build func([]byte) ([]byte, error)) error {
	b, err := build(m.out.Bytes()[:0])
	if err != nil {
		return err
	}
	_, err = m.conn.QP().PostSend([]ibverbs.SendWR{{
		Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{m.out.SGE(0, len(b))},
	}})
	if err != nil {
		return err
	}
	var wcs [1]ibverbs.WC
	if _, err := m.conn.SendCQ().Wait(ctx, wcs[:]); err != nil {
		return err
	}
	return wcs[0].Err()
}

// receive waits for a message, and lends it to use.
func (m *messages) receive(ctx context.Context, use func([]byte) error) error {
	var wcs [1]ibverbs.WC
	if _, err := m.conn.RecvCQ().Wait(ctx, wcs[:]); err != nil {
		return err
	}
	b, err := m.ring.Bytes(&wcs[0])
	if err != nil {
		return err
	}
	return errors.Join(use(b), m.ring.Repost(&wcs[0]))
}
