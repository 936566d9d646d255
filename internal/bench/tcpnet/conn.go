package tcpnet

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"github.com/goverbs/goverbs/internal/bench"
)

// Conn is one end of a TCP data connection.
type Conn struct {
	bench.Buffers
	tcp  *net.TCPConn
	spin *spinner
	// io is what the current Task reads and writes: tcp or spin.
	io readWriter
	// small holds requests and acknowledgements.
	small [8]byte
}

// readWriter moves whole buffers.
type readWriter interface {
	readFull(buf []byte) error
	writeFull(buf []byte) error
}

func newConn(tcp *net.TCPConn, p bench.Params, server bool) (bench.Conn, error) {
	spin, err := newSpinner(tcp)
	if err != nil {
		tcp.Close()
		return nil, err
	}
	return &Conn{
		Buffers: bench.Buffers{Source: make([]byte, p.Region), Sink: make([]byte, p.Region), Server: server},
		tcp:     tcp,
		spin:    spin,
		io:      blocking{tcp},
	}, nil
}

// Info says which interface the connection uses.
func (c *Conn) Info() bench.ConnInfo {
	info := bench.ConnInfo{Address: c.tcp.LocalAddr().String()}
	info.Netdev, info.MTU = interfaceOf(c.tcp.LocalAddr(), c.tcp.RemoteAddr())
	return info
}

// interfaceOf finds the interface that has a local address. Packets to an address
// of the same host never leave it: they take the loopback interface.
func interfaceOf(local, remote net.Addr) (name string, mtu int) {
	from, to := local.(*net.TCPAddr).IP, remote.(*net.TCPAddr).IP
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", 0
	}
	sameHost := hasAddress(interfaces, to)
	for _, i := range interfaces {
		if sameHost && i.Flags&net.FlagLoopback != 0 || !sameHost && ownsAddress(i, from) {
			return i.Name, i.MTU
		}
	}
	return "", 0
}

func hasAddress(interfaces []net.Interface, ip net.IP) bool {
	for _, i := range interfaces {
		if ownsAddress(i, ip) {
			return true
		}
	}
	return false
}

func ownsAddress(i net.Interface, ip net.IP) bool {
	addrs, err := i.Addrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}

// Memory is empty: nothing of the peer's memory is to be known.
func (c *Conn) Memory() json.RawMessage { return nil }

// Attach has nothing to do.
func (c *Conn) Attach(json.RawMessage) error { return nil }

// Prepare chooses how the socket is used.
func (c *Conn) Prepare(t bench.Task) error {
	c.Buffers.Prepare(t)
	c.io = blocking{c.tcp}
	if t.Mode == bench.ModePoll {
		c.io = c.spin
	}
	return nil
}

// Close ends whatever the connection is doing.
func (c *Conn) Close() error {
	c.stop()
	return c.tcp.Close()
}

// stop makes reads and writes fail, now and from now on.
func (c *Conn) stop() {
	c.spin.stopped.Store(true)
	// It fails only on a closed connection.
	_ = c.tcp.SetDeadline(time.Unix(1, 0))
}

// until stops the connection when ctx ends. The caller defers what it returns.
func (c *Conn) until(ctx context.Context) (release func() bool) {
	return context.AfterFunc(ctx, c.stop)
}
