package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"time"
)

const (
	// helloTimeout bounds how long a connection may say nothing at first.
	helloTimeout = 10 * time.Second
	// setupTimeout bounds the making of one data connection.
	setupTimeout = 20 * time.Second
	// runGrace is how much longer than the client the server waits for a run.
	runGrace = 5 * time.Second
)

// programName is in every hello: something else that answers on the port is not
// taken for one of us.
const programName = "rdmabench"

// Server is the passive side. One Server may serve any number of sessions, one
// after the other.
type Server struct {
	Transports  map[string]Transport
	Environment Environment
	// Log, if not nil, is told what the sessions do, a line at a time.
	Log func(format string, args ...any)
}

// session is one client's stay.
type session struct {
	*Server
	peer    *peer
	control netip.Addr
	conns   map[string]Conn
	params  map[string]Params
}

// Serve speaks with one client until it leaves or ctx ends, and closes conn. It
// returns nil if the client left in good order: with no data connection open.
func (s *Server) Serve(ctx context.Context, conn net.Conn) error {
	ss := &session{Server: s, peer: newPeer(ctx, conn, "client"), conns: map[string]Conn{}, params: map[string]Params{}}
	if a, ok := conn.LocalAddr().(*net.TCPAddr); ok {
		ss.control = a.AddrPort().Addr().Unmap()
	}
	err := ss.serve()
	left := len(ss.conns) == 0
	for name := range ss.conns {
		err = errors.Join(err, ss.drop(name))
	}
	ss.peer.close()
	if errors.Is(err, io.EOF) && left {
		return nil
	}
	return err
}

func (s *session) logf(format string, args ...any) {
	if s.Log != nil {
		s.Log(format, args...)
	}
}

func (s *session) serve() error {
	if err := s.hello(); err != nil {
		return err
	}
	for {
		m, err := s.peer.recv(s.peer.ctx)
		if err != nil {
			return err
		}
		switch m.Type {
		case "open":
			err = s.open(*m.Open)
		case "run":
			err = s.run(*m.Run)
		case "close":
			// Nothing can be done about an error here but to go on.
			if err := s.drop(m.Close.Transport); err != nil {
				s.logf("close %s: %v", m.Close.Transport, err)
			}
			err = s.peer.send(Message{Type: "closed", Closed: m.Close})
		default:
			err = s.peer.unexpected(m)
		}
		if err != nil {
			return err
		}
	}
}

// hello makes sure that both ends are rdmabench and speak one version.
func (s *session) hello() error {
	ctx, cancel := context.WithTimeoutCause(s.peer.ctx, helloTimeout, fmt.Errorf("the client said nothing for %v", helloTimeout))
	defer cancel()
	m, err := s.peer.recv(ctx)
	if err != nil {
		return err
	}
	if m.Hello == nil {
		return s.peer.unexpected(m)
	}
	// The answer is sent in any case, so that the client can say what is wrong.
	mine := &Hello{Program: programName, Protocol: ProtocolVersion, Environment: s.Environment}
	if err := s.peer.send(Message{Type: "hello", Hello: mine}); err != nil {
		return err
	}
	return checkHello(*m.Hello, "client")
}

func checkHello(h Hello, who string) error {
	switch {
	case h.Program != programName:
		return fmt.Errorf("the %s is %.40q, not rdmabench", who, h.Program)
	case h.Protocol != ProtocolVersion:
		return fmt.Errorf("the %s speaks version %d of the control protocol, this end version %d: use the same rdmabench at both ends",
			who, h.Protocol, ProtocolVersion)
	}
	return nil
}

// fail answers that something was not done; the session goes on.
func (s *session) fail(err error) error {
	if broken := context.Cause(s.peer.ctx); broken != nil {
		return broken
	}
	s.logf("%v", err)
	return s.peer.send(Message{Type: "failed", Failed: &Failed{Error: clip(err.Error())}})
}

// clip keeps an error's text well within a message.
func clip(s string) string {
	const most = 4 << 10
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// drop closes a data connection, if there is one.
func (s *session) drop(transport string) error {
	conn, ok := s.conns[transport]
	if !ok {
		return nil
	}
	delete(s.conns, transport)
	return conn.Close()
}

// run does the server's part of one Task.
func (s *session) run(r Run) error {
	t, what := r.Task, TransportTitle(r.Transport)
	conn, ok := s.conns[r.Transport]
	if !ok {
		return s.fail(fmt.Errorf("%.40q has no data connection", r.Transport))
	}
	if err := s.checkTask(r); err != nil {
		return s.fail(also(err, s.drop(r.Transport)))
	}
	s.logf("%s %s: %d iterations, depth %d", what, t, t.Iters, t.Depth)
	runtime.GC() // none during the run: it allocates nothing
	if err := conn.Prepare(t); err != nil {
		return s.fail(also(err, s.drop(r.Transport)))
	}
	meter := StartMeter()
	if err := s.peer.send(Message{Type: "ready", Ready: &Ready{ID: t.ID}}); err != nil {
		return err
	}
	report, err := s.passive(conn, t, meter)
	if err != nil {
		return err
	}
	if report.Error != "" {
		s.logf("%s %s: %s", what, t, report.Error)
		if err := s.drop(r.Transport); err != nil {
			s.logf("close %s: %v", what, err)
		}
	}
	return nil
}

// checkTask refuses a Task that does not fit the data connection.
func (s *session) checkTask(r Run) error {
	p := s.params[r.Transport]
	if err := r.Task.Validate(); err != nil {
		return err
	}
	return r.Task.fits(p)
}

// endedByClient is the server's report on a run that failed at the client: no
// reason of its own.
const endedByClient = "ended by the client"

// passive runs the Task, waits for the client's finish and sends the report. Its
// error is the session's; the run's own is in the report.
func (s *session) passive(conn Conn, t Task, meter Meter) (RunReport, error) {
	report := RunReport{ID: t.ID}
	limit := t.Limit + runGrace
	ctx, cancel := context.WithTimeoutCause(s.peer.ctx, limit, fmt.Errorf("not finished within %v", limit))
	defer cancel()
	m, err := s.peer.during(ctx, func(ctx context.Context) error {
		return conn.Passive(ctx, t)
	}, func(m Message) error {
		switch {
		case m.Finish == nil:
			return s.peer.unexpected(m)
		case m.Finish.Error != "":
			return errors.New(endedByClient)
		}
		return nil
	})
	if broken := context.Cause(s.peer.ctx); broken != nil {
		return report, broken
	}
	early := err != nil
	if early {
		report.Error = clip(err.Error())
		if err := s.peer.send(Message{Type: "report", Report: &report}); err != nil {
			return report, err
		}
	}
	if m == nil {
		got, err := s.peer.recv(ctx)
		if err != nil {
			return report, fmt.Errorf("waiting for the client to finish a run: %w", err)
		}
		m = &got
	}
	if m.Finish == nil || m.Finish.ID != t.ID {
		return report, s.peer.unexpected(*m)
	}
	if early {
		return report, nil
	}
	report.Usage = meter.Stop()
	if m.Finish.Error != "" {
		report.Error = endedByClient
	} else if report.Verified, err = conn.Check(t); err != nil {
		report.Error = clip(err.Error())
	}
	return report, s.peer.send(Message{Type: "report", Report: &report})
}
