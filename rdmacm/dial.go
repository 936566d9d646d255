package rdmacm

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
)

// Dialer makes connections. The zero Dialer works.
type Dialer struct {
	Config

	// LocalAddr is the source address; the zero AddrPort lets routing choose.
	// Its port may be 0.
	LocalAddr netip.AddrPort
	// Device is the RDMA device that must be used, such as "rxe0"; empty allows
	// any. Which device serves an address is the kernel's choice: a dial that
	// it would send over another device fails.
	Device string
	// Timeout bounds a dial as a whole, besides its context; 0 means 30 s.
	Timeout time.Duration
	// ResolveTimeout bounds the search for the device and for the route, each;
	// 0 means 2 s.
	ResolveTimeout time.Duration
	// ConnectTimeout bounds the wait for the peer's answer; 0 leaves it to
	// Timeout.
	ConnectTimeout time.Duration
	// PrivateData goes to the peer with the request. RoCE carries 56 bytes.
	PrivateData []byte
}

// Dial is DialContext without a context.
func (d *Dialer) Dial(address string) (*Conn, error) {
	return d.DialContext(context.Background(), address)
}

// DialContext connects to "host:port": an IP address ("192.0.2.1:7471",
// "[fe80::1%eth0]:7471") or a host's name, whose addresses are tried in turn.
// 127.0.0.1 never works: RDMA devices serve their own interfaces' addresses.
//
// When ctx ends or a time is up, DialContext returns at once; what the kernel
// still holds for the attempt is given back in the background. The error then
// satisfies ctx.Err(), or os.ErrDeadlineExceeded. A peer that rejects shows as
// a *RejectError (and syscall.ECONNREFUSED), one that does not answer as
// syscall.ETIMEDOUT, EHOSTUNREACH or ENETUNREACH, an address that no RDMA
// device serves as ENODEV. All come in an *ibverbs.OpError, or a *net.DNSError
// or *net.AddrError if address is at fault.
func (d *Dialer) DialContext(ctx context.Context, address string) (*Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, orDefault(d.Timeout, defaultDial), errStepTimeout)
	defer cancel()
	addrs, err := resolveHost(ctx, address)
	if err != nil {
		return nil, wrap("rdma_resolve_addr", address, waitErr(ctx, err))
	}
	if err := checkTarget(addrs[0]); err != nil {
		return nil, wrap("rdma_resolve_addr", address, err)
	}
	var first error
	for i, addr := range addrs {
		tryCtx, cancel := share(ctx, len(addrs)-i)
		c, err := d.dial(tryCtx, addr)
		cancel()
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// minShare is the least that an address gets of a dial's time.
const minShare = 2 * time.Second

// share bounds one attempt of n, so that an address that does not answer
// leaves time for those after it.
func share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || n == 1 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, shareOf(time.Until(deadline), n), errStepTimeout)
}

// shareOf is the part of what is left that one attempt of n gets.
func shareOf(left time.Duration, n int) time.Duration {
	return max(left/time.Duration(n), min(left, minShare))
}

// checkTarget refuses what only a listener can use.
func checkTarget(addr netip.AddrPort) error {
	switch {
	case addr.Addr().IsUnspecified():
		return hint(syscall.EINVAL, "the address names no host")
	case addr.Port() == 0:
		return hint(syscall.EINVAL, "the address names no port")
	}
	return nil
}

// portTries is how often a dial or a listener on iWARP asks for another port.
const portTries = 8

// dial tries one address. On iWARP the port that rdma_cm chooses may be one that
// TCP uses: then it tries another.
func (d *Dialer) dial(ctx context.Context, dst netip.AddrPort) (c *Conn, err error) {
	for range portTries {
		c, err = d.dialOnce(ctx, dst)
		if d.LocalAddr.Port() != 0 || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return c, err
}

func (d *Dialer) dialOnce(ctx context.Context, dst netip.AddrPort) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, wrap("rdma_resolve_addr", dst.String(), waitErr(ctx, err))
	}
	leave, err := dials.enter(ctx, dst)
	if err != nil {
		return nil, wrap("rdma_resolve_addr", dst.String(), waitErr(ctx, err))
	}
	defer leave()
	channel, err := CreateEventChannel()
	if err != nil {
		return nil, err
	}
	id, err := channel.CreateID(PortSpaceTCP)
	if err != nil {
		channel.Close()
		return nil, err
	}
	c := newConn(id, channel, &d.Config)
	if err := d.establish(ctx, c, dst); err != nil {
		err = toward(err, dst)
		if ctx.Err() != nil {
			// Giving back may take as long as the kernel asks the peer.
			background.Go(func() { c.Close() })
			return nil, err
		}
		if closeErr := c.Close(); closeErr != nil {
			return nil, errors.Join(err, closeErr)
		}
		return nil, err
	}
	return c, nil
}

// background counts clean-ups that outlive the call that began them.
var background sync.WaitGroup

// establish takes c through the steps of an active connection.
func (d *Dialer) establish(ctx context.Context, c *Conn, dst netip.AddrPort) error {
	timeout := orDefault(d.ResolveTimeout, defaultResolve)
	if d.TOS != 0 {
		// The route may depend on it.
		if err := c.id.SetTOS(d.TOS); err != nil {
			return err
		}
	}
	if err := c.id.ResolveAddr(d.LocalAddr, dst, timeout); err != nil {
		return err
	}
	if _, err := c.await(ctx, "rdma_resolve_addr", EventAddrResolved); err != nil {
		return explainNoDevice(err, dst)
	}
	if err := checkDevice(d.Device, c.id.DeviceName(), dst); err != nil {
		return wrap("rdma_resolve_addr", c.id.String(), err)
	}
	if err := c.id.ResolveRoute(timeout); err != nil {
		return explainNoDevice(err, dst)
	}
	if _, err := c.await(ctx, "rdma_resolve_route", EventRouteResolved); err != nil {
		return explainNoDevice(err, dst)
	}
	if err := c.build(&d.Config); err != nil {
		return err
	}
	if d.ConnectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d.ConnectTimeout, errStepTimeout)
		defer cancel()
	}
	param := c.limits.param(d.PrivateData)
	if err := c.connect(ctx, param); err != nil {
		return err
	}
	ev, err := c.await(ctx, "rdma_connect", EventEstablished)
	if err != nil {
		return err
	}
	c.peer = ev.PrivateData
	c.granted = grant(param, ev.Param)
	c.id.setReadDepth(&c.granted)
	c.start()
	return nil
}

// connect is ID.Connect, but does not outlast ctx: on iWARP the kernel waits
// for TCP. Giving the ID back waits for that instead.
func (c *Conn) connect(ctx context.Context, param ConnParam) error {
	if err := ctx.Err(); err != nil {
		return wrap("rdma_connect", c.id.String(), waitErr(ctx, err))
	}
	if !c.id.iwarp() {
		return c.id.Connect(param)
	}
	result := make(chan error, 1)
	go func() { result <- c.id.Connect(param) }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return wrap("rdma_connect", c.id.String(), waitErr(ctx, ctx.Err()))
	}
}

// await takes the event that a step ends with.
func (c *Conn) await(ctx context.Context, op string, want EventType) (*Event, error) {
	ev, err := c.channel.GetEvent(ctx)
	if err != nil {
		var opErr *ibverbs.OpError
		if errors.As(err, &opErr) {
			err = opErr.Err
		}
		return nil, wrap(op, c.id.String(), err)
	}
	if err := ev.Err(); err != nil {
		return nil, err
	}
	if ev.Type != want {
		return nil, wrap(op, c.id.String(), hint(syscall.EPROTO, "got event %v, not %v", ev.Type, want))
	}
	return ev, nil
}

// grant is what came of the parameters that were asked for. An iWARP driver
// may report nothing: then all of it was granted.
func grant(asked, got ConnParam) ConnParam {
	if got.ResponderResources != 0 || got.InitiatorDepth != 0 {
		asked.ResponderResources = min(asked.ResponderResources, got.ResponderResources)
		asked.InitiatorDepth = min(asked.InitiatorDepth, got.InitiatorDepth)
	}
	asked.PrivateData = nil
	return asked
}

// checkDevice refuses a device other than the one that was asked for.
func checkDevice(want, got string, addr netip.AddrPort) error {
	if want == "" || want == got {
		return nil
	}
	return hint(syscall.ENODEV, "%s is reached over %s, not over %s; where two devices share a network interface, the kernel takes the one that was added first", addr.Addr(), got, want)
}

// toward adds the address to the object of an error.
func toward(err error, dst netip.AddrPort) error {
	opErr, ok := err.(*ibverbs.OpError)
	if !ok {
		return err
	}
	return wrap(opErr.Op, opErr.Object+" to "+dst.String(), opErr.Err)
}

func explainNoDevice(err error, dst netip.AddrPort) error {
	opErr, ok := err.(*ibverbs.OpError)
	if !ok {
		return err
	}
	return wrap(opErr.Op, opErr.Object, noDeviceHint(opErr.Err, dst.Addr()))
}
