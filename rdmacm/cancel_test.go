package rdmacm_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// TestDialCancelAnywhere ends dials at ever later moments, by cancelling and by
// time-outs, from before the first step to after the last: the dial gives the
// context's error or a connection, and nothing is left.
func TestDialCancelAnywhere(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		const rounds = 90
		l := listen(t, target, rdmacm.ListenConfig{Config: crowdConfig})
		go drain(t.Context(), l)
		d := rdmacm.Dialer{Config: crowdConfig}
		start := time.Now()
		c, err := d.DialContext(verbstest.Context(t), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		whole := time.Since(start)
		closeConn(t, c)
		connected := 0
		for i := range rounds {
			after := whole * time.Duration(i) * 3 / (2 * rounds)
			var want error
			switch i % 3 {
			case 0:
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(after, cancel)
				c, err = d.DialContext(ctx, l.Addr().String())
				want = context.Canceled
			case 1:
				ctx, cancel := context.WithTimeout(t.Context(), after)
				c, err = d.DialContext(ctx, l.Addr().String())
				cancel()
				want = context.DeadlineExceeded
			case 2:
				own := d
				own.Timeout = after + 1 // 0 would be the default
				c, err = own.DialContext(t.Context(), l.Addr().String())
				want = os.ErrDeadlineExceeded
			}
			if err == nil {
				connected++
				closeConn(t, c)
			} else if !errors.Is(err, want) {
				t.Errorf("ended after %v of %v: %v, want %v", after, whole, err, want)
			}
		}
		t.Logf("a dial takes %v; %d of %d came through", whole, connected, rounds)
		rdmacm.WaitBackground()
	})
}

// drain takes what l accepts, and closes each connection when its peer goes.
func drain(ctx context.Context, l *rdmacm.Listener) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := l.Accept(ctx)
		if err != nil {
			return
		}
		wg.Go(func() {
			<-c.Done()
			c.Close()
		})
	}
}

// TestAcceptCancelAnywhere closes listeners at ever later moments of a
// handshake: the dialing side gets an error or a connection that ends, Accept
// net.ErrClosed, and nothing is left.
func TestAcceptCancelAnywhere(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		const rounds = 40
		ctx := verbstest.Context(t)
		var whole time.Duration
		for i := range rounds {
			lc := rdmacm.ListenConfig{Config: crowdConfig, HandshakeTimeout: verbstest.Limit}
			if i%2 == 1 {
				// Its own bound does it instead.
				lc.HandshakeTimeout = max(1, whole*time.Duration(i)/rounds)
			}
			l, err := lc.Listen(ctx, anyPort(target))
			if err != nil {
				t.Fatal(err)
			}
			result := acceptOne(ctx, l)
			start := time.Now()
			if i > 0 && i%2 == 0 {
				time.AfterFunc(whole*time.Duration(i)/rounds, func() { l.Close() })
			}
			c, err := (&rdmacm.Dialer{Config: crowdConfig, Timeout: verbstest.Limit}).DialContext(ctx, l.Addr().String())
			if i == 0 {
				whole = time.Since(start)
			}
			if closeErr := l.Close(); closeErr != nil {
				t.Error(closeErr)
			}
			a := <-result
			switch {
			case a.err == nil:
				closeConn(t, a.conn)
			case !errors.Is(a.err, net.ErrClosed):
				t.Errorf("Accept: %v, want net.ErrClosed", a.err)
			}
			if err == nil {
				ended(t, c)
				closeConn(t, c)
			}
			if ctx.Err() != nil {
				t.Fatalf("round %d: the dial waits", i)
			}
		}
		rdmacm.WaitBackground()
	})
}
