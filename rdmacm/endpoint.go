package rdmacm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/goverbs/goverbs/internal/pollfd"
)

// Endpoint is a listener made of what GetAddrInfo found (rdma_create_ep(3) with
// RAI_PASSIVE). Unlike an ID it has an event channel of its own, of which
// GetRequest takes one request after the other.
//
// The other kind of rdma_create_ep's endpoints, which connect, hold an OS thread
// for as long as the network takes to resolve addresses: there are none here.
// An ID and Dialer take the same steps, and wait in Go's poller.
type Endpoint struct {
	name string
	fd   *pollfd.FD

	mu      sync.Mutex
	drained *sync.Cond
	calls   int
	c       *cID
	closing bool
	closed  bool
}

var endpointCount atomic.Uint64

// CreateEndpoint makes an endpoint bound to info's Src. info must have the flag
// AddrInfoPassive. The caller closes it.
func CreateEndpoint(info AddrInfo) (*Endpoint, error) {
	const op = "rdma_create_ep"
	if info.Flags&AddrInfoPassive == 0 {
		return nil, wrap(op, "", hint(syscall.EINVAL, "an endpoint listens, and info lacks AddrInfoPassive; use Dialer or an ID to connect"))
	}
	if !info.Src.IsValid() && info.SrcIB == nil {
		return nil, wrap(op, "", hint(syscall.EINVAL, "info has no Src to listen on"))
	}
	c, fd, err := cCreateEndpoint(&info)
	if err != nil {
		return nil, wrap(op, "", noDeviceHint(err, info.Src.Addr()))
	}
	e := &Endpoint{name: fmt.Sprintf("endpoint%d", endpointCount.Add(1)), c: c}
	e.drained = sync.NewCond(&e.mu)
	if e.fd, err = pollfd.New(fd, e.name); err != nil {
		cDestroyEndpoint(c)
		return nil, wrap(op, "", err)
	}
	return e, nil
}

// String is the endpoint's name in errors, such as "endpoint2".
func (e *Endpoint) String() string { return e.name }

// Addr is the address that the endpoint is bound to; the zero AddrPort after
// Close.
func (e *Endpoint) Addr() netip.AddrPort {
	var addr netip.AddrPort
	e.call("rdma_get_local_addr", func() error {
		addr = cReadRoute(e.c).src
		return nil
	})
	return addr
}

// call runs fn unless the endpoint is closed, one at a time.
func (e *Endpoint) call(op string, fn func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return wrap(op, e.name, net.ErrClosed)
	}
	return wrap(op, e.name, fn())
}

// Listen makes the endpoint take requests (rdma_listen(3)); see ID.Listen for
// backlog.
func (e *Endpoint) Listen(backlog int) error {
	return e.call("rdma_listen", func() error { return cListen(e.c, backlog) })
}

// GetRequest takes the next request, and waits for one until ctx ends, without
// an OS thread (rdma_get_request(3)). The event is as EventChannel.GetEvent gives
// it, but for ListenID, which is nil; its ID is on the channel to, whose later
// events come there: the receiver accepts or rejects the ID, and closes it.
//
// It fails with ctx's error, and with net.ErrClosed after Close of either. ENODEV
// means that the device is gone.
func (e *Endpoint) GetRequest(ctx context.Context, to *EventChannel) (*Event, error) {
	const op = "rdma_get_request"
	if err := e.call(op, func() error { e.calls++; return nil }); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := to.addID(); err != nil {
		return nil, wrap(op, e.name, err)
	}
	raw, token := new(cEvent), ids.token()
	err := e.fd.Wait(ctx, func() (bool, error) {
		err := cGetRequest(e.c, to.c, token, raw)
		if err == syscall.EAGAIN {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		to.dropID()
		return nil, wrap(op, e.name, waitErr(ctx, err))
	}
	ev := eventFromC(raw)
	ev.ID = newID(raw.new_id, token, portSpaceOf(raw.new_id), to, routeFromC(&raw.route))
	ev.ID.request = ev.Param
	return ev, nil
}

func (e *Endpoint) leave() {
	e.mu.Lock()
	e.calls--
	e.drained.Broadcast()
	e.mu.Unlock()
}

// Close wakes GetRequest with net.ErrClosed and destroys the endpoint
// (rdma_destroy_ep(3)). Requests that have not been taken are rejected.
// Closing twice is no error.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		for !e.closed {
			e.drained.Wait()
		}
		return nil
	}
	e.closing = true
	e.mu.Unlock()
	err := e.fd.Close()
	e.mu.Lock()
	for e.calls > 0 {
		e.drained.Wait()
	}
	cDestroyEndpoint(e.c)
	e.c = nil
	e.closed = true
	e.drained.Broadcast()
	return wrap("rdma_destroy_ep", e.name, err)
}
