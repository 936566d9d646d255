package rdmacm_test

import (
	"errors"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

var testGroup = netip.MustParseAddr("239.77.1.9")

// member is a bound datagram ID with a QP.
type member struct {
	*thin
	qp *ibverbs.QP
	mr *ibverbs.MR
}

func newMember(t *testing.T, target *verbstest.Target) *member {
	t.Helper()
	p := newThinIn(t, rdmacm.PortSpaceUDP)
	if err := p.id.BindAddr(netip.AddrPortFrom(target.Addr, 0)); err != nil {
		t.Fatal(err)
	}
	pd, attr := newQPAttr(t, p.id.DeviceName())
	attr.Type = ibverbs.QPTypeUD
	qp := verbstest.Must[*ibverbs.QP](t)(p.id.CreateQP(pd, attr))
	verbstest.Close(t, qp)
	m := &member{p, qp, verbstest.MR(t, pd, 4096)}
	t.Cleanup(func() { p.id.Close() }) // it leaves the groups, so that the QP can close
	m.receive(t)
	return m
}

func (m *member) receive(t *testing.T) {
	t.Helper()
	verbstest.Receive(t, m.qp, ibverbs.RecvWR{SGList: []ibverbs.SGE{m.mr.SGE(0, 2048)}})
}

// send sends text to the group that joined is about.
func (m *member) send(t *testing.T, joined *rdmacm.Event, text string) {
	t.Helper()
	ah := verbstest.AH(t, m.qp.PD(), joined.AH)
	copy(m.mr.Bytes()[2048:], text)
	verbstest.Post(t, m.qp, ibverbs.SendWR{
		Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{m.mr.SGE(2048, len(text))},
		AH: ah, RemoteQPN: ibverbs.McastQPN, RemoteQKey: joined.QKey,
	})
}

// TestMulticastID: what one ID sends to a group, the others that have joined it
// receive, and those no more that have left.
func TestMulticastID(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		group := testGroup
		receiver, sender := newMember(t, target), newMember(t, target)
		if err := receiver.id.JoinMulticast(group); err != nil {
			t.Fatal(err)
		}
		ev := receiver.await(t, rdmacm.EventMulticastJoin)
		if ev.Group != group || ev.QKey != rdmacm.UDPQKey || !ev.AH.IsGlobal || !ev.AH.DGID.IsMulticast() || ev.Err() != nil {
			t.Errorf("joined: %+v", ev)
		}
		if err := receiver.id.JoinMulticast(group); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("joining twice: %v, want EADDRINUSE", err)
		}
		if err := sender.id.JoinMulticastEx(group, rdmacm.JoinSendOnly); err != nil {
			t.Fatal(err)
		}
		joined := sender.await(t, rdmacm.EventMulticastJoin)
		sender.send(t, joined, "hello, all")
		// The one completion at the sender is the send's: nothing comes
		// to those who only send.
		if wc := verbstest.Complete(t, sender.qp.SendCQ(), 1)[0]; wc.Opcode != ibverbs.WCSend {
			t.Errorf("the sender completed %v", wc.Opcode)
		}
		wc := verbstest.Complete(t, receiver.qp.RecvCQ(), 1)[0]
		if got := string(receiver.mr.Bytes()[ibverbs.GRHSize:wc.ByteLen]); got != "hello, all" || wc.SrcQP != sender.qp.QPN() {
			t.Errorf("received %q from QP %d", got, wc.SrcQP)
		}
		if err := receiver.qp.Close(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("closing a QP in a group: %v, want EBUSY", err)
		}
		if err := receiver.id.LeaveMulticast(group); err != nil {
			t.Fatal(err)
		}
		if err := receiver.id.LeaveMulticast(group); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("leaving twice: %v, want EADDRNOTAVAIL", err)
		}
		if err := receiver.qp.Close(); err != nil {
			t.Errorf("closing the QP after that: %v", err)
		}
		if err := sender.id.JoinMulticast(netip.MustParseAddr("ff0e::77:9")); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("an IPv6 group: %v, want errors.ErrUnsupported", err)
		}
	}, verbstest.Datagrams)
}

// TestMulticastQPGone: a group whose QP could not be attached is reported as
// failed, and the ID closes.
func TestMulticastQPGone(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		m := newMember(t, target)
		if err := m.qp.Close(); err != nil {
			t.Fatal(err)
		}
		if err := m.id.JoinMulticast(testGroup); err != nil {
			t.Fatal(err)
		}
		if ev := m.await(t, rdmacm.EventMulticastError); !errors.Is(ev.Err(), os.ErrClosed) || ev.Group != testGroup {
			t.Errorf("%v: %v, want os.ErrClosed", ev.Group, ev.Err())
		}
		if err := m.id.Close(); err != nil {
			t.Error(err)
		}
	}, verbstest.Datagrams)
}

// TestMulticastRefused: what has no groups says so.
func TestMulticastRefused(t *testing.T) {
	group := testGroup
	each(t, func(t *testing.T, target *verbstest.Target) {
		unbound := newThinIn(t, rdmacm.PortSpaceUDP)
		if err := unbound.id.JoinMulticast(group); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("on an ID without a device: %v, want EINVAL", err)
		}
		if err := unbound.id.JoinMulticast(target.Addr); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("joining a host: %v, want EINVAL", err)
		}
		connected := newThin(t)
		if err := connected.id.BindAddr(netip.AddrPortFrom(target.Addr, 0)); err != nil {
			t.Fatal(err)
		}
		if err := connected.id.JoinMulticast(group); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("in port space TCP: %v, want EINVAL", err)
		}
	})
	verbstest.EachLacking(t, verbstest.Datagrams, func(t *testing.T, target *verbstest.Target) {
		p := newThinIn(t, rdmacm.PortSpaceUDP)
		err := p.id.BindAddr(netip.AddrPortFrom(target.Addr, 0))
		if err == nil {
			err = p.id.JoinMulticast(group)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("joining: %v, want errors.ErrUnsupported", err)
		}
	})
}
