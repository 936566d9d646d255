package rdmacm

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
)

// DatagramConfig says how a Datagram is set up. The zero DatagramConfig works.
type DatagramConfig struct {
	// Device is the RDMA device that must be used; empty allows any.
	Device string
	// SendDepth and RecvDepth are how many messages may be on their way, and
	// how many are kept that have not been received yet; 0 means 128. What
	// comes beyond that is lost.
	SendDepth, RecvDepth int
	// Size is how long a message may be; 0 means what the port carries, its MTU.
	Size int
	// Paths is how many address handles are kept for peers that were sent to;
	// 0 means 1024.
	Paths int
	// ResolveTimeout bounds each step of a Lookup; 0 means 2 s.
	ResolveTimeout time.Duration
	// TOS is the type of service of what is sent to peers that Lookup found, as
	// in IP_TOS; 0 leaves it to the kernel.
	TOS uint8
}

// Defaults of DatagramConfig.
const (
	defaultPaths  = 1024
	datagramBatch = 16 // completions taken at once
)

// Datagram sends and receives messages without a connection, each to or from
// any peer: a UD queue pair, its buffers, and an ID by which others find it.
// Messages may be lost, and come in any order; none is longer than Size.
//
// RoCE and InfiniBand have datagrams, iWARP has none. Its methods may be called
// from several goroutines at once.
type Datagram struct {
	cfg     DatagramConfig
	id      *ID // listens
	groups  *ID // joins: the kernel refuses that to an ID that listens
	channel *EventChannel
	shared  *sharedDevice
	pd      *ibverbs.PD
	comps   [2]*ibverbs.CompChannel
	cqs     [2]*ibverbs.CQ // of sends, of receives
	qp      *ibverbs.QP
	paths   *ahCache

	out outbox
	in  inbox

	ctx    context.Context // done when the Datagram has ended
	end    context.CancelCauseFunc
	served chan struct{} // closed when serve has returned

	joinMu sync.Mutex
	joins  map[netip.Addr]chan *Event // by group, where a Join waits

	closeMu sync.Mutex
}

// Peer is where a message comes from or goes to: a path, a QP and its Q_Key.
// Peers can be compared and used as map keys; what Lookup, Join and Receive give
// for one QP may differ in the path.
type Peer struct {
	Path ibverbs.AHAttr
	QPN  uint32
	QKey uint32
}

// Received tells about a message that has come.
type Received struct {
	// From is the sender, who can be answered: its Q_Key is taken to be UDPQKey,
	// as all of port space UDP are.
	From Peer
	// To is the group that the message was sent to, or the own address; the
	// zero Addr where InfiniBand does not tell.
	To netip.Addr
	// Imm is the immediate data, if HasImm.
	Imm    uint32
	HasImm bool
}

// Addr is the peer's IP address on RoCE, or the group's.
func (p Peer) Addr() netip.Addr { return p.Path.DGID.Addr() }

// Listen binds a Datagram to "host:port", an address of an RDMA device's netdev;
// port 0 lets the kernel choose. Whoever looks the address up (Lookup, C's
// rdma_connect in port space UDP) is given its QP.
//
// A device without datagrams, as iWARP's, gives errors.ErrUnsupported; an
// address that no device serves ENODEV.
func (cfg DatagramConfig) Listen(ctx context.Context, address string) (*Datagram, error) {
	const op = "rdma_bind_addr"
	addrs, err := resolveHost(ctx, address)
	if err != nil {
		return nil, wrap(op, address, err)
	}
	addr := addrs[0]
	if addr.Addr().IsUnspecified() {
		return nil, wrap(op, address, hint(syscall.EINVAL, "a datagram endpoint is on one device; give the address of its netdev"))
	}
	channel, err := CreateEventChannel()
	if err != nil {
		return nil, err
	}
	id, err := channel.CreateID(PortSpaceUDP)
	if err != nil {
		return nil, errors.Join(err, channel.Close())
	}
	d := &Datagram{cfg: cfg, id: id, channel: channel, joins: make(map[netip.Addr]chan *Event)}
	d.ctx, d.end = context.WithCancelCause(context.Background())
	if err := d.build(addr); err != nil {
		d.end(net.ErrClosed)
		return nil, errors.Join(err, d.free())
	}
	d.served = make(chan struct{})
	go d.serve()
	return d, nil
}

// build makes what a bound Datagram needs.
func (d *Datagram) build(addr netip.AddrPort) error {
	if err := d.id.BindAddr(addr); err != nil {
		return err
	}
	if err := checkDevice(d.cfg.Device, d.id.DeviceName(), addr); err != nil {
		return wrap("rdma_bind_addr", d.id.String(), err)
	}
	if d.id.iwarp() {
		return wrap("rdma_create_qp", d.id.String(), hint(syscall.EOPNOTSUPP, "iWARP has no datagrams"))
	}
	var err error
	if d.shared, err = devices.acquire(d.id.DeviceName()); err != nil {
		return err
	}
	dev := d.shared.dev
	port, err := dev.QueryPort(d.id.PortNum())
	if err != nil {
		return err
	}
	if err := d.cfg.settle(port.ActiveMTU.Bytes()); err != nil {
		return wrap("rdma_create_qp", d.id.String(), err)
	}
	if d.pd, err = dev.AllocPD(); err != nil {
		return err
	}
	d.paths = newAHCache(d.pd, d.cfg.Paths)
	for i, depth := range []int{d.cfg.SendDepth, d.cfg.RecvDepth} {
		if d.comps[i], err = dev.CreateCompChannel(); err != nil {
			return err
		}
		// A QP may grant more than was asked for.
		if d.cqs[i], err = dev.CreateCQ(2*depth+1, ibverbs.CQOptions{Channel: d.comps[i]}); err != nil {
			return err
		}
	}
	d.qp, err = d.id.CreateQP(d.pd, ibverbs.QPInitAttr{
		Type: ibverbs.QPTypeUD, SendCQ: d.cqs[0], RecvCQ: d.cqs[1],
		Cap: ibverbs.QPCap{MaxSendWR: uint32(d.cfg.SendDepth), MaxRecvWR: uint32(d.cfg.RecvDepth), MaxSendSGE: 1, MaxRecvSGE: 1},
	})
	if err != nil {
		return err
	}
	if err := d.out.open(d); err != nil {
		return err
	}
	if err := d.in.open(d); err != nil {
		return err
	}
	if err := d.openGroups(); err != nil {
		return err
	}
	return d.id.Listen(0)
}

// openGroups makes the ID that takes part in groups on behalf of the QP.
func (d *Datagram) openGroups() (err error) {
	if d.groups, err = d.channel.CreateID(PortSpaceUDP); err != nil {
		return err
	}
	d.groups.qp.Store(d.qp)
	return d.groups.BindAddr(netip.AddrPortFrom(d.Addr().Addr(), 0))
}

// settle fills in the defaults.
func (cfg *DatagramConfig) settle(mtu int) error {
	for _, f := range []struct {
		name     string
		value    *int
		standard int
		most     int
	}{
		{"SendDepth", &cfg.SendDepth, defaultDepth, 1 << 14}, {"RecvDepth", &cfg.RecvDepth, defaultDepth, 1 << 14},
		{"Size", &cfg.Size, mtu, mtu}, {"Paths", &cfg.Paths, defaultPaths, 1 << 20},
	} {
		if *f.value == 0 {
			*f.value = f.standard
		}
		if *f.value < 1 || *f.value > f.most {
			return hint(syscall.EINVAL, "%s is %d; 1 to %d are possible", f.name, *f.value, f.most)
		}
	}
	cfg.ResolveTimeout = orDefault(cfg.ResolveTimeout, defaultResolve)
	return nil
}

// Addr is the address that the Datagram is bound to.
func (d *Datagram) Addr() netip.AddrPort { return d.id.LocalAddr() }

// DeviceName is the RDMA device that it runs over.
func (d *Datagram) DeviceName() string { return d.id.DeviceName() }

// QPN is the number of its queue pair, Peer.QPN to others.
func (d *Datagram) QPN() uint32 { return d.qp.QPN() }

// Size is how long a message may be, in bytes.
func (d *Datagram) Size() int { return d.cfg.Size }

// String names the Datagram in errors: "rxe0/id7".
func (d *Datagram) String() string { return d.id.String() }

// closedErr is what ended the Datagram: net.ErrClosed, ErrDeviceRemoved.
func (d *Datagram) closedErr() error { return context.Cause(d.ctx) }

// Done is closed when the Datagram has ended: by Close, or by the removal of
// its device.
func (d *Datagram) Done() <-chan struct{} { return d.ctx.Done() }

// serve answers those who look the Datagram up, until it has ended.
func (d *Datagram) serve() {
	defer close(d.served)
	for {
		ev, err := d.channel.GetEvent(d.ctx)
		if err != nil {
			return
		}
		switch ev.Type {
		case EventConnectRequest:
			// Where it fails the peer has given up, and asks again if it cares.
			ev.ID.Accept(ConnParam{QPN: d.qp.QPN()})
			ev.ID.Close()
		case EventMulticastJoin, EventMulticastError:
			d.joined(ev)
		case EventDeviceRemoval, EventAddrChange:
			if ev.Type == EventDeviceRemoval {
				devices.forget(d.shared)
			}
			d.end(ev.Err())
		}
	}
}

// Close leaves all groups, wakes Send, Receive and their like with net.ErrClosed
// and frees everything. What has been sent may still be on its way. Closing
// twice is no error.
func (d *Datagram) Close() error {
	d.end(net.ErrClosed)
	return d.free()
}

// free gives everything back. What fails stops it; called again it goes on from
// there.
func (d *Datagram) free() error {
	d.closeMu.Lock()
	defer d.closeMu.Unlock()
	if d.served != nil {
		<-d.served
	}
	if err := closeAll(closing(d.id), closing(d.groups), closing(d.channel)); err != nil {
		return err
	}
	// Send and Receive hold these while they use what goes now.
	defer d.out.lock.take()()
	defer d.in.lock.take()()
	if err := closeAll(closing(d.qp), d.in.close, d.out.close); err != nil {
		return err
	}
	if d.paths != nil {
		if err := d.paths.close(); err != nil {
			return err
		}
	}
	if err := closeAll(closing(d.cqs[0]), closing(d.cqs[1]), closing(d.comps[0]), closing(d.comps[1]), closing(d.pd)); err != nil {
		return err
	}
	if d.shared != nil {
		if err := devices.release(d.shared); err != nil {
			return err
		}
		d.shared = nil
	}
	return nil
}
