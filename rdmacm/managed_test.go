package rdmacm_test

import (
	"bytes"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// managedEnd is an ID whose QP librdmacm made.
type managedEnd struct {
	*thin
	dev *ibverbs.Device
	pd  *ibverbs.PD
	cq  *ibverbs.CQ
	qp  *ibverbs.QP
	srq *ibverbs.SRQ
	mr  *ibverbs.MR
}

// manage gives an ID a managed QP, with an SRQ if shared is set, and posts a
// receive.
func manage(t *testing.T, p *thin, typ ibverbs.QPType, shared bool, change func(*ibverbs.QPInitAttr)) *managedEnd {
	t.Helper()
	m := &managedEnd{thin: p}
	m.dev = verbstest.Must[*ibverbs.Device](t)(p.id.LibraryDevice())
	m.pd, m.cq = verbstest.PD(t, m.dev), verbstest.CQ(t, m.dev, 64)
	m.mr = verbstest.MR(t, m.pd, 4096)
	attr := ibverbs.QPInitAttr{Type: typ, SendCQ: m.cq, RecvCQ: m.cq, Cap: ibverbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}}
	if shared {
		m.srq = verbstest.Must[*ibverbs.SRQ](t)(p.id.CreateManagedSRQ(m.pd, ibverbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1}))
		verbstest.Close(t, m.srq)
		attr.SRQ = m.srq
	}
	if change != nil {
		change(&attr)
	}
	m.qp = verbstest.Must[*ibverbs.QP](t)(p.id.CreateManagedQP(m.pd, attr))
	verbstest.Close(t, m.qp)
	wr := ibverbs.RecvWR{WRID: 9, SGList: []ibverbs.SGE{m.mr.SGE(0, 2048)}}
	if shared {
		if _, err := m.srq.PostRecv([]ibverbs.RecvWR{wr}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	verbstest.Receive(t, m.qp, wr)
	return m
}

func (m *managedEnd) send(t *testing.T, to *managedEnd, text string) {
	t.Helper()
	copy(m.mr.Bytes()[2048:], text)
	verbstest.Post(t, m.qp, ibverbs.SendWR{WRID: 8, Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{m.mr.SGE(2048, len(text))}})
	verbstest.Complete(t, m.cq, 1)
	wc := verbstest.Complete(t, to.cq, 1)[0]
	if got := to.mr.Bytes()[:wc.ByteLen]; wc.WRID != 9 || !bytes.Equal(got, []byte(text)) {
		t.Errorf("received %q with %+v", got, wc)
	}
}

// managedPair connects two IDs with managed QPs.
func managedPair(t *testing.T, target *verbstest.Target, shared bool) (client, server *managedEnd) {
	t.Helper()
	listener := thinListener(t, target)
	p := newThin(t)
	p.resolve(t, listener.id.LocalAddr())
	client = manage(t, p, ibverbs.QPTypeRC, false, nil)
	if err := p.id.Connect(rdmacm.ConnParam{ResponderResources: 2, InitiatorDepth: 2, RetryCount: 7, RNRRetryCount: 7}); err != nil {
		t.Fatal(err)
	}
	q := &thin{listener.channel, listener.await(t, rdmacm.EventConnectRequest).ID}
	verbstest.Close(t, q.id)
	server = manage(t, q, ibverbs.QPTypeRC, shared, nil)
	if err := q.id.Accept(rdmacm.ConnParam{ResponderResources: 2, InitiatorDepth: 2, RNRRetryCount: 7}); err != nil {
		t.Fatal(err)
	}
	p.await(t, rdmacm.EventEstablished)
	q.await(t, rdmacm.EventEstablished)
	return client, server
}

// TestManagedQP: QPs that librdmacm makes and moves carry data, READs among
// it, and what is posted when the connection ends comes back flushed.
func TestManagedQP(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		client, server := managedPair(t, target, false)
		client.send(t, server, "made by librdmacm")
		verbstest.Receive(t, server.qp, ibverbs.RecvWR{WRID: 9, SGList: []ibverbs.SGE{server.mr.SGE(0, 2048)}})
		server.send(t, client, "and so am I")

		copy(server.mr.Bytes()[3000:], "read me")
		verbstest.Post(t, client.qp, ibverbs.SendWR{
			Opcode: ibverbs.WRRDMARead, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{client.mr.SGE(1000, 7)},
			RemoteAddr: server.mr.Addr() + 3000, RKey: server.mr.RKey(),
		})
		verbstest.Complete(t, client.cq, 1)
		if got := string(client.mr.Bytes()[1000:1007]); got != "read me" {
			t.Errorf("read %q", got)
		}
		if got := client.id.QP(); got != client.qp {
			t.Errorf("the ID's QP is %v, want %v", got, client.qp)
		}
		if err := client.id.Disconnect(); err != nil {
			t.Fatal(err)
		}
		server.await(t, rdmacm.EventDisconnected)
		server.id.Disconnect()
		if wc := verbstest.Poll(t, server.cq, 1)[0]; wc.Status != ibverbs.WCStatusWRFlushErr || wc.WRID != 9 {
			t.Errorf("the posted receive ended as %+v, want flushed", wc)
		}
		client.await(t, rdmacm.EventDisconnected)
	})
}

// TestManagedLifetime: nothing goes before what stands on it.
func TestManagedLifetime(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		client, server := managedPair(t, target, true)
		client.send(t, server, "taken from the SRQ")
		if client.dev != server.dev {
			t.Errorf("two devices over one context: %v and %v", client.dev, server.dev)
		}
		busy := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, syscall.EBUSY) {
				t.Errorf("closing %s: %v, want EBUSY", what, err)
			}
		}
		busy("an ID with a QP", server.id.Close())
		busy("an SRQ with a QP", server.srq.Close())
		busy("a device with PDs", server.dev.Close())
		if err := server.qp.Close(); err != nil {
			t.Fatal(err)
		}
		if server.id.QP() != nil {
			t.Error("the ID keeps a QP that is gone")
		}
		busy("an ID with an SRQ", server.id.Close())
		if err := errors.Join(server.srq.Close(), server.id.Close(), server.id.Close()); err != nil {
			t.Error(err)
		}
		busy("the other ID", client.id.Close())
		if err := client.qp.Close(); err != nil {
			t.Fatal(err)
		}
		busy("the device's last ID", client.id.Close())
		for _, end := range []*managedEnd{client, server} {
			if err := errors.Join(end.mr.Close(), end.cq.Close(), end.cq.Channel().Close(), end.pd.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.id.Close(); err != nil {
			t.Error(err)
		}
		if _, err := client.dev.Query(); err == nil {
			t.Error("the device outlives its IDs")
		}
	})
}

// TestManagedErrors: what cannot be is refused, and leaves nothing.
func TestManagedErrors(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		p := newThin(t)
		if _, err := p.id.LibraryDevice(); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("LibraryDevice without a device: %v, want EINVAL", err)
		}
		if err := p.id.BindAddr(netip.AddrPortFrom(target.Addr, 0)); err != nil {
			t.Fatal(err)
		}
		other, attr := newQPAttr(t, p.id.DeviceName())
		if _, err := p.id.CreateManagedQP(other, attr); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("a PD of another open device: %v, want EINVAL", err)
		}
		if _, err := p.id.CreateManagedSRQ(other, ibverbs.SRQInitAttr{MaxWR: 1}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("an SRQ on a PD of another open device: %v, want EINVAL", err)
		}
		dev := verbstest.Must[*ibverbs.Device](t)(p.id.LibraryDevice())
		pd, cq := verbstest.PD(t, dev), verbstest.CQ(t, dev, 8)
		attr = ibverbs.QPInitAttr{Type: ibverbs.QPTypeUD, SendCQ: cq, RecvCQ: cq}
		if _, err := p.id.CreateManagedQP(pd, attr); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("a UD QP for a connection: %v, want EINVAL", err)
		}
		attr.Type, attr.Cap = ibverbs.QPTypeRC, ibverbs.QPCap{MaxSendWR: 1 << 30, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
		if _, err := p.id.CreateManagedQP(pd, attr); err == nil {
			t.Error("a QP of 2^30 work requests was made")
		}
		attr.Cap.MaxSendWR, attr.CreateFlags = 1, ibverbs.QPCreateScatterFCS
		if _, err := p.id.CreateManagedQP(pd, attr); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("an extended QP: %v, want errors.ErrUnsupported", err)
		}
		if _, err := p.id.CreateManagedSRQ(pd, ibverbs.SRQInitAttr{Type: ibverbs.SRQTypeTM, MaxWR: 1, MaxSGE: 1, CQ: cq, MaxTags: 1, MaxOps: 1}); err == nil {
			t.Error("an SRQ with tags was made")
		}
		attr.CreateFlags = 0
		qp := verbstest.Must[*ibverbs.QP](t)(p.id.CreateManagedQP(pd, attr))
		if _, err := p.id.CreateManagedQP(pd, attr); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("a second QP: %v, want EINVAL", err)
		}
		if err := p.id.SetLocalECE(ibverbs.ECE{VendorID: 1}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("ECE options beside a managed QP: %v, want EINVAL", err)
		}
		if err := qp.Close(); err != nil {
			t.Fatal(err)
		}
		again := verbstest.Must[*ibverbs.QP](t)(p.id.CreateManagedQP(pd, attr))
		verbstest.Close(t, again)
	})
}

// TestManagedUD: librdmacm's datagram QP receives from a group that the ID
// joins, and from a peer.
func TestManagedUD(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newThinIn(t, rdmacm.PortSpaceUDP)
		if err := p.id.BindAddr(netip.AddrPortFrom(target.Addr, 0)); err != nil {
			t.Fatal(err)
		}
		m := manage(t, p, ibverbs.QPTypeUD, false, nil)
		if err := p.id.JoinMulticast(testGroup); err != nil {
			t.Fatal(err)
		}
		p.await(t, rdmacm.EventMulticastJoin)
		sender := newMember(t, target)
		if err := sender.id.JoinMulticastEx(testGroup, rdmacm.JoinSendOnly); err != nil {
			t.Fatal(err)
		}
		sender.send(t, sender.await(t, rdmacm.EventMulticastJoin), "to librdmacm's QP")
		verbstest.Complete(t, sender.qp.SendCQ(), 1)
		wc := verbstest.Complete(t, m.cq, 1)[0]
		if got := string(m.mr.Bytes()[ibverbs.GRHSize:wc.ByteLen]); got != "to librdmacm's QP" {
			t.Errorf("received %q", got)
		}
		if err := m.qp.Close(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("closing a QP in a group: %v, want EBUSY", err)
		}
		if err := p.id.LeaveMulticast(testGroup); err != nil {
			t.Error(err)
		}
	}, verbstest.Datagrams)
}

// TestManagedCloseWhileEvents: a managed QP goes while events are taken, which
// librdmacm acts upon.
func TestManagedCloseWhileEvents(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		for range 10 {
			listener := thinListener(t, target)
			p := newThin(t)
			p.resolve(t, listener.id.LocalAddr())
			client := manage(t, p, ibverbs.QPTypeRC, false, nil)
			if err := p.id.Connect(rdmacm.ConnParam{RetryCount: 7}); err != nil {
				t.Fatal(err)
			}
			q := &thin{listener.channel, listener.await(t, rdmacm.EventConnectRequest).ID}
			server := manage(t, q, ibverbs.QPTypeRC, false, nil)
			if err := q.id.Accept(rdmacm.ConnParam{}); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() { p.channel.GetEvent(verbstest.Context(t)) })
			wg.Go(func() {
				if err := client.qp.Close(); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
			if err := errors.Join(server.qp.Close(), q.id.Close()); err != nil {
				// The server's PD and CQ close with the test.
				if !errors.Is(err, syscall.EBUSY) {
					t.Error(err)
				}
			}
			verbstest.Close(t, q.id)
		}
	})
}
