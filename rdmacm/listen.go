package rdmacm

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// ListenConfig says how a Listener takes connections. The zero ListenConfig
// works.
type ListenConfig struct {
	Config

	// Device is the RDMA device that requests must come in on; others are
	// rejected. Empty allows any.
	Device string
	// Backlog is how many connections may be under way or established and not
	// yet accepted; 0 means 1024. Further requests are rejected. The kernel
	// bounds its own queue by net.rdma_ucm.max_backlog.
	Backlog int
	// HandshakeTimeout is how long a peer may take from its request to the
	// established connection; 0 means 10 s.
	HandshakeTimeout time.Duration
	// PrivateData goes to the peer with each acceptance. RoCE carries 196
	// bytes.
	PrivateData []byte
	// OnRequest, if set, looks at each request before anything is set up for
	// it. An error rejects it; a *RefuseError carries private data. It runs in
	// the request's own goroutine: while it takes its time, others go on.
	OnRequest func(*Request) error
	// OnError, if set, is told of each request that came to nothing, and why.
	OnError func(peer netip.AddrPort, err error)
}

// hookTimeout bounds how long Listener.Close waits for hooks.
const hookTimeout = 10 * time.Second

// Listener takes connections. It sets each one up in a goroutine of its own,
// on an event channel of its own, so that a slow or dead peer holds up nobody.
type Listener struct {
	cfg     ListenConfig
	channel *EventChannel
	ids     []*ID

	ctx    context.Context // done when the listener is closed
	cancel context.CancelFunc
	slots  chan struct{} // one token for each connection of the backlog
	served chan struct{} // closed when serve has returned
	shakes sync.WaitGroup

	mu     sync.Mutex
	err    error // why Accept fails; net.ErrClosed after Close
	queue  chan *Conn
	failed chan struct{} // closed once err is set
}

// Listen listens on "host:port", as net.Listen does: an empty host means all
// addresses, IPv4 and IPv6, and port 0 lets the kernel choose; see
// Listener.Addr. ctx bounds the look-up of a host's name only.
//
// On iWARP a wildcard address does not take connections from this same host:
// siw binds it to its network interface.
func (lc *ListenConfig) Listen(ctx context.Context, address string) (*Listener, error) {
	addrs, err := resolveHost(ctx, address)
	if err != nil {
		return nil, wrap("rdma_listen", address, err)
	}
	channel, err := CreateEventChannel()
	if err != nil {
		return nil, err
	}
	backlog := lc.Backlog
	if backlog <= 0 {
		backlog = defaultBacklog
	}
	l := &Listener{
		cfg:     *lc,
		channel: channel,
		slots:   make(chan struct{}, backlog),
		queue:   make(chan *Conn, backlog),
		served:  make(chan struct{}),
		failed:  make(chan struct{}),
	}
	if err := l.bind(addrs, backlog); err != nil {
		return nil, errors.Join(err, l.closeIDs(), channel.Close())
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	go l.serve()
	return l, nil
}

// bind makes an ID for each wildcard address, or one for the first address.
func (l *Listener) bind(addrs []netip.AddrPort, backlog int) error {
	if !addrs[0].Addr().IsUnspecified() {
		addrs = addrs[:1]
	}
	for i, addr := range addrs {
		if i > 0 && addr.Port() == 0 {
			addr = netip.AddrPortFrom(addr.Addr(), l.Addr().Port())
		}
		err := l.listen(addr, backlog, len(addrs) > 1)
		if i > 0 && (errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL)) {
			// A host without IPv6 is no reason not to serve IPv4.
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listen adds one ID. On iWARP the port that rdma_cm chooses may be one that TCP
// uses: then it tries another, as a dial does.
func (l *Listener) listen(addr netip.AddrPort, backlog int, afOnly bool) (err error) {
	for range portTries {
		err = l.listenOnce(addr, backlog, afOnly)
		if addr.Port() != 0 || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return err
}

func (l *Listener) listenOnce(addr netip.AddrPort, backlog int, afOnly bool) error {
	id, err := l.channel.CreateID(PortSpaceTCP)
	if err != nil {
		return err
	}
	if err := l.start(id, addr, backlog, afOnly); err != nil {
		return errors.Join(err, id.Close())
	}
	l.ids = append(l.ids, id)
	return nil
}

func (l *Listener) start(id *ID, addr netip.AddrPort, backlog int, afOnly bool) error {
	if afOnly && addr.Addr().Is6() {
		if err := id.SetAFOnly(true); err != nil {
			return err
		}
	}
	if l.cfg.TOS != 0 {
		if err := id.SetTOS(l.cfg.TOS); err != nil {
			return err
		}
	}
	if err := id.BindAddr(addr); err != nil {
		return err
	}
	if dev := id.DeviceName(); dev != "" {
		if err := checkDevice(l.cfg.Device, dev, addr); err != nil {
			return wrap("rdma_bind_addr", id.String(), err)
		}
	}
	return id.Listen(backlog)
}

// Addr is the address that the listener is bound to; of the wildcard
// addresses, the IPv4 one.
func (l *Listener) Addr() netip.AddrPort { return l.ids[0].LocalAddr() }

// Accept waits for the next established connection, until ctx ends. After
// Close it fails with net.ErrClosed.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	const op = "rdma_get_request"
	select {
	case <-l.failed:
		return nil, wrap(op, l.String(), l.cause())
	default:
	}
	select {
	case c := <-l.queue:
		<-l.slots
		return c, nil
	case <-l.failed:
		return nil, wrap(op, l.String(), l.cause())
	case <-ctx.Done():
		return nil, wrap(op, l.String(), ctx.Err())
	}
}

// String names the listener in errors: "listener 10.77.1.1:7471".
func (l *Listener) String() string { return "listener " + l.Addr().String() }

func (l *Listener) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// fail makes Accept return err from now on. It reports whether this was the
// first failure.
func (l *Listener) fail(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.err = err
	close(l.failed)
	return true
}

// Close stops listening: it wakes Accept, rejects the requests that are under
// way, and closes the connections that nobody has accepted. Those that were
// accepted live on. Closing twice is no error.
func (l *Listener) Close() error {
	l.fail(net.ErrClosed)
	l.cancel()
	<-l.served
	err := errors.Join(l.closeIDs(), l.closeChannel())
	for {
		select {
		case c := <-l.queue:
			err = errors.Join(err, c.Close())
		default:
			return err
		}
	}
}

func (l *Listener) closeIDs() error {
	var err error
	for _, id := range l.ids {
		err = errors.Join(err, id.Close())
	}
	return err
}

// closeChannel waits for the handshakes, which the listener's context has
// ended, since their IDs come from the channel. It does not wait for a user's
// hook that does not return, or that called Close itself: the channel then
// goes when the hook does.
func (l *Listener) closeChannel() error {
	done := make(chan error, 1)
	background.Go(func() {
		l.shakes.Wait()
		done <- l.channel.Close()
	})
	select {
	case err := <-done:
		return err
	case <-time.After(hookTimeout):
		return nil
	}
}
