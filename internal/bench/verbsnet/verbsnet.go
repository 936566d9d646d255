// Package verbsnet is the RDMA transport of the benchmark, for RoCE v2 and for
// iWARP: an RC queue pair, connected by rdmacm, driven through ibverbs.
package verbsnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/rdmacm"
)

// Transport makes RDMA connections of one kind.
type Transport struct {
	Name string // bench.TransportRoCE or bench.TransportIWARP
	// Address is that of the RNIC on which Listen waits. Not valid: one is
	// looked for.
	Address netip.Addr
}

var _ bench.Transport = Transport{}

// kind is what a connection must turn out to be.
func (t Transport) kind() rdmacm.TransportKind {
	if t.Name == bench.TransportIWARP {
		return rdmacm.TransportIWARP
	}
	return rdmacm.TransportRoCE
}

// config is the set-up of either end. Room for twice the depth leaves space for
// acknowledgements and for what has completed but was not yet looked at.
func config(p bench.Params) rdmacm.Config {
	room := 2*p.Depth + 16
	return rdmacm.Config{
		SendDepth: room, RecvDepth: room, SendSGE: 1, RecvSGE: 1, Inline: noteSize,
		// A receive is always posted before a message is sent to it, so that
		// a retry would only hide a mistake.
		RNRRetryCount: -1,
	}
}

type listener struct {
	*rdmacm.Listener
	transport Transport
	params    bench.Params
}

// Listen waits on the RNIC's address, on a port that the kernel chooses.
func (t Transport) Listen(ctx context.Context, p bench.Params, control netip.Addr) (bench.Listener, error) {
	addr := t.Address
	if !addr.IsValid() {
		var err error
		if addr, err = findAddress(t.Name, control); err != nil {
			return nil, err
		}
	}
	token := []byte(p.Token)
	lc := rdmacm.ListenConfig{
		Config:  config(p),
		Backlog: 4,
		OnRequest: func(r *rdmacm.Request) error {
			if !bytes.HasPrefix(r.PrivateData(), token) {
				return errors.New("not the client that this connection is for")
			}
			return nil
		},
	}
	ln, err := lc.Listen(ctx, netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		return nil, err
	}
	return &listener{Listener: ln, transport: t, params: p}, nil
}

func (l *listener) Address() string { return l.Addr().String() }

func (l *listener) Accept(ctx context.Context) (bench.Conn, error) {
	rc, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return l.transport.newConn(rc, l.params, true)
}

// Dial connects and shows the token.
func (t Transport) Dial(ctx context.Context, p bench.Params, address string) (bench.Conn, error) {
	d := rdmacm.Dialer{Config: config(p), PrivateData: []byte(p.Token)}
	rc, err := d.DialContext(ctx, address)
	if err != nil {
		return nil, err
	}
	return t.newConn(rc, p, false)
}

// newConn makes a benchmark connection of rc, which it closes if it cannot.
func (t Transport) newConn(rc *rdmacm.Conn, p bench.Params, server bool) (bench.Conn, error) {
	c := &Conn{rc: rc}
	if got := rc.Transport().Kind; got != t.kind() {
		rc.Close()
		return nil, fmt.Errorf("%s is on %s, which is %v, not %s", rc.LocalAddr().Addr(), rc.DeviceName(), got, bench.TransportTitle(t.Name))
	}
	if err := c.register(p, server); err != nil {
		rc.Close()
		return nil, err
	}
	return c, nil
}
