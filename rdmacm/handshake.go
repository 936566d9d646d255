package rdmacm

import (
	"context"
	"errors"
	"syscall"
)

// serve reads the listener's channel until the listener is closed or fails.
func (l *Listener) serve() {
	defer close(l.served)
	for {
		ev, err := l.channel.GetEvent(l.ctx)
		if err != nil {
			l.fail(err)
			return
		}
		switch {
		case ev.Type == EventConnectRequest:
			l.admit(ev)
		case ev.Err() != nil:
			// The device that a bound listener listened on is gone.
			l.fail(ev.Err())
		}
	}
}

// admit starts the handshake for a request, if the backlog has room.
func (l *Listener) admit(ev *Event) {
	select {
	case l.slots <- struct{}{}:
	default:
		l.refuse(ev, hint(syscall.ENOBUFS, "the backlog is full"), nil)
		return
	}
	l.shakes.Go(func() {
		c, err := l.shake(ev)
		if err != nil {
			l.report(ev, err)
			<-l.slots
			return
		}
		if !l.enqueue(c) {
			<-l.slots
			c.Close()
		}
	})
}

// enqueue hands an established connection to Accept, unless the listener has
// been closed meanwhile. There is room: a connection in the queue holds a slot.
func (l *Listener) enqueue(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.queue <- c
	return true
}

func (l *Listener) report(ev *Event, err error) {
	if l.cfg.OnError != nil {
		l.cfg.OnError(ev.ID.PeerAddr(), err)
	}
}

// refuse rejects a request that nothing has been set up for.
func (l *Listener) refuse(ev *Event, why error, data []byte) {
	l.report(ev, wrap("rdma_reject", ev.ID.String(), why))
	// Where it fails the peer has given up already.
	ev.ID.Reject(data)
	ev.ID.Close()
}

// shake takes a request through the steps of a passive connection. Where it
// fails, the peer is told and nothing is left.
func (l *Listener) shake(ev *Event) (*Conn, error) {
	id := ev.ID
	req := &Request{Config: l.cfg.Config, Reply: l.cfg.PrivateData, id: id, param: ev.Param}
	if err := l.consider(req); err != nil {
		var refusal *RefuseError
		var data []byte
		if errors.As(err, &refusal) {
			data = refusal.PrivateData
		}
		return nil, l.giveUp(id, err, data)
	}
	channel, err := CreateEventChannel()
	if err != nil {
		return nil, l.giveUp(id, err, nil)
	}
	if err := id.Migrate(channel); err != nil {
		return nil, errors.Join(l.giveUp(id, err, nil), channel.Close())
	}
	c := newConn(id, channel, &req.Config)
	if err := l.accept(c, req); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// consider decides whether a request is to be accepted.
func (l *Listener) consider(req *Request) error {
	if err := checkDevice(l.cfg.Device, req.DeviceName(), req.LocalAddr()); err != nil {
		return err
	}
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if l.cfg.OnRequest == nil {
		return nil
	}
	return l.cfg.OnRequest(req)
}

func (l *Listener) giveUp(id *ID, err error, data []byte) error {
	err = wrap("rdma_accept", id.String(), err)
	id.Reject(data)
	return errors.Join(err, id.Close())
}

// accept sets the connection up and waits for it to be established.
func (l *Listener) accept(c *Conn, req *Request) error {
	ctx, cancel := context.WithTimeoutCause(l.ctx,
		orDefault(l.cfg.HandshakeTimeout, defaultHandshake), errStepTimeout)
	defer cancel()
	c.peer = req.param.PrivateData
	if err := c.build(&req.Config); err != nil {
		c.id.Reject(nil)
		return err
	}
	param := c.limits.param(req.Reply)
	param.ResponderResources = min(param.ResponderResources, req.param.ResponderResources)
	param.InitiatorDepth = min(param.InitiatorDepth, req.param.InitiatorDepth)
	c.granted = grant(param, param)
	if !c.id.iwarp() {
		c.granted.RetryCount = req.param.RetryCount // the dialing side decides
	}
	if err := c.id.Accept(param); err != nil {
		return err
	}
	if _, err := c.await(ctx, "rdma_accept", EventEstablished); err != nil {
		return err
	}
	c.start()
	return nil
}
