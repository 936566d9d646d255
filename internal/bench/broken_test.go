package bench_test

import (
	"context"
	"errors"
	"net/netip"

	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/internal/bench/tcpnet"
)

// broken embeds a transport's connections and spoils what a test wants spoilt.
type broken struct {
	tcpnet.Transport
	dialErr, listenErr error
	change             func(*brokenConn)
}

type brokenConn struct {
	*tcpnet.Conn
	prepareErr error
	activeErr  error
	passiveErr error
	// hang makes Active and Passive wait for the end of their context.
	hang bool
	// spoil changes the sink before it is checked.
	spoil func(sink []byte)
}

func (b broken) Listen(ctx context.Context, p bench.Params, a netip.Addr) (bench.Listener, error) {
	if b.listenErr != nil {
		return nil, b.listenErr
	}
	ln, err := b.Transport.Listen(ctx, p, a)
	return brokenListener{ln, b}, err
}

type brokenListener struct {
	bench.Listener
	broken
}

func (l brokenListener) Accept(ctx context.Context) (bench.Conn, error) {
	return l.wrap(l.Listener.Accept(ctx))
}

func (b broken) Dial(ctx context.Context, p bench.Params, address string) (bench.Conn, error) {
	if b.dialErr != nil {
		return nil, b.dialErr
	}
	return b.wrap(b.Transport.Dial(ctx, p, address))
}

func (b broken) wrap(c bench.Conn, err error) (bench.Conn, error) {
	if err != nil {
		return nil, err
	}
	bc := &brokenConn{Conn: c.(*tcpnet.Conn)}
	if b.change != nil {
		b.change(bc)
	}
	return bc, nil
}

func (c *brokenConn) Prepare(t bench.Task) error {
	return errors.Join(c.Conn.Prepare(t), c.prepareErr)
}

func (c *brokenConn) Active(ctx context.Context, t bench.Task, r *bench.Recorder) error {
	if c.activeErr != nil {
		return c.activeErr
	}
	if c.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.Conn.Active(ctx, t, r)
}

func (c *brokenConn) Passive(ctx context.Context, t bench.Task) error {
	if c.passiveErr != nil {
		return c.passiveErr
	}
	if c.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.Conn.Passive(ctx, t)
}

func (c *brokenConn) Check(t bench.Task) (bench.Verified, error) {
	if c.spoil != nil {
		c.spoil(c.Sink)
	}
	return c.Conn.Check(t)
}

func transport(b broken) map[string]bench.Transport {
	return map[string]bench.Transport{"tcp": b}
}
