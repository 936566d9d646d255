package bench

import (
	"context"
	"encoding/json"
	"net/netip"
)

// Params is what both ends of a data connection agree on before it is made.
type Params struct {
	// Depth is the most messages that any Task will have under way.
	Depth int `json:"depth"`
	// Region is the size of the source and of the sink at each end, in bytes.
	Region int `json:"region"`
	// Token shows that a data connection comes from the client that asked for
	// it; 16 random bytes in hexadecimal.
	Token string `json:"token,omitempty"`
}

// Transport makes data connections.
type Transport interface {
	// Listen waits for one data connection. control is the server's own address
	// of the control connection, not valid if that has none: it is a hint to
	// where the client can reach the server.
	Listen(ctx context.Context, p Params, control netip.Addr) (Listener, error)
	// Dial connects to the address that a Listener gave.
	Dial(ctx context.Context, p Params, address string) (Conn, error)
}

// Listener is the server's end before the client has come.
type Listener interface {
	Address() string
	// Accept returns the first connection that shows Params.Token.
	Accept(ctx context.Context) (Conn, error)
	Close() error
}

// Conn is one end of a data connection, used by one goroutine at a time. The end of
// a context ends what Active or Passive does, and the connection is of no more use.
//
// A run is the same five steps at both ends: Prepare, then Active at the client
// and Passive at the server, then Check. The control connection keeps them in
// step: the client prepares before the server does, and starts when the server is
// prepared.
type Conn interface {
	// Info says what this end is and what the connection was granted.
	Info() ConnInfo
	// Memory describes this end's buffers for the other end's Attach.
	Memory() json.RawMessage
	Attach(memory json.RawMessage) error

	// Prepare fills the source, clears the sink and posts receives for t.
	Prepare(t Task) error
	// Active sends, writes or reads t.Iters messages and times them.
	Active(ctx context.Context, t Task, r *Recorder) error
	// Passive does the other end's part. It returns at once where there is none.
	Passive(ctx context.Context, t Task) error
	// Check compares every message in this end's sink with what it should be.
	// It counts nothing where this end receives no messages in t.
	Check(t Task) (Verified, error)
	Close() error
}

// ConnInfo is one end of a data connection, for the report.
type ConnInfo struct {
	Device  string `json:"device,omitempty"` // RNIC: "rxe0"
	Netdev  string `json:"netdev,omitempty"`
	Address string `json:"address"` // local address
	MTU     int    `json:"mtu,omitempty"`
	// ReadDepth is how many READs the connection allows under way; 0 where that
	// has no meaning.
	ReadDepth int `json:"read_depth,omitempty"`
}

// Verified counts the messages that were compared, each byte of them.
type Verified struct {
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
}

// Add returns the sum of both.
func (v Verified) Add(w Verified) Verified {
	return Verified{Messages: v.Messages + w.Messages, Bytes: v.Bytes + w.Bytes}
}

// Incoming is the direction of the messages that this side's sink receives in t,
// and whether there are any.
func Incoming(t Task, server bool) (Direction, bool) {
	switch {
	case t.Op == OpRead:
		return FromServer, !server
	case server:
		return FromClient, true
	}
	return FromServer, t.Kind == KindLatency
}

// Outgoing is the direction of the messages in this side's source, and whether
// there are any.
func Outgoing(t Task, server bool) (Direction, bool) {
	switch {
	case t.Op == OpRead:
		return FromServer, server
	case server:
		return FromServer, t.Kind == KindLatency
	}
	return FromClient, true
}
