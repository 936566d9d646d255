package rdmacm

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/gate"
)

// ID is a communication identifier, the RDMA counterpart of a socket
// (struct rdma_cm_id). Its operations only start things: what comes of them
// arrives as events on its channel.
//
// Its methods may be called from several goroutines; those that call
// librdmacm run one at a time. They are short, but for Connect and Close on
// iWARP. After Close they return net.ErrClosed.
type ID struct {
	token uint64
	name  string
	ps    PortSpace

	mu      sync.Mutex // librdmacm wants one call on an ID at a time
	c       *cID
	channel *EventChannel
	closed  bool
	request ConnParam    // what the peer asked for, on the passive side
	asked   ConnParam    // what Connect asked for
	passive bool         // Accept was called
	managed bool         // librdmacm made the QP
	srq     *ibverbs.SRQ // that librdmacm made
	lent    *lentDevice

	groups   map[uint64]*membership // by the number that C knows them by
	lastJoin uint64

	qp       atomic.Pointer[ibverbs.QP]
	rnrTimer atomic.Uint32

	// hidden is set once the connection failed here, so that what the kernel
	// reports about that afterwards is not reported twice.
	hidden atomic.Bool

	routeMu sync.Mutex
	route   route
}

// defaultRNRTimer is 0.64 ms. The kernel's own default, 0, means 655 ms.
const defaultRNRTimer = 12

// newID makes the Go side of c, which is already entered in channel.
func newID(c *cID, token uint64, ps PortSpace, channel *EventChannel, r route) *ID {
	id := &ID{token: token, ps: ps, c: c, channel: channel, route: r}
	id.name = fmt.Sprintf("id%d", ids.names.Add(1))
	id.rnrTimer.Store(defaultRNRTimer)
	ids.add(id)
	return id
}

// String is the ID's name in errors: "rxe0/id7", or "id7" while it is not
// bound to a device.
func (id *ID) String() string {
	if dev := id.DeviceName(); dev != "" {
		return dev + "/" + id.name
	}
	return id.name
}

// call runs fn unless the ID is closed, and gives its error the usual form.
func (id *ID) call(op string, fn func() error) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.closed {
		return wrap(op, id.String(), net.ErrClosed)
	}
	if err := fn(); err != nil {
		return wrap(op, id.String(), err)
	}
	return nil
}

func (id *ID) readRoute() {
	r := cReadRoute(id.c)
	id.setRoute(r)
}

func (id *ID) setRoute(r route) {
	id.routeMu.Lock()
	id.route = r
	id.routeMu.Unlock()
}

func (id *ID) getRoute() route {
	id.routeMu.Lock()
	defer id.routeMu.Unlock()
	return id.route
}

// PortSpace is what CreateID was given.
func (id *ID) PortSpace() PortSpace { return id.ps }

// LocalAddr is the source address; the zero AddrPort before BindAddr or
// ResolveAddr.
func (id *ID) LocalAddr() netip.AddrPort { return id.getRoute().src }

// PeerAddr is the destination address; the zero AddrPort where there is none.
func (id *ID) PeerAddr() netip.AddrPort { return id.getRoute().dst }

// LocalGID is the source GID, PeerGID the destination's. They are zero before
// the address is resolved, and with iWARP.
func (id *ID) LocalGID() ibverbs.GID { return id.getRoute().sgid }

// PeerGID is the destination's GID.
func (id *ID) PeerGID() ibverbs.GID { return id.getRoute().dgid }

// DeviceName is the RDMA device that the ID is bound to, such as "rxe0"; empty
// while it is bound to none. ibverbs.Open takes it.
func (id *ID) DeviceName() string { return id.getRoute().device }

// PortNum is the device's port, counted from 1; 0 while the ID is not bound.
func (id *ID) PortNum() int { return id.getRoute().port }

// iwarp reports whether the ID is bound to an iWARP device.
func (id *ID) iwarp() bool { return id.getRoute().transport == ibverbs.TransportIWARP }

// gate bounds how many threads wait in the kernel for what may wait for a peer.
func (id *ID) gate() *gate.Gate {
	if id.iwarp() {
		return gate.Slow
	}
	return gate.Control
}

// BindAddr binds the ID to a source address (rdma_bind_addr(3)). A wildcard
// address binds it to no device; port 0 lets the kernel choose, and LocalAddr
// then tells.
func (id *ID) BindAddr(addr netip.AddrPort) error {
	return id.call("rdma_bind_addr", func() error {
		sa, err := toSockaddr(addr)
		if err != nil {
			return err
		}
		if err := cBindAddr(id.c, sa); err != nil {
			return noDeviceHint(err, addr.Addr())
		}
		id.readRoute()
		return nil
	})
}

// ResolveAddr finds the device and the path's first hop for dst
// (rdma_resolve_addr(3)). The zero src lets routing choose. EventAddrResolved
// or EventAddrError follows, the latter after timeout at the latest.
func (id *ID) ResolveAddr(src, dst netip.AddrPort, timeout time.Duration) error {
	return id.call("rdma_resolve_addr", func() error {
		from, err := toSockaddr(src)
		if err != nil {
			return err
		}
		to, err := toSockaddr(dst)
		if err != nil {
			return err
		}
		return noDeviceHint(cResolveAddr(id.c, from, to, milliseconds(timeout)), dst.Addr())
	})
}

// ResolveRoute finds the way to the resolved address (rdma_resolve_route(3)).
// EventRouteResolved or EventRouteError follows.
func (id *ID) ResolveRoute(timeout time.Duration) error {
	return id.call("rdma_resolve_route", func() error {
		if id.DeviceName() == "" {
			return hint(errNotBound, "call ResolveAddr and wait for EventAddrResolved first")
		}
		return cResolveRoute(id.c, milliseconds(timeout))
	})
}

// milliseconds rounds up, so that a short timeout does not become none.
func milliseconds(d time.Duration) int {
	ms := (d + time.Millisecond - 1) / time.Millisecond
	return int(min(max(ms, 1), math.MaxInt32))
}

// Listen makes a bound ID take connection requests, which arrive as
// EventConnectRequest (rdma_listen(3)). backlog bounds the requests that wait
// in the kernel; 0 or less, or more than net.rdma_ucm.max_backlog, means that
// limit, by default 1024.
func (id *ID) Listen(backlog int) error {
	return id.call("rdma_listen", func() error {
		if err := cListen(id.c, backlog); err != nil {
			return err
		}
		id.readRoute()
		return nil
	})
}

// Migrate moves the ID to another channel, with the events that are pending
// (rdma_migrate_id(3)). Both channels must be open.
func (id *ID) Migrate(to *EventChannel) error {
	return id.call("rdma_migrate_id", func() error {
		if to == id.channel {
			return nil
		}
		if err := to.addID(); err != nil {
			return err
		}
		if err := cMigrate(id.c, to.c); err != nil {
			to.dropID()
			return err
		}
		id.channel.dropID()
		id.channel = to
		return nil
	})
}

// letGo frees what the ID holds besides itself.
func (id *ID) letGo() error {
	if err := id.checkClosable(); err != nil {
		return err
	}
	if err := id.leaveAll(); err != nil {
		return err
	}
	if id.lent != nil {
		if err := id.lent.giveBack(); err != nil {
			return err
		}
		id.lent = nil
	}
	return nil
}

// Close destroys the ID (rdma_destroy_id(3)). An open connection is
// disconnected, a pending request rejected. Events that have not been read are
// dropped. A QP that CreateQP made stays the caller's to close; what
// CreateManagedQP and CreateManagedSRQ made, and all that is open on the
// LibraryDevice of the last ID that has it, must be closed before, or Close
// fails with EBUSY.
//
// Close returns at once, except that on iWARP it waits while the peer is being
// asked to connect: the kernel gives up on that after some 10 s. Closing twice
// is no error.
func (id *ID) Close() error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.closed {
		return nil
	}
	if err := id.letGo(); err != nil {
		return wrap("rdma_destroy_id", id.String(), err)
	}
	ids.remove(id)
	if err := cDestroyID(id.c, id.gate()); err != nil {
		ids.add(id)
		return wrap("rdma_destroy_id", id.String(), err)
	}
	id.closed = true
	id.c = nil
	id.channel.dropID()
	return nil
}
