package rdmacm

import (
	"context"
	"errors"
	"net/netip"
	"syscall"

	"github.com/goverbs/goverbs/ibverbs"
)

func tooLong(n, most int) error {
	return hint(syscall.EMSGSIZE, "%d bytes: a message has at most %d (Datagram.Size)", n, most)
}

// Lookup finds the QP that serves "host:port": it asks the peer's connection
// manager (SIDR) by rdma_connect(3) in port space UDP. Keep the Peer: a Lookup is
// a round trip. data goes to whoever answers; a Datagram takes no notice of it.
//
// A port that nobody serves gives a *RejectError with RejectNoListener, on which
// errors.Is(err, syscall.ECONNREFUSED) holds, a host that does not answer
// ETIMEDOUT or EHOSTUNREACH. It waits until ctx ends, in Go's poller.
func (d *Datagram) Lookup(ctx context.Context, address string, data []byte) (Peer, error) {
	if d.ctx.Err() != nil {
		return Peer{}, wrap("rdma_resolve_addr", d.String(), d.closedErr())
	}
	addrs, err := resolveHost(ctx, address)
	if err != nil {
		return Peer{}, wrap("rdma_resolve_addr", address, err)
	}
	if err := checkTarget(addrs[0]); err != nil {
		return Peer{}, wrap("rdma_resolve_addr", address, err)
	}
	channel, err := CreateEventChannel()
	if err != nil {
		return Peer{}, err
	}
	id, err := channel.CreateID(PortSpaceUDP)
	if err != nil {
		return Peer{}, errors.Join(err, channel.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	peer, err := d.lookup(ctx, &Conn{id: id, channel: channel}, addrs[0], data)
	if d.ctx.Err() != nil && err != nil {
		err = wrap("rdma_connect", d.String(), d.closedErr())
	}
	return peer, errors.Join(toward(err, addrs[0]), id.Close(), channel.Close())
}

// lookup takes c's ID through the steps. It is no connection: only the ID and
// its channel are used.
func (d *Datagram) lookup(ctx context.Context, c *Conn, dst netip.AddrPort, data []byte) (Peer, error) {
	if d.cfg.TOS != 0 {
		if err := c.id.SetTOS(d.cfg.TOS); err != nil {
			return Peer{}, err
		}
	}
	if err := c.id.ResolveAddr(netip.AddrPortFrom(d.Addr().Addr(), 0), dst, d.cfg.ResolveTimeout); err != nil {
		return Peer{}, explainNoDevice(err, dst)
	}
	if _, err := c.await(ctx, "rdma_resolve_addr", EventAddrResolved); err != nil {
		return Peer{}, explainNoDevice(err, dst)
	}
	if err := c.id.ResolveRoute(d.cfg.ResolveTimeout); err != nil {
		return Peer{}, err
	}
	if _, err := c.await(ctx, "rdma_resolve_route", EventRouteResolved); err != nil {
		return Peer{}, err
	}
	if err := c.id.Connect(ConnParam{PrivateData: data, QPN: d.qp.QPN()}); err != nil {
		return Peer{}, err
	}
	ev, err := c.await(ctx, "rdma_connect", EventEstablished)
	if err != nil {
		return Peer{}, err
	}
	return Peer{Path: ev.AH, QPN: ev.Param.QPN, QKey: ev.QKey}, nil
}

// Join takes part in an IP multicast group (rdma_join_multicast_ex(3)), and
// waits until that has happened or ctx ends. What is sent to the group comes to
// Receive from then on, unless flags is JoinSendOnly. The Peer that it gives is
// the group, to send to.
//
// On RoCE v2 the kernel joins IPv4 groups only: errors.ErrUnsupported.
func (d *Datagram) Join(ctx context.Context, group netip.Addr, flags JoinFlags) (Peer, error) {
	const op = "rdma_join_multicast_ex"
	group = group.Unmap()
	result := make(chan *Event, 1)
	d.joinMu.Lock()
	if d.joins[group] != nil {
		d.joinMu.Unlock()
		return Peer{}, wrap(op, d.String(), hint(syscall.EALREADY, "%v is being joined", group))
	}
	d.joins[group] = result
	d.joinMu.Unlock()
	defer func() {
		d.joinMu.Lock()
		delete(d.joins, group)
		d.joinMu.Unlock()
	}()
	if err := d.groups.JoinMulticastEx(group, flags); err != nil {
		return Peer{}, err
	}
	select {
	case ev := <-result:
		if err := ev.Err(); err != nil {
			return Peer{}, errors.Join(err, d.groups.LeaveMulticast(group))
		}
		return Peer{Path: ev.AH, QPN: ibverbs.McastQPN, QKey: ev.QKey}, nil
	case <-ctx.Done():
		err := wrap(op, d.String(), waitErr(ctx, ctx.Err()))
		return Peer{}, errors.Join(err, d.groups.LeaveMulticast(group))
	case <-d.ctx.Done():
		return Peer{}, wrap(op, d.String(), d.closedErr())
	}
}

// joined hands an event to the Join that waits for it.
func (d *Datagram) joined(ev *Event) {
	d.joinMu.Lock()
	defer d.joinMu.Unlock()
	if result := d.joins[ev.Group]; result != nil {
		select {
		case result <- ev:
		default: // it has its answer
		}
	}
}

// Leave leaves a group (rdma_leave_multicast(3)). EADDRNOTAVAIL means that it
// was not joined.
func (d *Datagram) Leave(group netip.Addr) error { return d.groups.LeaveMulticast(group) }
