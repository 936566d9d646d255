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

var errMismatch = errors.New("received other data than was sent")

func TestEcho(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		for _, addr := range []netip.Addr{target.Addr, target.Addr6} {
			if !addr.IsValid() {
				t.Fatalf("%s has no IPv6 address", target.Netdev)
			}
			l := listenOn(t, netip.AddrPortFrom(addr, 0).String(), rdmacm.ListenConfig{Config: prepared})
			client, server := connect(t, l, rdmacm.Dialer{Config: prepared})
			mustEcho(t, client, server)
			checkAddrs(t, target, l, client, server)
		}
	})
}

func checkAddrs(t *testing.T, target *verbstest.Target, l *rdmacm.Listener, client, server *rdmacm.Conn) {
	t.Helper()
	if client.RemoteAddr() != l.Addr() || server.LocalAddr() != l.Addr() {
		t.Errorf("the listener is %v, the dialing side's peer %v, the accepting side %v", l.Addr(), client.RemoteAddr(), server.LocalAddr())
	}
	// siw does not tell the dialing side its port.
	if client.LocalAddr().Addr() != server.RemoteAddr().Addr() {
		t.Errorf("the dialing side is %v, the accepting side's peer %v", client.LocalAddr(), server.RemoteAddr())
	}
	for _, c := range []*rdmacm.Conn{client, server} {
		if c.DeviceName() != target.Dev.Name() || c.PortNum() != target.Port {
			t.Errorf("%v runs over %s port %d, want %s port %d", c, c.DeviceName(), c.PortNum(), target.Dev.Name(), target.Port)
		}
		if c.Err() != nil {
			t.Errorf("%v: %v while it lives", c, c.Err())
		}
		iwarp := target.Dev.Info().Transport == ibverbs.TransportIWARP
		if tr := c.Transport(); tr.DialerSendsFirst != iwarp || tr.Immediate == iwarp {
			t.Errorf("transport of %v: %+v", c, tr)
		}
		if n := c.Negotiated(); n.InitiatorDepth == 0 || n.ResponderResources == 0 {
			t.Errorf("%v cannot READ by default: %+v", c, n)
		}
	}
}

// TestReadWrite moves data one-sided, both ways.
func TestReadWrite(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{Config: prepared})
		client, server := connect(t, l, rdmacm.Dialer{Config: prepared})
		mustEcho(t, client, server)
		for _, dir := range [][2]*rdmacm.Conn{{client, server}, {server, client}} {
			here, there := dir[0].UserData().(*end), dir[1].UserData().(*end)
			verbstest.Pattern(there.send.Bytes(), 7)
			for _, wr := range []ibverbs.SendWR{
				{Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{here.send.SGE(0, bufSize)}, RemoteAddr: there.send.Addr(), RKey: there.send.RKey()},
				{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{here.send.SGE(0, bufSize)}, RemoteAddr: there.recv.Addr(), RKey: there.recv.RKey()},
				// Its answer follows the WRITE's data.
				{Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{here.recv.SGE(0, bufSize)}, RemoteAddr: there.recv.Addr(), RKey: there.recv.RKey()},
			} {
				wr.Flags = ibverbs.SendSignaled
				verbstest.Post(t, dir[0].QP(), wr)
				verbstest.Complete(t, dir[0].SendCQ(), 1)
			}
			for _, b := range [][]byte{here.send.Bytes(), here.recv.Bytes(), there.recv.Bytes()} {
				if !bytes.Equal(b, there.send.Bytes()) {
					t.Errorf("%v: %v", dir[0], errMismatch)
				}
			}
		}
	})
}

func TestPrivateData(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		request, reply := []byte("from the dialing side"), []byte("from the accepting side")
		seen := make(chan []byte, 1)
		l := listen(t, target, rdmacm.ListenConfig{
			PrivateData: []byte("replaced by OnRequest"),
			OnRequest: func(r *rdmacm.Request) error {
				seen <- r.PrivateData()
				r.Reply = reply
				return nil
			},
		})
		client, server := connect(t, l, rdmacm.Dialer{PrivateData: request})
		for name, got := range map[string][2][]byte{
			"OnRequest":          {<-seen, request},
			"the accepting side": {server.PrivateData(), request},
			"the dialing side":   {client.PrivateData(), reply},
		} {
			if !bytes.HasPrefix(got[0], got[1]) || len(bytes.TrimRight(got[0][len(got[1]):], "\x00")) > 0 {
				t.Errorf("%s saw private data %q, want %q and zeros", name, got[0], got[1])
			}
		}
	})
}

func TestPrivateDataTooLong(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		d := rdmacm.Dialer{PrivateData: make([]byte, rdmacm.MaxPrivateData+1)}
		if _, err := d.DialContext(verbstest.Context(t), l.Addr().String()); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("256 bytes of private data: %v, want EINVAL", err)
		}
	})
}

// TestDisconnect: both ways of leaving are seen by the peer, whose posted
// receive comes back flushed.
func TestDisconnect(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{Config: prepared})
		for name, leave := range map[string]func(*rdmacm.Conn) error{
			"Close":      (*rdmacm.Conn).Close,
			"Disconnect": (*rdmacm.Conn).Disconnect,
		} {
			client, server := connect(t, l, rdmacm.Dialer{Config: prepared})
			mustEcho(t, client, server)
			if err := leave(client); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := client.Err(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: own Err is %v, want net.ErrClosed", name, err)
			}
			ended(t, server)
			if err := server.Err(); !errors.Is(err, rdmacm.ErrDisconnected) {
				t.Errorf("%s: the peer's Err is %v, want ErrDisconnected", name, err)
			}
			if cause := context.Cause(server.Context()); cause != server.Err() {
				t.Errorf("%s: the context's cause is %v", name, cause)
			}
			if wc := verbstest.Poll(t, server.RecvCQ(), 1)[0]; wc.Status != ibverbs.WCStatusWRFlushErr {
				t.Errorf("%s: the peer's receive ended with %v", name, wc.Status)
			}
		}
	})
}

// TestDisconnectFlushes: after Disconnect the QP, CQs and memory are still
// there, and what was posted can be seen to end.
func TestDisconnectFlushes(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{Config: prepared})
		client, server := connect(t, l, rdmacm.Dialer{Config: prepared})
		mustEcho(t, client, server)
		if err := client.Disconnect(); err != nil {
			t.Fatal(err)
		}
		if wc := verbstest.Poll(t, client.RecvCQ(), 1)[0]; wc.Status != ibverbs.WCStatusWRFlushErr {
			t.Errorf("the receive ended with %v", wc.Status)
		}
	})
}

func TestCloseTwice(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{Config: prepared})
		client, server := connect(t, l, rdmacm.Dialer{Config: prepared})
		errs := make(chan error)
		for range 4 {
			go func() { errs <- client.Close() }()
			go func() { errs <- server.Close() }()
		}
		for range 8 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := client.Disconnect(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Disconnect after Close: %v, want net.ErrClosed", err)
		}
		if _, err := client.QP().PostRecv(nil); err == nil {
			t.Error("the QP works after Close")
		}
	})
}

// TestCloseUserMemory: memory on the connection's own PD that was not given to
// Own keeps Close from freeing the PD, and Close says so; it can be tried again.
func TestCloseUserMemory(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		client, server := connect(t, l, rdmacm.Dialer{})
		mr, err := client.PD().AllocMR(4096, verbstest.AllAccess, ibverbs.BufferOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("Close with an open MR: %v, want EBUSY", err)
		}
		ended(t, server)
		if err := mr.Close(); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Errorf("Close after the MR's: %v", err)
		}
	})
}

// TestOwnOrder: what was given to Own last is closed first.
func TestOwnOrder(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		client, _ := connect(t, l, rdmacm.Dialer{})
		var order []int
		for i := range 3 {
			client.Own(closerFunc(func() error { order = append(order, i); return nil }))
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if len(order) != 3 || order[0] != 2 || order[2] != 0 {
			t.Errorf("closed in order %v, want 2 1 0", order)
		}
	})
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// TestOwnPD: a connection on the user's PD and CQs frees neither.
func TestOwnPD(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		cq := verbstest.CQ(t, target.Dev, 1024)
		cfg := rdmacm.Config{PD: pd, SendCQ: cq, RecvCQ: cq}
		l := listen(t, target, rdmacm.ListenConfig{})
		client, server := connect(t, l, rdmacm.Dialer{Config: cfg})
		if client.PD() != pd || client.SendCQ() != cq || client.RecvCQ() != cq {
			t.Error("the connection does not use what it was given")
		}
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			t.Fatal(err)
		}
		verbstest.MR(t, pd, 4096)
	})
}

// silentPeer connects to l with the thin layer and then does nothing: it reads
// no event any more and never disconnects.
func silentPeer(t *testing.T, l *rdmacm.Listener) {
	t.Helper()
	p := newThin(t)
	p.resolve(t, l.Addr())
	p.createQP(t)
	if err := p.id.Connect(rdmacm.ConnParam{RetryCount: 7, RNRRetryCount: 7}); err != nil {
		t.Fatal(err)
	}
	p.await(t, rdmacm.EventEstablished)
}

// TestCloseSilentPeer: Close does not wait for a peer that never answers.
func TestCloseSilentPeer(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{Config: rdmacm.Config{Linger: time.Millisecond}})
		result := acceptOne(verbstest.Context(t), l)
		silentPeer(t, l)
		a := <-result
		if a.err != nil {
			t.Fatal(a.err)
		}
		closesInTime(t, a.conn)
	})
}
