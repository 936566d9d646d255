package rdmacm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

func newDatagram(t testing.TB, addr netip.Addr, cfg rdmacm.DatagramConfig) *rdmacm.Datagram {
	t.Helper()
	d, err := cfg.Listen(verbstest.Context(t), netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	verbstest.Close(t, d)
	return d
}

func lookup(t testing.TB, from, to *rdmacm.Datagram) rdmacm.Peer {
	t.Helper()
	return verbstest.Must[rdmacm.Peer](t)(from.Lookup(verbstest.Context(t), to.Addr().String(), []byte("hello")))
}

// receive takes one message.
func receive(t testing.TB, d *rdmacm.Datagram) (string, rdmacm.Received) {
	t.Helper()
	b := make([]byte, d.Size())
	n, r, err := d.Receive(verbstest.Context(t), b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n]), r
}

// TestDatagram: a question, and an answer to whoever has asked.
func TestDatagram(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for _, addr := range []netip.Addr{target.Addr, target.Addr6} {
			t.Run(addr.String(), func(t *testing.T) {
				ctx := verbstest.Context(t)
				server, client := newDatagram(t, addr, rdmacm.DatagramConfig{Device: target.Dev.Name()}), newDatagram(t, addr, rdmacm.DatagramConfig{TOS: 0x20})
				to := lookup(t, client, server)
				if to.QPN != server.QPN() || to.QKey != rdmacm.UDPQKey || to.Addr() != addr {
					t.Errorf("looked up %+v at %v", to, to.Addr())
				}
				if client.DeviceName() != target.Dev.Name() || client.Size() < 256 {
					t.Errorf("on %s, with messages of %d bytes", client.DeviceName(), client.Size())
				}
				for i := range 300 { // more than there are buffers
					question := fmt.Sprint("question ", i)
					if err := client.SendImm(ctx, []byte(question), uint32(i), to); err != nil {
						t.Fatal(err)
					}
					text, r := receive(t, server)
					if text != question || r.From.QPN != client.QPN() || r.From.Addr() != addr || r.To != addr || !r.HasImm || r.Imm != uint32(i) {
						t.Fatalf("received %q as %+v", text, r)
					}
					if err := server.Send(ctx, []byte("re: "+text), r.From); err != nil {
						t.Fatal(err)
					}
					if text, r := receive(t, client); text != "re: "+question || r.From.QPN != server.QPN() || r.HasImm {
						t.Fatalf("answered with %q as %+v", text, r)
					}
				}
				if n := rdmacm.CachedPaths(client); n != 1 {
					t.Errorf("%d address handles for one peer", n)
				}
			})
		}
	}, verbstest.Datagrams)
}

// TestDatagramSizes: from nothing to all that fits.
func TestDatagramSizes(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		a, b := newDatagram(t, target.Addr, rdmacm.DatagramConfig{}), newDatagram(t, target.Addr, rdmacm.DatagramConfig{})
		to := lookup(t, a, b)
		full := make([]byte, a.Size())
		verbstest.Pattern(full, 3)
		for _, n := range []int{0, 1, a.Size()} {
			if err := a.Send(ctx, full[:n], to); err != nil {
				t.Fatal(err)
			}
			if text, _ := receive(t, b); text != string(full[:n]) {
				t.Errorf("%d bytes came as %d others", n, len(text))
			}
		}
		if err := a.Send(ctx, make([]byte, a.Size()+1), to); !errors.Is(err, syscall.EMSGSIZE) {
			t.Errorf("a byte more than fits: %v, want EMSGSIZE", err)
		}
		if err := a.Send(ctx, []byte("too long"), to); err != nil {
			t.Fatal(err)
		}
		short := make([]byte, 3)
		if n, r, err := b.Receive(ctx, short); n != 3 || err != io.ErrShortBuffer || string(short) != "too" || r.From.QPN != a.QPN() {
			t.Errorf("into a short buffer: %d, %+v, %v", n, r, err)
		}
		for _, cfg := range []rdmacm.DatagramConfig{{Size: a.Size() + 1}, {Size: -1}, {SendDepth: -1}, {RecvDepth: 1 << 20}, {Paths: -1}} {
			if d, err := cfg.Listen(ctx, anyPort(target)); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("%+v: %v, %v, want EINVAL", cfg, d, err)
			}
		}
	}, verbstest.Datagrams)
}

// TestDatagramFlow: many senders share few slots, and no message is mixed up.
func TestDatagramFlow(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const senders, each = 8, 50
		ctx := verbstest.Context(t)
		sink := newDatagram(t, target.Addr, rdmacm.DatagramConfig{RecvDepth: senders * each})
		source := newDatagram(t, target.Addr, rdmacm.DatagramConfig{SendDepth: 2})
		to := lookup(t, source, sink)
		var wg sync.WaitGroup
		for s := range senders {
			wg.Go(func() {
				for i := range each {
					if err := source.Send(ctx, fmt.Appendf(nil, "%d %d", s, i), to); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		next := [senders]int{}
		for range senders * each {
			text, _ := receive(t, sink)
			var s, i int
			if n, err := fmt.Sscanf(text, "%d %d", &s, &i); n != 2 || err != nil || i != next[s] {
				t.Fatalf("received %q, want message %d of it", text, next[s])
			}
			next[s]++
		}
	}, verbstest.Datagrams)
}

// TestDatagramPaths: address handles beyond the limit go, those in use stay.
func TestDatagramPaths(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		a, b := newDatagram(t, target.Addr, rdmacm.DatagramConfig{Paths: 3}), newDatagram(t, target.Addr6, rdmacm.DatagramConfig{})
		sender := newDatagram(t, target.Addr6, rdmacm.DatagramConfig{Paths: 3, SendDepth: 1})
		to := lookup(t, sender, b)
		for label := range 10 {
			to.Path.FlowLabel = uint32(label + 1)
			if err := sender.Send(ctx, []byte{byte(label)}, to); err != nil {
				t.Fatal(err)
			}
			if text, _ := receive(t, b); text != string([]byte{byte(label)}) {
				t.Errorf("message %d came as %q", label, text)
			}
			// One send is on its way at a time: its handle may come on top.
			if n := rdmacm.CachedPaths(sender); n > 4 {
				t.Errorf("%d address handles with a limit of 3", n)
			}
		}
		if n := rdmacm.CachedPaths(a); n != 0 {
			t.Errorf("%d address handles where nothing was sent", n)
		}
		bad := to
		bad.Path.SGIDIndex = 200
		if err := sender.Send(ctx, nil, bad); err == nil {
			t.Error("sent from a GID that there is not")
		}
		if err := sender.Send(ctx, []byte("still"), to); err != nil {
			t.Errorf("after a path that does not exist: %v", err)
		}
	}, verbstest.Datagrams)
}

// TestDatagramLookupErrors: a lookup that fails says why.
func TestDatagramLookupErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		d := newDatagram(t, target.Addr, rdmacm.DatagramConfig{})
		gone := newDatagram(t, target.Addr, rdmacm.DatagramConfig{})
		address := gone.Addr().String()
		if err := gone.Close(); err != nil {
			t.Fatal(err)
		}
		var reject *rdmacm.RejectError
		_, err := d.Lookup(ctx, address, nil)
		if !errors.As(err, &reject) || reject.Reason != rdmacm.RejectNoListener || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a closed port: %v, want ECONNREFUSED", err)
		}
		server := newThinIn(t, rdmacm.PortSpaceUDP)
		if err := errors.Join(server.id.BindAddr(netip.AddrPortFrom(target.Addr, 0)), server.id.Listen(0)); err != nil {
			t.Fatal(err)
		}
		asked, cancel := context.WithCancel(ctx)
		result := make(chan error, 1)
		go func() {
			_, err := d.Lookup(asked, server.id.LocalAddr().String(), nil)
			result <- err
		}()
		ev := server.await(t, rdmacm.EventConnectRequest)
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		ev.ID.Close()
		go func() {
			_, err := d.Lookup(ctx, server.id.LocalAddr().String(), nil)
			result <- err
		}()
		ev = server.await(t, rdmacm.EventConnectRequest)
		if err := ev.ID.Reject([]byte("no")); err != nil {
			t.Error(err)
		}
		if err := <-result; !errors.As(err, &reject) || reject.Reason != rdmacm.RejectConsumer {
			t.Errorf("a service that rejects: %v, want RejectConsumer", err)
		}
		ev.ID.Close()
		for _, address := range []string{"", "192.0.2.1", target.Addr.String() + ":0", "0.0.0.0:1"} {
			if _, err := d.Lookup(ctx, address, nil); err == nil {
				t.Errorf("looked up %q", address)
			}
		}
		for _, address := range []string{":0", "203.0.113.9:0"} {
			if _, err := (rdmacm.DatagramConfig{}).Listen(ctx, address); err == nil {
				t.Errorf("listens on %q", address)
			}
		}
		if _, err := (rdmacm.DatagramConfig{Device: "other0"}).Listen(ctx, anyPort(target)); !errors.Is(err, syscall.ENODEV) {
			t.Errorf("on a device that is not there: %v, want ENODEV", err)
		}
	}, verbstest.Datagrams)
}

// TestDatagramGroup: members hear what is said to the group, and nobody else.
func TestDatagramGroup(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		first, second, speaker := newDatagram(t, target.Addr, rdmacm.DatagramConfig{}), newDatagram(t, target.Addr, rdmacm.DatagramConfig{}), newDatagram(t, target.Addr, rdmacm.DatagramConfig{})
		for _, d := range []*rdmacm.Datagram{first, second} {
			if _, err := d.Join(ctx, testGroup, rdmacm.JoinFullMember); err != nil {
				t.Fatal(err)
			}
		}
		group, err := speaker.Join(ctx, testGroup, rdmacm.JoinSendOnly)
		if err != nil || group.Addr() != testGroup || group.QPN != ibverbs.McastQPN {
			t.Fatalf("joined %+v (%v), %v", group, group.Addr(), err)
		}
		if err := speaker.Send(ctx, []byte("all of you"), group); err != nil {
			t.Fatal(err)
		}
		for _, d := range []*rdmacm.Datagram{first, second} {
			text, r := receive(t, d)
			if text != "all of you" || r.From.QPN != speaker.QPN() || r.To != testGroup {
				t.Errorf("received %q as %+v", text, r)
			}
			if err := d.Send(ctx, []byte("you alone"), r.From); err != nil {
				t.Fatal(err)
			}
			// The speaker has heard nothing of the group before.
			if text, r := receive(t, speaker); text != "you alone" || r.From.QPN != d.QPN() {
				t.Errorf("the speaker received %q as %+v", text, r)
			}
		}
		if err := first.Leave(testGroup); err != nil {
			t.Fatal(err)
		}
		if err := first.Leave(testGroup); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("leaving twice: %v, want EADDRNOTAVAIL", err)
		}
		if err := speaker.Send(ctx, []byte("to the second"), group); err != nil {
			t.Fatal(err)
		}
		if text, _ := receive(t, second); text != "to the second" {
			t.Errorf("received %q", text)
		}
		if err := speaker.Send(ctx, []byte("to the first"), lookup(t, speaker, first)); err != nil {
			t.Fatal(err)
		}
		if text, _ := receive(t, first); text != "to the first" {
			t.Errorf("who has left received %q", text)
		}
		if _, err := first.Join(ctx, target.Addr, rdmacm.JoinFullMember); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("joining a host: %v, want EINVAL", err)
		}
		if _, err := first.Join(ctx, netip.MustParseAddr("ff0e::1"), rdmacm.JoinFullMember); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("joining an IPv6 group: %v, want errors.ErrUnsupported", err)
		}
	}, verbstest.Datagrams)
}
