package bench_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/internal/bench/tcpnet"
)

// bound is far more than anything here takes: a test that reaches it hangs.
const bound = time.Minute

// session is a client and a server in one process.
type session struct {
	client *bench.Client
	ctx    context.Context
	// stop ends the server; served has what Serve returned.
	stop   context.CancelCauseFunc
	served chan error
}

func tcpOnly() map[string]bench.Transport {
	return map[string]bench.Transport{"tcp": tcpnet.Transport{}}
}

func newSession(t *testing.T, client, server map[string]bench.Transport) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	a, z := controlConn(t)
	s := &session{ctx: ctx, served: make(chan error, 1)}
	var serverCtx context.Context
	serverCtx, s.stop = context.WithCancelCause(ctx)
	srv := bench.Server{Transports: server, Environment: bench.Environment{Host: "there"}}
	go func() { s.served <- srv.Serve(serverCtx, z) }()
	var err error
	if s.client, err = bench.Connect(ctx, a, client, bench.Environment{Host: "here"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.client.Close() })
	return s
}

// controlConn is a TCP connection to ourselves.
func controlConn(t *testing.T) (client, server net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// end closes the client and returns how the server saw it.
func (s *session) end(t *testing.T) error {
	t.Helper()
	if err := s.client.Close(); err != nil {
		t.Errorf("close the client: %v", err)
	}
	select {
	case err := <-s.served:
		return err
	case <-time.After(bound):
		t.Fatal("the server did not end")
		return nil
	}
}

func params(region int) bench.Params { return bench.Params{Depth: 8, Region: region} }

func task(op bench.Op, mode bench.Mode, size, iters int) bench.Task {
	t := bench.Task{Op: op, Mode: mode, Kind: bench.KindLatency, Size: size, Iters: iters, Depth: 1, Seed: 7, Limit: bound}
	if size > bench.LatencyMaxSize {
		t.Kind, t.Depth = bench.KindThroughput, 4
	}
	return t
}

// TestEveryPattern runs each operation in each mode over TCP, with sizes around the
// edges of the pattern's words, and with more messages than there are slots.
func TestEveryPattern(t *testing.T) {
	s := newSession(t, tcpOnly(), tcpOnly())
	link, err := s.client.Open(s.ctx, "tcp", params(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []bench.Op{bench.OpSend, bench.OpWrite, bench.OpRead} {
		for _, mode := range []bench.Mode{bench.ModePoll, bench.ModeEvent} {
			for _, c := range []struct{ size, iters int }{{1, 20}, {7, 20}, {64, 100}, {4096, 300}, {17 << 10, 10}, {100_000, 30}} {
				run := task(op, mode, c.size, c.iters)
				out, err := link.Run(s.ctx, run)
				if err != nil {
					t.Fatalf("%v: %v", run, err)
				}
				checkOutcome(t, run, out)
			}
		}
	}
	if err := link.Close(); err != nil {
		t.Error(err)
	}
	if err := s.end(t); err != nil {
		t.Errorf("the server: %v", err)
	}
}

func checkOutcome(t *testing.T, run bench.Task, out *bench.Outcome) {
	t.Helper()
	messages := int64(run.Slots(1 << 20))
	if run.Kind == bench.KindLatency {
		l, err := out.Recorder.LatencySummary()
		if err != nil || l.Samples != int64(run.Iters) || l.MinUS <= 0 || l.MinUS > l.P50US || l.P50US > l.P999US || l.P999US > l.MaxUS {
			t.Errorf("%v: %+v, %v", run, l, err)
		}
		if run.Op != bench.OpRead {
			messages *= 2
		}
	} else if b, err := out.Recorder.ThroughputSummary(run.Size); err != nil || b.MiBPerSecond <= 0 {
		t.Errorf("%v: %+v, %v", run, b, err)
	}
	if want := (bench.Verified{Messages: messages, Bytes: messages * int64(run.Size)}); out.Verified != want {
		t.Errorf("%v: verified %+v, want %+v", run, out.Verified, want)
	}
}

// TestFailuresStayLocal: whatever fails at one end is told at the client with its
// reason, and the session goes on: the next connection works.
func TestFailuresStayLocal(t *testing.T) {
	boom := errors.New("boom")
	flip := func(sink []byte) { sink[4100] ^= 1 }
	for _, tt := range []struct {
		name   string
		client broken
		server broken
		want   string
	}{
		{name: "listen", server: broken{listenErr: boom}, want: "server: boom"},
		{name: "dial", client: broken{dialErr: boom}, want: "boom"},
		{name: "prepare at the client", client: broken{change: func(c *brokenConn) { c.prepareErr = boom }}, want: "boom"},
		{name: "prepare at the server", server: broken{change: func(c *brokenConn) { c.prepareErr = boom }}, want: "server: boom"},
		{name: "active", client: broken{change: func(c *brokenConn) { c.activeErr = boom }}, want: "boom"},
		{name: "passive", server: broken{change: func(c *brokenConn) { c.passiveErr = boom }}, want: "server: boom"},
		{
			name: "passive while active hangs", want: "server: boom",
			client: broken{change: func(c *brokenConn) { c.hang = true }},
			server: broken{change: func(c *brokenConn) { c.passiveErr = boom }},
		},
		{
			name: "active while passive hangs", want: "boom",
			client: broken{change: func(c *brokenConn) { c.activeErr = boom }},
			server: broken{change: func(c *brokenConn) { c.hang = true }},
		},
		{name: "corrupt at the client", client: broken{change: func(c *brokenConn) { c.spoil = flip }}, want: "wrong data: message 1 of 4096 bytes"},
		{name: "corrupt at the server", server: broken{change: func(c *brokenConn) { c.spoil = flip }}, want: "server: wrong data: message 1 of 4096 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, server := transport(tt.client), transport(tt.server)
			client["good"], server["good"] = tcpnet.Transport{}, tcpnet.Transport{}
			s := newSession(t, client, server)
			err := openAndRun(s, "tcp")
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if err := openAndRun(s, "good"); err != nil {
				t.Errorf("and after it: %v", err)
			}
			if err := s.end(t); err == nil {
				t.Error("the server took it for good that the client left with a connection open")
			}
		})
	}
}

// openAndRun leaves the connection open where all went well.
func openAndRun(s *session, name string) error {
	link, err := s.client.Open(s.ctx, name, params(1<<20))
	if err != nil {
		return err
	}
	_, err = link.Run(s.ctx, task(bench.OpSend, bench.ModeEvent, 4096, 10))
	return err
}

// TestServerDies: the client ends, soon and with the reason, also in the middle of a
// run that by itself would last.
func TestServerDies(t *testing.T) {
	for _, mode := range []bench.Mode{bench.ModePoll, bench.ModeEvent} {
		t.Run(string(mode), func(t *testing.T) {
			running := make(chan struct{})
			s := newSession(t, tcpOnly(), transport(broken{change: func(c *brokenConn) { c.hang = true; close(running) }}))
			go func() {
				<-running
				s.stop(errors.New("killed"))
			}()
			link, err := s.client.Open(s.ctx, "tcp", params(1<<20))
			if err == nil {
				_, err = link.Run(s.ctx, task(bench.OpSend, mode, 64, 1000))
			}
			if err == nil || !strings.Contains(err.Error(), "the server closed the control connection") {
				t.Errorf("the client: %v", err)
			}
			if err := <-s.served; err == nil || err.Error() != "killed" {
				t.Errorf("the server: %v", err)
			}
			if s.client.Err() == nil {
				t.Error("the client does not know that the session is over")
			}
		})
	}
}

// TestClientDies: the server ends in the middle of a run.
func TestClientDies(t *testing.T) {
	for _, mode := range []bench.Mode{bench.ModePoll, bench.ModeEvent} {
		t.Run(string(mode), func(t *testing.T) {
			s := newSession(t, transport(broken{change: func(c *brokenConn) { c.hang = true }}), tcpOnly())
			link, err := s.client.Open(s.ctx, "tcp", params(1<<20))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(s.ctx)
			ended := make(chan error, 1)
			go func() {
				_, err := link.Run(ctx, task(bench.OpRead, mode, 64, 1000))
				ended <- err
			}()
			s.client.Close()
			if err := <-ended; err == nil {
				t.Error("the run succeeded")
			}
			cancel(nil)
			if err := <-s.served; err == nil || !strings.Contains(err.Error(), "control connection") {
				t.Errorf("the server: %v", err)
			}
		})
	}
}

// TestRunLimit: a run that does not come to its end fails at its time limit. The
// session goes on.
func TestRunLimit(t *testing.T) {
	s := newSession(t, tcpOnly(), transport(broken{change: func(c *brokenConn) { c.hang = true }}))
	run := task(bench.OpSend, bench.ModePoll, 64, 1000)
	run.Limit = 50 * time.Millisecond
	for range 2 {
		link, err := s.client.Open(s.ctx, "tcp", params(1<<20))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := link.Run(s.ctx, run); err == nil || err.Error() != "not finished within 50ms" {
			t.Error(err)
		}
	}
}
