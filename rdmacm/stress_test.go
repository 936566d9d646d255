package rdmacm_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// threads is how many OS threads this process has.
func threads(t *testing.T) int {
	t.Helper()
	return status(t, "Threads")
}

// TestWaitersHoldNoThreads: 200 goroutines that wait for events, accepts and
// completions cost no threads worth the name (report 6).
func TestWaitersHoldNoThreads(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		const n = 100
		before := threads(t)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wait := func(fn func() error) {
			wg.Go(func() {
				if err := fn(); !errors.Is(err, context.Canceled) {
					t.Errorf("a waiter ended with %v", err)
				}
			})
		}
		for range n {
			p := newThin(t)
			wait(func() error { _, err := p.channel.GetEvent(ctx); return err })
		}
		l := listen(t, target, rdmacm.ListenConfig{})
		client, server := connect(t, l, rdmacm.Dialer{})
		for range n / 4 {
			wait(func() error { _, err := l.Accept(ctx); return err })
			wait(func() error { _, err := client.RecvCQ().Wait(ctx, make([]ibverbs.WC, 1)); return err })
			wait(func() error { _, err := server.RecvCQ().Wait(ctx, make([]ibverbs.WC, 1)); return err })
			wait(func() error { _, err := client.SendCQ().Wait(ctx, make([]ibverbs.WC, 1)); return err })
		}
		// Everything that could hold a thread has had its chance to take one.
		time.Sleep(100 * time.Millisecond)
		if after := threads(t); after > before+20 {
			t.Errorf("%d waiters made %d threads of %d", 2*n, after, before)
		}
		cancel()
		wg.Wait()
	})
}

// serverWith runs the C server, connects to it, and sends its process a signal.
func serverWith(t *testing.T, addr netip.Addr, sig syscall.Signal) *rdmacm.Conn {
	t.Helper()
	port := freePort(t, addr)
	server := startPeer(t, "rping", "-s", "-a", addr.String(), "-p", port)
	c, err := dialServer(verbstest.Context(t), rdmacm.Dialer{Config: prepared}, net.JoinHostPort(addr.String(), port))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCloseStoppedPeer: Close is bounded with a peer whose process is stopped, as
// a debugger would do it, and leaves nothing (report 19).
func TestCloseStoppedPeer(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		closesInTime(t, serverWith(t, target.Addr, syscall.SIGSTOP))
	})
}

// TestKilledPeer: a peer whose process dies shows as disconnected.
func TestKilledPeer(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		c := serverWith(t, target.Addr, syscall.SIGKILL)
		ended(t, c)
		if !errors.Is(c.Err(), rdmacm.ErrDisconnected) {
			t.Errorf("ended with %v, want ErrDisconnected", c.Err())
		}
		closesInTime(t, c)
	})
}

func closesInTime(t *testing.T, c *rdmacm.Conn) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-verbstest.Context(t).Done():
		t.Fatal("Close waits for the peer")
	}
}

// TestCloseDuringHandshake closes the listener in the middle of a handshake: the
// peer is told, and nothing is left.
func TestCloseDuringHandshake(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		for _, step := range []string{"OnRequest", "Prepare"} {
			reached, release := make(chan struct{}), make(chan struct{})
			pause := func() {
				close(reached)
				<-release
			}
			lc := rdmacm.ListenConfig{}
			if step == "OnRequest" {
				lc.OnRequest = func(*rdmacm.Request) error { pause(); return nil }
			} else {
				lc.Prepare = func(c *rdmacm.Conn) error { pause(); return prepare(c) }
			}
			l, err := lc.Listen(ctx, anyPort(target))
			if err != nil {
				t.Fatal(err)
			}
			dialed := make(chan error, 1)
			go func() {
				c, err := new(rdmacm.Dialer).DialContext(ctx, l.Addr().String())
				if err == nil {
					// The acceptance crossed the Close: then its end must be seen.
					ended(t, c)
					err = errors.Join(c.Err(), c.Close())
				}
				dialed <- err
			}()
			<-reached
			closed := make(chan error, 1)
			go func() { closed <- l.Close() }()
			if _, err := l.Accept(ctx); !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: Accept: %v, want net.ErrClosed", step, err)
			}
			close(release)
			if err := <-closed; err != nil {
				t.Errorf("%s: Close: %v", step, err)
			}
			if err := <-dialed; err == nil || ctx.Err() != nil {
				t.Errorf("%s: the peer was left with %v", step, err)
			}
		}
	})
}
