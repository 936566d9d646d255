package rdmacm_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

func TestListenAddr(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		l := listen(t, target, rdmacm.ListenConfig{})
		if l.Addr().Addr() != target.Addr || l.Addr().Port() == 0 {
			t.Errorf("listening on %v, want a port of %v", l.Addr(), target.Addr)
		}
		if _, err := new(rdmacm.ListenConfig).Listen(ctx, l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("listening twice: %v, want EADDRINUSE", err)
		}
		for _, address := range []string{"", "x", "203.0.113.9:0", target.Addr.String() + ":99999"} {
			if l, err := new(rdmacm.ListenConfig).Listen(ctx, address); err == nil {
				l.Close()
				t.Errorf("listening on %q succeeded", address)
			}
		}
	})
}

// TestListenWildcard: an empty host takes IPv4 and IPv6 on one port. A wildcard
// of siw does not see its own host, so there only listening is tried.
func TestListenWildcard(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		l := listenOn(t, ":0", rdmacm.ListenConfig{})
		if l.Addr().Port() == 0 {
			t.Fatal("no port")
		}
		port := strconv.Itoa(int(l.Addr().Port()))
		for _, addr := range []netip.Addr{target.Addr, target.Addr6} {
			ctx := verbstest.Context(t)
			result := acceptOne(ctx, l)
			client, err := new(rdmacm.Dialer).DialContext(ctx, net.JoinHostPort(addr.String(), port))
			if err != nil {
				t.Fatal(err)
			}
			verbstest.Close(t, client)
			a := <-result
			if a.err != nil {
				t.Fatal(a.err)
			}
			verbstest.Close(t, a.conn)
			if a.conn.LocalAddr().Addr() != addr {
				t.Errorf("accepted on %v, want %v", a.conn.LocalAddr(), addr)
			}
		}
	}, verbstest.StateMachine)
	each(t, func(t *testing.T, target *verbstest.Target) {
		listenOn(t, ":0", rdmacm.ListenConfig{})
	})
}

func TestAcceptContext(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		result := acceptOne(ctx, l)
		cancel()
		if a := <-result; !errors.Is(a.err, context.Canceled) {
			t.Errorf("cancelled Accept: %v, want context.Canceled", a.err)
		}
		connect(t, l, rdmacm.Dialer{})
	})
}

// TestListenerClose: Close wakes Accept; connections that were accepted live
// on, and still see their disconnect (report 24); those that were not are
// closed.
func TestListenerClose(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		l := listen(t, target, rdmacm.ListenConfig{Config: prepared})
		client, server := connect(t, l, rdmacm.Dialer{Config: prepared})
		waiting, err := (&rdmacm.Dialer{Config: prepared}).DialContext(ctx, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		verbstest.Close(t, waiting)
		idle := listen(t, target, rdmacm.ListenConfig{})
		result := acceptOne(ctx, idle)
		for _, l := range []*rdmacm.Listener{l, idle} {
			if err := errors.Join(l.Close(), l.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Accept(ctx); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Accept after Close: %v, want net.ErrClosed", err)
			}
		}
		if a := <-result; !errors.Is(a.err, net.ErrClosed) {
			t.Errorf("Accept that Close woke: %v, want net.ErrClosed", a.err)
		}
		ended(t, waiting)
		mustEcho(t, client, server)
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		ended(t, server)
		if !errors.Is(server.Err(), rdmacm.ErrDisconnected) {
			t.Errorf("the accepted connection ended with %v, want ErrDisconnected", server.Err())
		}
	})
}

// TestListenerCloseWhileDialing: whatever the moment, every caller gets an
// error or a connection, and nothing is left (report 18). RDMACM_TEST_CLOSES says
// how often; ci/figures-cm has it a thousand times.
func TestListenerCloseWhileDialing(t *testing.T) {
	rounds := 200
	if v := os.Getenv("RDMACM_TEST_CLOSES"); v != "" {
		var err error
		if rounds, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	const lanes = 4
	each(t, func(t *testing.T, target *verbstest.Target) {
		cfg := onOneCQ(verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 64))
		var wg sync.WaitGroup
		for lane := range lanes {
			wg.Go(func() {
				for round := lane; round < rounds; round += lanes {
					closeWhileDialing(t, target, cfg, round)
				}
			})
		}
		wg.Wait()
	})
}

func closeWhileDialing(t *testing.T, target *verbstest.Target, cfg rdmacm.Config, round int) {
	const clients = 3
	ctx, cancel := context.WithTimeout(t.Context(), verbstest.Limit)
	defer cancel()
	l, err := (&rdmacm.ListenConfig{Config: cfg}).Listen(ctx, anyPort(target))
	if err != nil {
		t.Error(err)
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept(ctx)
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("Accept: %v", err)
				}
				return
			}
			wg.Go(func() { closeConn(t, c) })
		}
	})
	dialed := make(chan struct{}, clients)
	for range clients {
		wg.Go(func() {
			defer func() { dialed <- struct{}{} }()
			c, err := (&rdmacm.Dialer{Config: cfg}).DialContext(ctx, l.Addr().String())
			switch {
			case err == nil:
				closeConn(t, c)
			case ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded):
				t.Errorf("a dial was left alone: %v", err)
			}
		})
	}
	// Close at once, after one dial, or after some.
	for range round % clients {
		<-dialed
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func closeConn(t *testing.T, c *rdmacm.Conn) {
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestStalledPeer: a peer that never completes its connection, and a hook that
// never returns, delay nobody else's Accept (report 25).
func TestStalledPeer(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		release := make(chan struct{})
		entered := make(chan struct{})
		var later atomic.Bool
		l := listen(t, target, rdmacm.ListenConfig{OnRequest: func(*rdmacm.Request) error {
			if !later.Swap(true) {
				close(entered)
				<-release
			}
			return nil
		}})
		defer close(release)
		p := newThin(t)
		p.resolve(t, l.Addr())
		p.createQP(t)
		if err := p.id.Connect(rdmacm.ConnParam{RetryCount: 7}); err != nil {
			t.Fatal(err)
		}
		<-entered
		for range 3 {
			connect(t, l, rdmacm.Dialer{})
		}
		// The peer gives up: on iWARP that waits for the listener's answer.
		go p.id.Close()
	})
}

// TestHandshakeTimeout: a peer that does not complete its connection is given
// up, and OnError is told.
func TestHandshakeTimeout(t *testing.T) {
	// iWARP has no half-way: its acceptance completes the connection.
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		failures := make(chan error, 1)
		l := listen(t, target, rdmacm.ListenConfig{
			HandshakeTimeout: 100 * time.Millisecond,
			OnError:          func(_ netip.AddrPort, err error) { failures <- err },
		})
		p := newThin(t)
		p.resolve(t, l.Addr())
		// Without a QP of CreateQP's the ID never establishes by itself.
		if err := p.id.Connect(rdmacm.ConnParam{QPN: 17, RetryCount: 7}); err != nil {
			t.Fatal(err)
		}
		p.await(t, rdmacm.EventConnectResponse)
		if err := <-failures; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v, want os.ErrDeadlineExceeded", err)
		}
	}, verbstest.StateMachine)
}

// TestBacklog: beyond the backlog requests are rejected at once, and room comes
// back with Accept.
func TestBacklog(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		failures := make(chan error, 1)
		l := listen(t, target, rdmacm.ListenConfig{Backlog: 1, OnError: func(_ netip.AddrPort, err error) { failures <- err }})
		first, err := new(rdmacm.Dialer).DialContext(ctx, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		verbstest.Close(t, first)
		if err := dialFails(t, rdmacm.Dialer{}, l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dialing beyond the backlog: %v, want ECONNREFUSED", err)
		}
		if err := <-failures; !errors.Is(err, syscall.ENOBUFS) {
			t.Errorf("OnError was told %v, want ENOBUFS", err)
		}
		c, err := l.Accept(ctx)
		if err != nil {
			t.Fatal(err)
		}
		verbstest.Close(t, c)
		connect(t, l, rdmacm.Dialer{})
	})
}

// TestRequestConfig: OnRequest can change how one connection is set up.
func TestRequestConfig(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		l := listen(t, target, rdmacm.ListenConfig{OnRequest: func(r *rdmacm.Request) error {
			if r.DeviceName() != target.Dev.Name() || r.LocalAddr().Addr() != target.Addr || r.RemoteAddr().Addr() != target.Addr {
				return errMismatch
			}
			r.Config.PD = pd
			r.Config.ResponderResources = 1
			return nil
		}})
		client, server := connect(t, l, rdmacm.Dialer{Config: rdmacm.Config{RetryCount: 3, SendCQSize: 1000}})
		if n := client.SendCQ().CQE(); n < 1000 {
			t.Errorf("a CQ for %d completions, want 1000", n)
		}
		if n := server.Negotiated(); target.Dev.Info().Transport == ibverbs.TransportIB && n.RetryCount != 3 {
			t.Errorf("the accepting side retries %d times, want the 3 of the dialing side", n.RetryCount)
		}
		if server.PD() != pd {
			t.Error("the connection is not on the PD that OnRequest chose")
		}
		if server.Negotiated().ResponderResources != 1 {
			t.Errorf("the accepting side grants %+v, want ResponderResources 1", server.Negotiated())
		}
		// siw does not say what its peer granted.
		if n := client.Negotiated(); target.Dev.Info().Transport == ibverbs.TransportIB && n.InitiatorDepth != 1 {
			t.Errorf("the dialing side got %+v, want InitiatorDepth 1", n)
		}
	})
}
