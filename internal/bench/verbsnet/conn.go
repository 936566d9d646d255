package verbsnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/rdmacm"
)

// noteSize is the size of the small messages that go beside the data:
// acknowledgements of a stream, and what tells the peer that a WRITE is there. TCP's
// acknowledgements have as many bytes.
const noteSize = 8

// Conn is one end of an RDMA data connection.
type Conn struct {
	bench.Buffers
	rc           *rdmacm.Conn
	qp           *ibverbs.QP
	source, sink *ibverbs.MR
	notes        *ibverbs.MR
	noteBytes    []byte // of notes
	remote       memory
	readDepth    int
	room         int // work requests that the send queue holds

	// What the Task at hand uses.
	mode    bench.Mode
	stopped atomic.Bool // its context has ended
	sends   queue
	recvs   queue
	// under is how many send work requests have been posted and not completed.
	under int
	// posted is how many receives have been posted, of toPost in all.
	posted, toPost int
	recvIsNote     bool

	// Scratch, so that posting allocates nothing.
	sendWRs [2]ibverbs.SendWR
	sendSGE [1]ibverbs.SGE
	recvWRs [1]ibverbs.RecvWR
	recvSGE [1]ibverbs.SGE
	note    [noteSize]byte
}

// memory is what the peer must know of this end, and this end of the peer.
type memory struct {
	SourceAddr uint64 `json:"source_addr"`
	SourceKey  uint32 `json:"source_key"`
	SinkAddr   uint64 `json:"sink_addr"`
	SinkKey    uint32 `json:"sink_key"`
	Region     int    `json:"region"`
}

// register makes the connection's memory, which belongs to rc from then on.
func (c *Conn) register(p bench.Params, server bool) error {
	c.qp = c.rc.QP()
	c.readDepth = int(c.rc.Negotiated().InitiatorDepth)
	c.room = min(int(c.qp.Cap().MaxSendWR), 2*p.Depth+16)
	var err error
	alloc := func(size int, access ibverbs.Access) *ibverbs.MR {
		if err != nil {
			return nil
		}
		var mr *ibverbs.MR
		if mr, err = c.rc.PD().AllocMR(size, access, ibverbs.BufferOptions{}); err == nil {
			c.rc.Own(mr)
		}
		return mr
	}
	c.source = alloc(p.Region, ibverbs.AccessLocalWrite|ibverbs.AccessRemoteRead)
	// Peers write to the sink; on iWARP a READ's answer is a write to it, too.
	c.sink = alloc(p.Region, ibverbs.AccessLocalWrite|ibverbs.AccessRemoteWrite)
	c.notes = alloc(maxNotes*noteSize, ibverbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	c.Buffers = bench.Buffers{Source: c.source.Bytes(), Sink: c.sink.Bytes(), Server: server}
	c.noteBytes = c.notes.Bytes()
	c.sends.cq, c.recvs.cq = c.rc.SendCQ(), c.rc.RecvCQ()
	return nil
}

// Info says which device the connection uses.
func (c *Conn) Info() bench.ConnInfo {
	info := bench.ConnInfo{
		Device: c.rc.DeviceName(), Address: c.rc.LocalAddr().String(), ReadDepth: c.readDepth,
	}
	info.Netdev, info.MTU = netdevOf(info.Device, c.rc.PortNum())
	return info
}

// Memory gives the peer the addresses and keys of this end.
func (c *Conn) Memory() json.RawMessage {
	data, err := json.Marshal(memory{
		SourceAddr: c.source.Addr(), SourceKey: c.source.RKey(),
		SinkAddr: c.sink.Addr(), SinkKey: c.sink.RKey(), Region: c.sink.Len(),
	})
	if err != nil {
		return nil // impossible; Attach refuses it
	}
	return data
}

// Attach takes what Memory gave at the other end.
func (c *Conn) Attach(data json.RawMessage) error {
	var m memory
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("the peer's memory: %w", err)
	}
	if m.Region != len(c.Sink) {
		return fmt.Errorf("the peer has buffers of %d bytes, this end %d", m.Region, len(c.Sink))
	}
	c.remote = m
	return nil
}

// Prepare fills the buffers and posts the first receives of t.
func (c *Conn) Prepare(t bench.Task) error {
	if err := c.rc.Err(); err != nil {
		return err
	}
	c.Buffers.Prepare(t)
	c.mode = t.Mode
	c.stopped.Store(false)
	c.posted, c.toPost, c.recvIsNote = 0, t.Iters, true
	switch {
	case t.Op == bench.OpRead, t.Op == bench.OpWrite && t.Kind == bench.KindLatency && t.Mode == bench.ModePoll:
		c.toPost = 0
	case t.Op == bench.OpWrite && t.Kind == bench.KindThroughput:
		c.toPost = 1 // the end of the stream, and its acknowledgement
	case t.Op == bench.OpSend && t.Kind == bench.KindThroughput && !c.Server:
		c.toPost = (t.Iters + t.AckEvery() - 1) / t.AckEvery()
	case t.Op == bench.OpSend:
		c.recvIsNote = false
	}
	// Twice the depth: as many messages as may be under way, and as many again
	// that have come and whose receives are not posted anew.
	for range 2 * t.Depth {
		if err := c.postRecv(); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the connection and frees its memory. Nothing may use it any more: the
// end of a Task's context is what stops a Task.
func (c *Conn) Close() error { return c.rc.Close() }

// stop is called when a Task's context ends: what spins looks at it, what waits
// has the context.
func (c *Conn) stop() { c.stopped.Store(true) }

var errStopped = errors.New("stopped")

// until has the Task stop when ctx ends. The caller defers what it returns.
func (c *Conn) until(ctx context.Context) (release func() bool) {
	return context.AfterFunc(ctx, c.stop)
}
