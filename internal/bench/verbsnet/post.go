package verbsnet

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/bench"
)

// maxNotes is how many places there are for notes: more than can be under way.
const maxNotes = 4 * bench.MaxDepth

// postRecv posts the next receive of the Task, if there are more: for message
// number posted, or a note.
func (c *Conn) postRecv() error {
	if c.posted == c.toPost {
		return nil
	}
	if c.recvIsNote {
		c.recvSGE[0] = c.notes.SGE(c.posted%maxNotes*noteSize, noteSize)
	} else {
		c.recvSGE[0] = c.sink.SGE(c.Offset(c.posted), len(c.In(c.posted)))
	}
	c.recvWRs[0] = ibverbs.RecvWR{WRID: uint64(c.posted), SGList: c.recvSGE[:]}
	if _, err := c.qp.PostRecv(c.recvWRs[:]); err != nil {
		return err
	}
	c.posted++
	return nil
}

// data prepares the work request for message seq: a SEND, or a WRITE to the same
// place of the peer's sink.
func (c *Conn) data(op ibverbs.WROpcode, seq int) ibverbs.SendWR {
	c.sendSGE[0] = c.source.SGE(c.Offset(seq), len(c.Out(seq)))
	wr := ibverbs.SendWR{WRID: uint64(seq), Opcode: op, Flags: ibverbs.SendSignaled, SGList: c.sendSGE[:]}
	if op == ibverbs.WRRDMAWrite {
		wr.RemoteAddr, wr.RKey = c.remote.SinkAddr+uint64(c.Offset(seq)), c.remote.SinkKey
	}
	return wr
}

// noteWR prepares a note.
func (c *Conn) noteWR(value uint64) ibverbs.SendWR {
	binary.BigEndian.PutUint64(c.note[:], value)
	return ibverbs.SendWR{
		WRID: value, Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled | ibverbs.SendInline, Inline: c.note[:],
	}
}

// post posts the first n of sendWRs.
func (c *Conn) post(ctx context.Context, n int) error {
	if err := c.makeRoom(ctx, n); err != nil {
		return err
	}
	accepted, err := c.qp.PostSend(c.sendWRs[:n])
	c.under += accepted
	return err
}

func (c *Conn) postData(ctx context.Context, op ibverbs.WROpcode, seq int) error {
	c.sendWRs[0] = c.data(op, seq)
	return c.post(ctx, 1)
}

// postDataAndNote writes message seq and tells the peer, in one call.
func (c *Conn) postDataAndNote(ctx context.Context, seq int) error {
	c.sendWRs[0] = c.data(ibverbs.WRRDMAWrite, seq)
	c.sendWRs[1] = c.noteWR(uint64(seq))
	return c.post(ctx, 2)
}

func (c *Conn) postNote(ctx context.Context, value uint64) error {
	c.sendWRs[0] = c.noteWR(value)
	return c.post(ctx, 1)
}

// postRead reads message seq from the peer's source.
func (c *Conn) postRead(ctx context.Context, seq int) error {
	c.sendSGE[0] = c.sink.SGE(c.Offset(seq), len(c.In(seq)))
	c.sendWRs[0] = ibverbs.SendWR{
		WRID: uint64(seq), Opcode: ibverbs.WRRDMARead, Flags: ibverbs.SendSignaled, SGList: c.sendSGE[:],
		RemoteAddr: c.remote.SourceAddr + uint64(c.Offset(seq)), RKey: c.remote.SourceKey,
	}
	return c.post(ctx, 1)
}

// receivedNote waits for a note, posts a receive for another, and returns what it
// says.
func (c *Conn) receivedNote(ctx context.Context, mode bench.Mode) (uint64, error) {
	wc, err := c.received(ctx, mode)
	if err != nil {
		return 0, err
	}
	if wc.ByteLen != noteSize {
		return 0, fmt.Errorf("a note of %d bytes, not %d", wc.ByteLen, noteSize)
	}
	value := binary.BigEndian.Uint64(c.noteBytes[int(wc.WRID)%maxNotes*noteSize:])
	return value, c.postRecv()
}

// receivedData waits for message seq. The receive for another is left to the caller.
func (c *Conn) receivedData(ctx context.Context, t bench.Task, seq int) error {
	wc, err := c.received(ctx, c.mode)
	if err != nil {
		return err
	}
	if wc.WRID != uint64(seq) || wc.ByteLen != uint32(t.Size) {
		return fmt.Errorf("message %d of %d bytes came in place of %d of %d bytes", wc.WRID, wc.ByteLen, seq, t.Size)
	}
	return nil
}
