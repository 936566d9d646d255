package bench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
)

var tokenForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Validate reports what no client of ours would ask for.
func (p Params) Validate() error {
	switch {
	case p.Depth < 1 || p.Depth > MaxDepth:
		return fmt.Errorf("depth %d: use 1 to %d", p.Depth, MaxDepth)
	case p.Region < 1 || p.Region > MaxRegion:
		return fmt.Errorf("buffers of %d bytes: use 1 to %d", p.Region, MaxRegion)
	case !tokenForm.MatchString(p.Token):
		return errors.New("the connection's token is not 32 hexadecimal digits")
	}
	return nil
}

// errAbandoned: the client gave up on a data connection that was being made.
var errAbandoned = errors.New("the client gave up connecting")

// open listens for one data connection, accepts it, and exchanges with the client
// what each end must know of the other's memory.
func (s *session) open(o Open) error {
	transport, ok := s.Transports[o.Transport]
	switch {
	case !ok:
		return s.fail(fmt.Errorf("unknown transport %.40q", o.Transport))
	case s.conns[o.Transport] != nil:
		return s.fail(fmt.Errorf("%s is open already", o.Transport))
	}
	if err := o.Params.Validate(); err != nil {
		return s.fail(err)
	}
	ctx, cancel := context.WithTimeoutCause(s.peer.ctx, setupTimeout, fmt.Errorf("no connection from the client within %v", setupTimeout))
	defer cancel()
	listener, err := transport.Listen(ctx, o.Params, s.control)
	if err != nil {
		return s.fail(err)
	}
	s.logf("%s: waiting at %s", TransportTitle(o.Transport), listener.Address())
	if err := s.peer.send(Message{Type: "listening", Listening: &Listening{Address: listener.Address()}}); err != nil {
		listener.Close()
		return err
	}
	conn, m, err := s.accept(ctx, listener)
	if closeErr := listener.Close(); closeErr != nil && err == nil {
		err = closeErr
	}
	if conn != nil {
		s.conns[o.Transport], s.params[o.Transport] = conn, o.Params
	}
	if err != nil {
		return s.openFailed(o.Transport, m, err)
	}
	return s.attach(ctx, o.Transport, m)
}

// accept waits for the data connection. The client's next message may come first: it
// is returned too.
func (s *session) accept(ctx context.Context, listener Listener) (Conn, *Message, error) {
	var conn Conn
	m, err := s.peer.during(ctx, func(ctx context.Context) (err error) {
		conn, err = listener.Accept(ctx)
		return err
	}, func(m Message) error {
		switch {
		case m.Close != nil:
			return errAbandoned
		case m.Attach == nil:
			return s.peer.unexpected(m)
		}
		return nil
	})
	return conn, m, err
}

// openFailed answers that there is no data connection. A client that has given up by
// itself only wants to know that all is closed.
func (s *session) openFailed(transport string, m *Message, err error) error {
	err = also(err, s.drop(transport))
	if m != nil && m.Close != nil && context.Cause(s.peer.ctx) == nil {
		s.logf("%s: %v", TransportTitle(transport), err)
		return s.peer.send(Message{Type: "closed", Closed: m.Close})
	}
	return s.fail(err)
}

// attach is the server's half of Link.attach. m is the client's message if it has
// come already.
func (s *session) attach(ctx context.Context, transport string, m *Message) error {
	if m == nil {
		got, err := s.peer.recv(ctx)
		if err != nil {
			return err
		}
		m = &got
	}
	switch {
	case m.Close != nil && m.Close.Transport == transport:
		return s.openFailed(transport, m, errAbandoned)
	case m.Attach == nil || m.Attach.Transport != transport:
		return s.peer.unexpected(*m)
	}
	conn := s.conns[transport]
	if err := conn.Attach(m.Attach.Memory); err != nil {
		return s.fail(also(err, s.drop(transport)))
	}
	return s.peer.send(Message{Type: "attach", Attach: &Attach{
		Transport: transport, Info: conn.Info(), Memory: conn.Memory(),
	}})
}
