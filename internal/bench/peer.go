package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// writeTimeout bounds how long a control message may take to be sent: they are
// small, so that only a peer that does not read makes one wait.
const writeTimeout = 10 * time.Second

// peer is one end of the control connection. A goroutine reads it at all times, so
// that the other end's death is noticed whatever this end is doing.
type peer struct {
	name string // "server" or "client": what the other end is
	conn net.Conn
	in   chan Message
	wmu  sync.Mutex

	// ctx ends when the connection does; its cause says why.
	ctx    context.Context
	cancel context.CancelCauseFunc
	reader sync.WaitGroup
}

// newPeer starts reading conn, which close closes. The peer also ends when ctx
// does.
func newPeer(ctx context.Context, conn net.Conn, name string) *peer {
	p := &peer{name: name, conn: conn, in: make(chan Message)}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	if tcp, ok := conn.(*net.TCPConn); ok {
		// A host that vanished without a word is noticed within some 10 s.
		// Failure to set this only makes it later.
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3})
	}
	p.reader.Go(p.read)
	return p
}

func (p *peer) read() {
	for {
		m, err := ReadMessage(p.conn)
		if err != nil {
			p.cancel(p.explain(err))
			return
		}
		select {
		case p.in <- m:
		case <-p.ctx.Done():
			return
		}
	}
}

// explain says what a failed read or write means for the user.
func (p *peer) explain(err error) error {
	switch {
	case errors.Is(err, errMalformed):
		return fmt.Errorf("the %s at %s sent nonsense: %w", p.name, addrString(p.conn.RemoteAddr()), err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &closedError{who: p.name, err: err}
	}
	return fmt.Errorf("the control connection to the %s broke: %w", p.name, err)
}

func (p *peer) send(m Message) error {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	if err := context.Cause(p.ctx); err != nil {
		return err
	}
	// An error would show in the write.
	_ = p.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := WriteMessage(p.conn, m); err != nil {
		err = p.explain(err)
		p.cancel(err)
		return context.Cause(p.ctx)
	}
	return nil
}

// recv returns the next message. It ends with ctx's cause or the connection's.
func (p *peer) recv(ctx context.Context) (Message, error) {
	select {
	case m := <-p.in:
		return m, nil
	case <-ctx.Done():
		return Message{}, context.Cause(ctx)
	case <-p.ctx.Done():
		return Message{}, context.Cause(p.ctx)
	}
}

// unexpected is the error about a message that has no place in the conversation.
func (p *peer) unexpected(m Message) error {
	err := fmt.Errorf("the %s sent %q out of turn", p.name, m.Type)
	p.cancel(err)
	return err
}

// close ends the connection and waits for the reader. Its own reason is not an
// error of the connection.
func (p *peer) close() error {
	p.cancel(net.ErrClosed)
	err := p.conn.Close()
	p.reader.Wait()
	return err
}

func addrString(a net.Addr) string {
	if a == nil || a.String() == "" || a.String() == "@" {
		return "the other end"
	}
	return a.String()
}

// closedError says that the other end is gone. It is io.EOF if it went between two
// messages.
type closedError struct {
	who string
	err error
}

func (e *closedError) Error() string {
	return "the " + e.who + " closed the control connection"
}

func (e *closedError) Unwrap() error { return e.err }
