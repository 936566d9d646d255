package rdmacm_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// thin is an ID on a channel of its own, driven by hand.
type thin struct {
	channel *rdmacm.EventChannel
	id      *rdmacm.ID
}

func newThin(t testing.TB) *thin {
	t.Helper()
	return newThinIn(t, rdmacm.PortSpaceTCP)
}

func newThinIn(t testing.TB, ps rdmacm.PortSpace) *thin {
	t.Helper()
	channel := verbstest.Must[*rdmacm.EventChannel](t)(rdmacm.CreateEventChannel())
	verbstest.Close(t, channel)
	id := verbstest.Must[*rdmacm.ID](t)(channel.CreateID(ps))
	verbstest.Close(t, id)
	return &thin{channel, id}
}

func (p *thin) event(t testing.TB) *rdmacm.Event {
	t.Helper()
	return verbstest.Must[*rdmacm.Event](t)(p.channel.GetEvent(verbstest.Context(t)))
}

func (p *thin) await(t testing.TB, want rdmacm.EventType) *rdmacm.Event {
	t.Helper()
	ev := p.event(t)
	if ev.Type != want {
		t.Fatalf("event %v (%v), want %v", ev.Type, ev.Err(), want)
	}
	return ev
}

func (p *thin) resolve(t testing.TB, addr netip.AddrPort) {
	t.Helper()
	if err := p.id.ResolveAddr(netip.AddrPort{}, addr, verbstest.Limit); err != nil {
		t.Fatal(err)
	}
	p.await(t, rdmacm.EventAddrResolved)
	if err := p.id.ResolveRoute(verbstest.Limit); err != nil {
		t.Fatal(err)
	}
	p.await(t, rdmacm.EventRouteResolved)
}

// createQP gives the ID a QP on a device that the test opens.
func (p *thin) createQP(t testing.TB) *ibverbs.QP {
	t.Helper()
	qp, err := p.id.CreateQP(newQPAttr(t, p.id.DeviceName()))
	if err != nil {
		t.Fatal(err)
	}
	verbstest.Close(t, qp)
	return qp
}

func newQPAttr(t testing.TB, device string) (*ibverbs.PD, ibverbs.QPInitAttr) {
	t.Helper()
	dev := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(device))
	verbstest.Close(t, dev)
	cq := verbstest.CQ(t, dev, 64)
	return verbstest.PD(t, dev), ibverbs.QPInitAttr{
		Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq,
		Cap: ibverbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1},
	}
}

func thinListener(t testing.TB, target *verbstest.Target) *thin {
	t.Helper()
	p := newThin(t)
	if err := p.id.BindAddr(netip.AddrPortFrom(target.Addr, 0)); err != nil {
		t.Fatal(err)
	}
	if err := p.id.Listen(0); err != nil {
		t.Fatal(err)
	}
	if p.id.LocalAddr().Port() == 0 {
		t.Fatal("the listener has no port")
	}
	return p
}

// TestThinLayer goes through a connection's life event by event.
func TestThinLayer(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		listener := thinListener(t, target)
		client := newThin(t)
		client.resolve(t, listener.id.LocalAddr())
		if client.id.DeviceName() != target.Dev.Name() || client.id.PortNum() != 1 {
			t.Errorf("resolved to %s port %d", client.id.DeviceName(), client.id.PortNum())
		}
		qp := client.createQP(t)
		param := rdmacm.ConnParam{PrivateData: []byte("hello"), ResponderResources: 3, InitiatorDepth: 2, RetryCount: 7, RNRRetryCount: 7}
		if err := client.id.Connect(param); err != nil {
			t.Fatal(err)
		}

		ev := listener.await(t, rdmacm.EventConnectRequest)
		if ev.ListenID != listener.id || ev.ID == listener.id || !bytes.HasPrefix(ev.PrivateData, param.PrivateData) {
			t.Errorf("request %+v", ev)
		}
		if ev.ID.PeerAddr().Addr() != target.Addr || ev.ID.DeviceName() != target.Dev.Name() {
			t.Errorf("the request comes from %v over %s", ev.ID.PeerAddr(), ev.ID.DeviceName())
		}
		server := &thin{newThin(t).channel, ev.ID}
		verbstest.Close(t, ev.ID)
		server.createQP(t)
		if err := ev.ID.Migrate(server.channel); err != nil {
			t.Fatal(err)
		}
		if err := ev.ID.Accept(rdmacm.ConnParam{ResponderResources: rdmacm.MaxDepth, InitiatorDepth: rdmacm.MaxDepth, RNRRetryCount: 7}); err != nil {
			t.Fatal(err)
		}
		client.await(t, rdmacm.EventEstablished)
		if ev := server.await(t, rdmacm.EventEstablished); ev.ID != server.id {
			t.Errorf("ESTABLISHED is for %v, want %v", ev.ID, server.id)
		}
		if attr, err := qp.Query(0); target.Dev.Info().Transport == ibverbs.TransportIB && (err != nil || attr.State != ibverbs.QPStateRTS || attr.MinRNRTimer != 12) {
			t.Errorf("the connected QP: %+v, %v", attr, err)
		}

		if err := client.id.Disconnect(); err != nil {
			t.Fatal(err)
		}
		server.await(t, rdmacm.EventDisconnected)
		server.id.Disconnect()
		if ev := client.event(t); !errors.Is(ev.Err(), rdmacm.ErrDisconnected) {
			t.Errorf("after disconnecting: %v, %v", ev.Type, ev.Err())
		}
	})
}

// TestOwnQP: a QP that the ID does not know is connected by the user.
func TestOwnQP(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		client := newThin(t)
		client.resolve(t, l.Addr())
		pd, attr := newQPAttr(t, client.id.DeviceName())
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(attr))
		verbstest.Close(t, qp)
		move := func(states ...ibverbs.QPState) {
			t.Helper()
			for _, state := range states {
				attr, mask, err := client.id.InitQPAttr(state)
				if err != nil {
					t.Fatal(err)
				}
				if mask&ibverbs.QPAttrState == 0 {
					continue // iWARP's RTS
				}
				if err := qp.Modify(attr, mask); err != nil {
					t.Fatal(err)
				}
			}
		}
		move(ibverbs.QPStateInit)
		if err := client.id.Connect(rdmacm.ConnParam{QPN: qp.QPN(), RetryCount: 7, RNRRetryCount: 7}); err != nil {
			t.Fatal(err)
		}
		if ev := client.event(t); ev.Type == rdmacm.EventConnectResponse {
			move(ibverbs.QPStateInit, ibverbs.QPStateRTR, ibverbs.QPStateRTS)
			if err := client.id.Establish(); err != nil {
				t.Fatal(err)
			}
		} else if ev.Type != rdmacm.EventEstablished {
			t.Fatalf("event %v: %v", ev.Type, ev.Err())
		}
		server, err := l.Accept(verbstest.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		client.await(t, rdmacm.EventDisconnected)
	})
}

// TestCloseUnreadEvent: an ID whose events nobody has read closes at once
// (report 17), and events of a closed ID are dropped.
func TestCloseUnreadEvent(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		p := newThin(t)
		if err := p.id.ResolveAddr(netip.AddrPort{}, l.Addr(), verbstest.Limit); err != nil {
			t.Fatal(err)
		}
		second := verbstest.Must[*rdmacm.ID](t)(p.channel.CreateID(rdmacm.PortSpaceTCP))
		verbstest.Close(t, second)
		if err := p.id.Close(); err != nil {
			t.Fatal(err)
		}
		if err := second.ResolveAddr(netip.AddrPort{}, l.Addr(), verbstest.Limit); err != nil {
			t.Fatal(err)
		}
		if ev := p.await(t, rdmacm.EventAddrResolved); ev.ID != second {
			t.Errorf("got an event of %v, which is closed", ev.ID)
		}
	})
}

// TestCloseListenerUnreadRequest: requests that nobody has read go with the
// listener, and their peers are told.
func TestCloseListenerUnreadRequest(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		listener := thinListener(t, target)
		addr := listener.id.LocalAddr()
		result := make(chan error)
		requested := make(chan struct{})
		go func() {
			d := rdmacm.Dialer{Config: rdmacm.Config{Prepare: func(*rdmacm.Conn) error { close(requested); return nil }}}
			_, err := d.DialContext(verbstest.Context(t), addr.String())
			result <- err
		}()
		<-requested
		listener.await(t, rdmacm.EventConnectRequest).ID.Close()
		if err := <-result; !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the peer of a dropped request: %v, want ECONNREFUSED", err)
		}
	})
}

func TestThinClosed(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		channel := verbstest.Must[*rdmacm.EventChannel](t)(rdmacm.CreateEventChannel())
		other := verbstest.Must[*rdmacm.EventChannel](t)(rdmacm.CreateEventChannel())
		id := verbstest.Must[*rdmacm.ID](t)(channel.CreateID(rdmacm.PortSpaceTCP))
		if err := channel.Close(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("closing a channel with an ID: %v, want EBUSY", err)
		}
		waiting := make(chan error)
		go func() {
			_, err := channel.GetEvent(context.Background())
			waiting <- err
		}()
		if err := errors.Join(id.Close(), id.Close(), channel.Close(), channel.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
		_, getErr := channel.GetEvent(context.Background())
		_, createErr := channel.CreateID(rdmacm.PortSpaceTCP)
		_, _, attrErr := id.InitQPAttr(ibverbs.QPStateInit)
		_, qpErr := id.CreateQP(nil, ibverbs.QPInitAttr{})
		addr := netip.AddrPortFrom(target.Addr, 0)
		for name, err := range map[string]error{
			"a waiting GetEvent": <-waiting, "GetEvent": getErr, "CreateID": createErr,
			"InitQPAttr": attrErr, "CreateQP": qpErr,
			"BindAddr":     id.BindAddr(addr),
			"ResolveAddr":  id.ResolveAddr(addr, addr, time.Second),
			"ResolveRoute": id.ResolveRoute(time.Second),
			"Listen":       id.Listen(0),
			"Connect":      id.Connect(rdmacm.ConnParam{}),
			"Accept":       id.Accept(rdmacm.ConnParam{}),
			"Establish":    id.Establish(),
			"Reject":       id.Reject(nil),
			"Disconnect":   id.Disconnect(),
			"Migrate":      id.Migrate(other),
			"SetTOS":       id.SetTOS(0),
		} {
			var opErr *ibverbs.OpError
			if !errors.Is(err, net.ErrClosed) || !errors.As(err, &opErr) {
				t.Errorf("%s after Close: %v, want net.ErrClosed", name, err)
			}
		}
	})
}

// TestThinWrongOrder: calls that come too early fail, and say what is missing.
func TestThinWrongOrder(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		p := newThin(t)
		_, qpErr := p.id.CreateQP(verbstest.PD(t, target.Dev), ibverbs.QPInitAttr{})
		for name, err := range map[string]error{
			"CreateQP":     qpErr,
			"ResolveRoute": p.id.ResolveRoute(time.Second),
			"Connect":      p.id.Connect(rdmacm.ConnParam{}),
			"Accept":       p.id.Accept(rdmacm.ConnParam{}),
			"Establish":    p.id.Establish(),
			"Disconnect":   p.id.Disconnect(),
		} {
			if !errors.Is(err, syscall.EINVAL) {
				t.Errorf("%s on a new ID: %v, want EINVAL", name, err)
			}
		}
		if err := p.id.SetTOS(8); err != nil {
			t.Error(err)
		}
		if err := p.id.SetReuseAddr(true); err != nil {
			t.Error(err)
		}
		if err := p.id.SetAFOnly(true); err != nil {
			t.Error(err)
		}
		if err := p.id.SetAckTimeout(14); err != nil {
			t.Error(err)
		}
	})
}

// TestDatagramService looks up a datagram service's QP.
func TestDatagramService(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		server := newThinIn(t, rdmacm.PortSpaceUDP)
		if err := server.id.BindAddr(netip.AddrPortFrom(target.Addr, 0)); err != nil {
			t.Fatal(err)
		}
		if err := server.id.Listen(0); err != nil {
			t.Fatal(err)
		}
		client := newThinIn(t, rdmacm.PortSpaceUDP)
		client.resolve(t, server.id.LocalAddr())
		if err := client.id.Connect(rdmacm.ConnParam{PrivateData: []byte("who?")}); err != nil {
			t.Fatal(err)
		}
		ev := server.await(t, rdmacm.EventConnectRequest)
		verbstest.Close(t, ev.ID)
		if !bytes.HasPrefix(ev.PrivateData, []byte("who?")) {
			t.Errorf("the request says %q", ev.PrivateData)
		}
		pd, attr := newQPAttr(t, ev.ID.DeviceName())
		attr.Type = ibverbs.QPTypeUD
		qp := verbstest.Must[*ibverbs.QP](t)(ev.ID.CreateQP(pd, attr))
		verbstest.Close(t, qp)
		if state, err := qp.State(); state != ibverbs.QPStateRTS {
			t.Errorf("the new QP is in %v, %v; want RTS", state, err)
		}
		if err := ev.ID.Accept(rdmacm.ConnParam{}); err != nil {
			t.Fatal(err)
		}
		const udpQKey = 0x01234567 // RDMA_UDP_QKEY
		if ev := client.await(t, rdmacm.EventEstablished); ev.Param.QPN != qp.QPN() || ev.QKey != udpQKey {
			t.Errorf("the service's QP is %d with QKey %#x, want %d with %#x", ev.Param.QPN, ev.QKey, qp.QPN(), udpQKey)
		}
	}, verbstest.Datagrams)
}
