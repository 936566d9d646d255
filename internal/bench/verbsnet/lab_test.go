package verbsnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// kindOf is the bench transport that a device is for.
func kindOf(target *verbstest.Target) string {
	if target.Dev.Info().Transport == ibverbs.TransportIWARP {
		return bench.TransportIWARP
	}
	return bench.TransportRoCE
}

// session is a client and a server in this process.
type session struct {
	client *bench.Client
	served chan error
	stop   context.CancelCauseFunc
}

func newSession(t *testing.T, ctx context.Context, transports map[string]bench.Transport) *session {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	z, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := &session{served: make(chan error, 1)}
	serverCtx, stop := context.WithCancelCause(ctx)
	s.stop = stop
	go func() { s.served <- (&bench.Server{Transports: transports}).Serve(serverCtx, z) }()
	if s.client, err = bench.Connect(ctx, a, transports, bench.Environment{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// end closes the client and waits for the server.
func (s *session) end() error {
	s.client.Close()
	return <-s.served
}

func run(op bench.Op, mode bench.Mode, size, iters int) bench.Task {
	t := bench.Task{Op: op, Mode: mode, Kind: bench.KindLatency, Size: size, Iters: iters, Depth: 1, Seed: 7, Limit: verbstest.Limit}
	if size > bench.LatencyMaxSize {
		t.Kind, t.Depth = bench.KindThroughput, 8
	}
	return t
}

// TestEveryPattern runs each operation in each mode, with sizes around the edges of
// words and packets, and with more messages than there are slots. Every message
// that is left in a sink is compared.
func TestEveryPattern(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		name := kindOf(target)
		s := newSession(t, ctx, map[string]bench.Transport{name: Transport{Name: name, Address: target.Addr}})
		const region = 1 << 20
		link, err := s.client.Open(ctx, name, bench.Params{Depth: 8, Region: region})
		if err != nil {
			t.Fatal(err)
		}
		if link.Local.Device != target.Dev.Name() || link.Remote.Device != target.Dev.Name() || link.Local.ReadDepth < 1 || link.Local.MTU < 256 {
			t.Errorf("connection %+v, %+v", link.Local, link.Remote)
		}
		for _, op := range []bench.Op{bench.OpSend, bench.OpWrite, bench.OpRead} {
			for _, mode := range []bench.Mode{bench.ModePoll, bench.ModeEvent} {
				for _, c := range []struct{ size, iters int }{{1, 10}, {7, 10}, {64, 30}, {4096, 270}, {4097, 10}, {17 << 10, 70}, {60_001, 40}} {
					task := run(op, mode, c.size, c.iters)
					out, err := link.Run(ctx, task)
					if err != nil {
						t.Fatalf("%v: %v", task, err)
					}
					want := int64(task.Slots(region))
					if task.Kind == bench.KindLatency && op != bench.OpRead {
						want *= 2
					}
					if out.Verified.Messages != want || out.Verified.Bytes != want*int64(c.size) {
						t.Errorf("%v: verified %+v, want %d messages", task, out.Verified, want)
					}
				}
			}
		}
		if err := link.Close(); err != nil {
			t.Error(err)
		}
		if err := s.end(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
}

// TestPollingAllocatesNothing: neither end's garbage is measured with the network.
func TestPollingAllocatesNothing(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		name := kindOf(target)
		s := newSession(t, ctx, map[string]bench.Transport{name: Transport{Name: name, Address: target.Addr}})
		link, err := s.client.Open(ctx, name, bench.Params{Depth: 8, Region: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []bench.Op{bench.OpSend, bench.OpWrite, bench.OpRead} {
			const iters = 2000
			task := run(op, bench.ModePoll, 64, iters)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := link.Run(ctx, task); err != nil {
				t.Fatalf("%v: %v", task, err)
			}
			runtime.ReadMemStats(&after)
			// Starting and ending a run allocates some hundred objects.
			if n := after.Mallocs - before.Mallocs; n > iters/2 {
				t.Errorf("%v: %d allocations in %d messages", task, n, iters)
			}
		}
		if err := link.Close(); err != nil {
			t.Error(err)
		}
		s.end()
	})
}

// killing tells when the client begins a run.
type killing struct {
	Transport
	started chan struct{}
}

type killingConn struct {
	bench.Conn
	started chan struct{}
}

func (k killing) Dial(ctx context.Context, p bench.Params, address string) (bench.Conn, error) {
	conn, err := k.Transport.Dial(ctx, p, address)
	return killingConn{conn, k.started}, err
}

func (k killingConn) Active(ctx context.Context, t bench.Task, r *bench.Recorder) error {
	close(k.started)
	return k.Conn.Active(ctx, t, r)
}

// TestServerDies in the middle of a run: the client ends with the reason.
func TestServerDies(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for _, op := range []bench.Op{bench.OpSend, bench.OpWrite, bench.OpRead} {
			for _, mode := range []bench.Mode{bench.ModePoll, bench.ModeEvent} {
				ctx := verbstest.Context(t)
				name := kindOf(target)
				started := make(chan struct{})
				transport := killing{Transport{Name: name, Address: target.Addr}, started}
				s := newSession(t, ctx, map[string]bench.Transport{name: transport})
				go func() {
					<-started
					s.stop(errors.New("killed"))
				}()
				link, err := s.client.Open(ctx, name, bench.Params{Depth: 8, Region: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				_, err = link.Run(ctx, run(op, mode, 64, bench.MaxIters))
				if err == nil || !strings.Contains(err.Error(), "the server closed the control connection") {
					t.Errorf("%s %s: the client: %v", op, mode, err)
				}
				if err := s.end(); err == nil || !strings.HasSuffix(err.Error(), "killed") {
					t.Errorf("%s %s: the server: %v", op, mode, err)
				}
			}
		}
	})
}

// TestWrongKind: an address of a device of the other kind is refused, with both names.
func TestWrongKind(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		other := bench.TransportIWARP
		if kindOf(target) == other {
			other = bench.TransportRoCE
		}
		s := newSession(t, ctx, map[string]bench.Transport{other: Transport{Name: other, Address: target.Addr}})
		_, err := s.client.Open(ctx, other, bench.Params{Depth: 1, Region: 64})
		if err == nil || !strings.Contains(err.Error(), "not "+bench.TransportTitle(other)) {
			t.Error(err)
		}
		if err := s.end(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
}

// TestToken: a stranger who dials is rejected, and the client that was meant gets in.
func TestToken(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		transport := Transport{Name: kindOf(target), Address: target.Addr}
		p := bench.Params{Depth: 1, Region: 64, Token: strings.Repeat("a", 32)}
		ln, err := transport.Listen(ctx, p, netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		stranger := p
		stranger.Token = strings.Repeat("b", 32)
		if conn, err := transport.Dial(ctx, stranger, ln.Address()); err == nil {
			conn.Close()
			t.Error("the stranger was let in")
		}
		accepted := make(chan error, 1)
		go func() {
			conn, err := ln.Accept(ctx)
			if err == nil {
				err = conn.Close()
			}
			accepted <- err
		}()
		conn, err := transport.Dial(ctx, p, ln.Address())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-accepted, conn.Close(), ln.Close()); err != nil {
			t.Error(err)
		}
	})
}
