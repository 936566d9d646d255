package rdmacm

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
)

// Conn is a connected RC queue pair with what belongs to it. Dialer and
// Listener make them.
//
// Data moves through QP, SendCQ and RecvCQ, whose methods belong to package
// ibverbs; Conn sees to the connection's life. Its methods may be called from
// several goroutines at once.
type Conn struct {
	id      *ID
	channel *EventChannel
	linger  time.Duration

	pd     *ibverbs.PD
	sendCQ *ibverbs.CQ
	recvCQ *ibverbs.CQ
	qp     *ibverbs.QP

	// What of these is the connection's own to close, nil where it is not.
	shared *sharedDevice
	ownPD  *ibverbs.PD
	ownCQs [2]*ibverbs.CQ
	comp   *ibverbs.CompChannel

	limits  limits
	wire    Transport
	peer    []byte
	granted ConnParam

	ctx  context.Context // done when the connection has ended
	end  context.CancelCauseFunc
	gone chan struct{} // closed when the connection manager has nothing more to say

	user atomic.Pointer[any]

	removed     atomic.Bool // the device is gone
	closeMu     sync.Mutex
	established bool
	owned       []io.Closer
	unwatch     context.CancelFunc
	watched     chan struct{} // closed when watch has returned
}

func newConn(id *ID, channel *EventChannel, cfg *Config) *Conn {
	c := &Conn{
		id:      id,
		channel: channel,
		linger:  orDefault(cfg.Linger, defaultLinger),
		gone:    make(chan struct{}),
	}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	return c
}

// QP is the connection's queue pair. The connection moves and closes it.
func (c *Conn) QP() *ibverbs.QP { return c.qp }

// PD is Config.PD, or the connection's own.
func (c *Conn) PD() *ibverbs.PD { return c.pd }

// SendCQ is where sends, writes and reads complete.
func (c *Conn) SendCQ() *ibverbs.CQ { return c.sendCQ }

// RecvCQ is where receives complete.
func (c *Conn) RecvCQ() *ibverbs.CQ { return c.recvCQ }

// PrivateData is what the peer sent along: with its request on the accepting
// side, with its acceptance on the dialing side. RoCE and InfiniBand pad it
// with zeros, to 56 and 196 bytes.
func (c *Conn) PrivateData() []byte { return c.peer }

// Negotiated are the connection's parameters as both sides know them now:
// ResponderResources and InitiatorDepth may be lower than was asked for.
func (c *Conn) Negotiated() ConnParam { return c.granted }

// LocalAddr is this side's address.
func (c *Conn) LocalAddr() netip.AddrPort { return c.id.LocalAddr() }

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.id.PeerAddr() }

// DeviceName is the RDMA device that the connection runs over.
func (c *Conn) DeviceName() string { return c.id.DeviceName() }

// PortNum is that device's port.
func (c *Conn) PortNum() int { return c.id.PortNum() }

// Transport says what the connection's wire protocol can do.
func (c *Conn) Transport() Transport { return c.wire }

// String names the connection in errors: "rxe0/id7".
func (c *Conn) String() string { return c.id.String() }

// Done is closed when the connection has ended: the peer disconnected or went
// away, the device was removed, or Close or Disconnect was called. What is
// still posted then is flushed.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Err is nil while the connection lives, then what ended it: ErrDisconnected,
// ErrDeviceRemoved, ErrAddrChanged (in an *ibverbs.OpError), or net.ErrClosed
// after Close or Disconnect.
func (c *Conn) Err() error {
	select {
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	default:
		return nil
	}
}

// Context ends with the connection, and context.Cause then is what Err tells.
// A CQ.Wait with it does not outlast the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// Own makes the connection close r when it is closed (or not established at
// all): after the QP, so that no memory is taken from the device too early,
// and before the PD. It is meant for what Config.Prepare makes on the
// connection's PD. What was given last is closed first.
func (c *Conn) Own(r io.Closer) {
	c.closeMu.Lock()
	defer c.closeMu.Unlock()
	c.owned = append(c.owned, r)
}

// SetUserData keeps a value with the connection, such as what Config.Prepare
// made for it; UserData gives it back.
func (c *Conn) SetUserData(v any) { c.user.Store(&v) }

// UserData is what SetUserData was given; nil if it was not.
func (c *Conn) UserData() any {
	if v := c.user.Load(); v != nil {
		return *v
	}
	return nil
}

// Disconnect ends the connection but keeps its QP, CQs and memory, so that
// all that was posted can be seen to come back, flushed. It does not wait for
// the peer. Close is still to be called.
func (c *Conn) Disconnect() error {
	c.end(net.ErrClosed)
	if c.removed.Load() {
		return nil
	}
	return c.id.Disconnect()
}

// Close ends the connection and frees all that belongs to it. It waits for the
// peer to answer for Config.Linger at most, whatever the peer does. Work
// requests that are outstanding end without a completion; Disconnect first,
// and poll, to see them flushed.
//
// It fails with EBUSY, naming them, while objects of the user's are open on the
// connection's own PD; the connection has ended even so, and Close may be called
// again. Closing twice is no error.
func (c *Conn) Close() error {
	c.end(net.ErrClosed)
	c.closeMu.Lock()
	defer c.closeMu.Unlock()
	if c.established {
		c.established = false
		c.hangUp()
	}
	return c.free()
}

// hangUp disconnects and gives the peer the time to answer.
func (c *Conn) hangUp() {
	if c.removed.Load() {
		return
	}
	// It fails where the peer has disconnected already.
	c.id.Disconnect()
	if c.linger < 0 {
		return
	}
	timeout := time.NewTimer(c.linger)
	defer timeout.Stop()
	select {
	case <-c.gone:
	case <-timeout.C:
	}
}

// free gives everything back. What fails stops it; called again, it goes on
// from there, since closing what is closed is no error.
func (c *Conn) free() error {
	if c.unwatch != nil {
		c.unwatch()
		<-c.watched
		c.unwatch = nil
	}
	if err := closeAll(closing(c.id), closing(c.channel), closing(c.qp)); err != nil {
		return err
	}
	for len(c.owned) > 0 {
		last := len(c.owned) - 1
		if err := c.owned[last].Close(); err != nil {
			return err
		}
		c.owned = c.owned[:last]
	}
	if err := closeAll(closing(c.ownCQs[0]), closing(c.ownCQs[1]), closing(c.comp), closing(c.ownPD)); err != nil {
		return err
	}
	if c.shared != nil {
		if err := devices.release(c.shared); err != nil {
			return err
		}
		c.shared = nil
	}
	return nil
}

// start makes an established connection of c.
func (c *Conn) start() {
	c.closeMu.Lock()
	defer c.closeMu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	c.established = true
	c.unwatch = cancel
	c.watched = make(chan struct{})
	go c.watch(ctx)
}

// watch follows an established connection until its channel is given up, and
// ends the connection when the connection manager says so.
func (c *Conn) watch(ctx context.Context) {
	defer close(c.watched)
	for {
		ev, err := c.channel.GetEvent(ctx)
		if err != nil {
			return
		}
		c.handle(ev)
	}
}

func (c *Conn) handle(ev *Event) {
	cause := ev.Err()
	if cause == nil {
		return
	}
	c.end(cause)
	switch ev.Type {
	case EventDeviceRemoval:
		c.removed.Store(true)
		if c.shared != nil {
			devices.forget(c.shared)
		}
	case EventDisconnected:
		// The peer waits for this answer.
		c.id.Disconnect()
	default:
		// Whatever else it is, the connection is not what it was.
		c.id.Disconnect()
		return
	}
	select {
	case <-c.gone:
	default:
		close(c.gone)
	}
}
