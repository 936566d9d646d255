package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"time"
)

// RemoteError is what the server said about something that failed at its end.
type RemoteError struct{ Text string }

func (e *RemoteError) Error() string { return "server: " + e.Text }

// Client is the active side. It is used by one goroutine.
type Client struct {
	peer       *peer
	transports map[string]Transport
	server     Environment
	lastID     atomic.Uint64
}

// Connect greets the server at the other end of conn, which Close closes, as does
// the end of ctx.
func Connect(ctx context.Context, conn net.Conn, transports map[string]Transport, env Environment) (*Client, error) {
	c := &Client{peer: newPeer(ctx, conn, "server"), transports: transports}
	if err := c.hello(env); err != nil {
		c.peer.close()
		return nil, err
	}
	return c, nil
}

func (c *Client) hello(env Environment) error {
	mine := &Hello{Program: programName, Protocol: ProtocolVersion, Environment: env}
	if err := c.peer.send(Message{Type: "hello", Hello: mine}); err != nil {
		return err
	}
	m, err := c.expect(c.peer.ctx, helloTimeout, "hello")
	if err != nil {
		return err
	}
	c.server = m.Hello.Environment
	return checkHello(*m.Hello, "server")
}

// Server is the other end's environment.
func (c *Client) Server() Environment { return c.server }

// Err says why the control connection has ended, nil while it has not.
func (c *Client) Err() error { return context.Cause(c.peer.ctx) }

// Close ends the session. Links must have been closed before.
func (c *Client) Close() error { return c.peer.close() }

// expect receives the answer of the given type. A failed message in its place
// is a *RemoteError.
func (c *Client) expect(ctx context.Context, within time.Duration, kind string) (Message, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer from the server within %v", within))
	defer cancel()
	m, err := c.peer.recv(ctx)
	switch {
	case err != nil:
		c.peer.cancel(err) // the answer may still come: the conversation is lost
		return m, err
	case m.Type == "failed":
		return m, &RemoteError{m.Failed.Error}
	case m.Type != kind:
		return m, c.peer.unexpected(m)
	}
	return m, nil
}

// Link is an open data connection.
type Link struct {
	client *Client
	name   string
	conn   Conn
	params Params

	Local, Remote ConnInfo
}

// Open makes a data connection over the named transport.
func (c *Client) Open(ctx context.Context, name string, p Params) (*Link, error) {
	transport, ok := c.transports[name]
	if !ok {
		return nil, fmt.Errorf("unknown transport %q", name)
	}
	token := make([]byte, 16)
	rand.Read(token) // never fails
	p.Token = hex.EncodeToString(token)
	if err := c.peer.send(Message{Type: "open", Open: &Open{Transport: name, Params: p}}); err != nil {
		return nil, err
	}
	m, err := c.expect(ctx, setupTimeout, "listening")
	if err != nil {
		return nil, err
	}
	dialCtx, cancel := context.WithTimeoutCause(ctx, setupTimeout, fmt.Errorf("no connection within %v", setupTimeout))
	defer cancel()
	conn, err := transport.Dial(dialCtx, p, m.Listening.Address)
	if err != nil {
		return nil, also(err, c.closeRemote(name))
	}
	l := &Link{client: c, name: name, conn: conn, params: p, Local: conn.Info()}
	if err := l.attach(ctx); err != nil {
		conn.Close()
		// The server has closed its end if it was the one that failed.
		if remote := (*RemoteError)(nil); !errors.As(err, &remote) {
			err = also(err, c.closeRemote(name))
		}
		return nil, err
	}
	return l, nil
}

// attach exchanges what each end must know of the other's memory.
func (l *Link) attach(ctx context.Context) error {
	mine := &Attach{Transport: l.name, Info: l.Local, Memory: l.conn.Memory()}
	if err := l.client.peer.send(Message{Type: "attach", Attach: mine}); err != nil {
		return err
	}
	m, err := l.client.expect(ctx, setupTimeout, "attach")
	if err != nil {
		return err
	}
	if m.Attach.Transport != l.name {
		return l.client.peer.unexpected(m)
	}
	l.Remote = m.Attach.Info
	return l.conn.Attach(m.Attach.Memory)
}

// closeRemote has the server close its end. A failed message on the way belongs
// to what is being closed.
func (c *Client) closeRemote(name string) error {
	if c.Err() != nil {
		return nil // it does so by itself
	}
	if err := c.peer.send(Message{Type: "close", Close: &Close{Transport: name}}); err != nil {
		return err
	}
	for {
		m, err := c.expect(c.peer.ctx, setupTimeout, "closed")
		if remote := (*RemoteError)(nil); errors.As(err, &remote) {
			continue
		}
		if err == nil && m.Closed.Transport != name {
			return c.peer.unexpected(m)
		}
		return err
	}
}

// Close closes both ends.
func (l *Link) Close() error {
	return also(l.conn.Close(), l.client.closeRemote(l.name))
}

// Outcome is what one run gave.
type Outcome struct {
	Recorder       *Recorder
	Client, Server Usage
	Verified       Verified // at both ends
}

// Run does one Task. After an error both ends have closed the data connection,
// and the Link is of no more use.
func (l *Link) Run(ctx context.Context, t Task) (*Outcome, error) {
	t.ID = l.client.lastID.Add(1)
	if err := cmp.Or(t.Validate(), t.fits(l.params)); err != nil {
		return nil, also(err, l.Close())
	}
	out := &Outcome{Recorder: NewRecorder()}
	runtime.GC() // none during the run: it allocates nothing
	if err := l.start(ctx, t); err != nil {
		return nil, also(err, l.conn.Close())
	}
	if err := l.active(ctx, t, out); err != nil {
		return nil, also(err, l.conn.Close())
	}
	return out, nil
}

// start prepares both ends, this one first: the server may send as soon as it is
// ready.
func (l *Link) start(ctx context.Context, t Task) error {
	if err := l.conn.Prepare(t); err != nil {
		return also(err, l.client.closeRemote(l.name))
	}
	if err := l.client.peer.send(Message{Type: "run", Run: &Run{Transport: l.name, Task: t}}); err != nil {
		return err
	}
	m, err := l.client.expect(ctx, setupTimeout, "ready")
	if err == nil && m.Ready.ID != t.ID {
		err = l.client.peer.unexpected(m)
	}
	return err
}

// active runs the Task, tells the server that it is over, and takes its report.
func (l *Link) active(ctx context.Context, t Task, out *Outcome) error {
	runCtx, cancel := context.WithTimeoutCause(ctx, t.Limit, fmt.Errorf("not finished within %v", t.Limit))
	defer cancel()
	meter := StartMeter()
	early, err := l.client.peer.during(runCtx, func(ctx context.Context) error {
		return l.conn.Active(ctx, t, out.Recorder)
	}, func(m Message) error {
		if m.Report != nil && m.Report.Error != "" {
			return &RemoteError{m.Report.Error}
		}
		return l.client.peer.unexpected(m)
	})
	out.Client = meter.Stop()
	if broken := l.client.Err(); broken != nil {
		return broken
	}
	finish := &Finish{ID: t.ID}
	if err != nil {
		finish.Error = clip(err.Error())
	}
	if sendErr := l.client.peer.send(Message{Type: "finish", Finish: finish}); sendErr != nil {
		return sendErr
	}
	report, reportErr := l.report(t, early)
	if broken := l.client.Err(); broken != nil {
		return broken // what the data connection saw only follows from it
	}
	if err != nil {
		if remote := (*RemoteError)(nil); errors.As(reportErr, &remote) && !errors.As(err, new(*RemoteError)) {
			return fmt.Errorf("%w (%w)", err, reportErr)
		}
		return err
	}
	if reportErr != nil {
		return reportErr
	}
	mine, err := l.conn.Check(t)
	out.Server, out.Verified = report.Usage, mine.Add(report.Verified)
	if err != nil {
		return also(err, l.client.closeRemote(l.name))
	}
	return nil
}

// report returns the server's report, and its error if it had one of its own.
func (l *Link) report(t Task, early *Message) (*RunReport, error) {
	if early == nil {
		m, err := l.client.expect(l.client.peer.ctx, setupTimeout, "report")
		if err != nil {
			return nil, err
		}
		early = &m
	}
	r := early.Report
	switch {
	case r == nil || r.ID != t.ID:
		return nil, l.client.peer.unexpected(*early)
	case r.Error != "" && r.Error != endedByClient:
		return r, &RemoteError{r.Error}
	}
	return r, nil
}
