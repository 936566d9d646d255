// Package tcpnet is the TCP transport of the benchmark: each operation's pattern of
// messages, with Go's net package.
//
//	SEND   a message, which the peer's program receives
//	WRITE  the same: TCP has no operation that leaves the peer's program out
//	READ   a request of eight bytes, and the message that answers it
//
// In event mode a net.Conn is used the ordinary way: Read and Write park the
// goroutine in Go's poller. In polling mode the same socket, which is non-blocking,
// is read and written in a loop that never parks.
package tcpnet

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/goverbs/goverbs/internal/bench"
)

// Transport makes TCP connections.
type Transport struct {
	// Address is where Listen waits. Not valid: the control connection's
	// address, or else 127.0.0.1.
	Address netip.Addr
}

var _ bench.Transport = Transport{}

type listener struct {
	net.Listener
	params bench.Params
}

// Listen waits on a port that the kernel chooses.
func (t Transport) Listen(ctx context.Context, p bench.Params, control netip.Addr) (bench.Listener, error) {
	addr := t.Address
	if !addr.IsValid() {
		addr = control
	}
	if !addr.IsValid() {
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		return nil, err
	}
	return &listener{Listener: ln, params: p}, nil
}

func (l *listener) Address() string { return l.Addr().String() }

// tokenTimeout is how long a connection may take to show its token while it keeps
// others waiting.
const tokenTimeout = 2 * time.Second

// Accept drops connections that do not show the token.
func (l *listener) Accept(ctx context.Context) (bench.Conn, error) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.hasToken(conn) {
			return newConn(conn.(*net.TCPConn), l.params, true)
		}
		conn.Close()
	}
}

func (l *listener) hasToken(conn net.Conn) bool {
	got := make([]byte, len(l.params.Token))
	conn.SetDeadline(time.Now().Add(tokenTimeout))
	defer conn.SetDeadline(time.Time{})
	_, err := io.ReadFull(conn, got)
	return err == nil && subtle.ConstantTimeCompare(got, []byte(l.params.Token)) == 1
}

// Close may come from Accept's context first.
func (l *listener) Close() error {
	l.Listener.Close()
	return nil
}

// Dial connects and shows the token.
func (t Transport) Dial(ctx context.Context, p bench.Params, address string) (bench.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte(p.Token)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("show the token: %w", err)
	}
	return newConn(conn.(*net.TCPConn), p, false)
}
