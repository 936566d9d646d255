package rdmacm_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// What a peer does that means no good, or is broken. After each, the listener
// must serve others, and at the test's end nothing may be left.

// noise is what a peer sends that knows no protocol.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// TestHostileBytes: whatever comes in on the transport's own port, the listener
// goes on. On iWARP that is TCP, where a peer may also say nothing at all.
func TestHostileBytes(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{Config: prepared})
		networks := map[string]netip.AddrPort{
			"udp": netip.AddrPortFrom(target.Addr, 4791), // RoCE v2
			"tcp": l.Addr(),
		}
		for network, addr := range networks {
			for i := range 16 {
				conn, err := net.Dial(network, addr.String())
				if network == "tcp" && errors.Is(err, syscall.ECONNREFUSED) {
					break // RoCE does not listen for TCP
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				if i%4 > 0 {
					conn.Write(noise(1 << (2 * i % 10)))
				}
			}
		}
		for range 3 {
			client, server := connect(t, l, rdmacm.Dialer{Config: prepared})
			mustEcho(t, client, server)
		}
	})
}

// TestHostilePrivateData: private data is the peer's, of any length and content.
func TestHostilePrivateData(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{Config: prepared, OnRequest: func(r *rdmacm.Request) error {
			if len(r.PrivateData()) > rdmacm.MaxPrivateData {
				return errMismatch
			}
			return nil
		}})
		for _, n := range []int{0, 1, 3, 4, 31, 55, 56, 57, 128, 192, 224, 248, 255} {
			ctx := verbstest.Context(t)
			c, err := (&rdmacm.Dialer{Config: prepared, PrivateData: noise(n)}).DialContext(ctx, l.Addr().String())
			switch {
			case err == nil:
				server, err := l.Accept(ctx)
				if err != nil {
					t.Fatal(err)
				}
				mustEcho(t, c, server)
				closeConn(t, c)
				closeConn(t, server)
			case n > 192 && errors.Is(err, syscall.ECONNREFUSED): // siw refuses what its own peer may send
			case n <= 56 || !errors.Is(err, syscall.EINVAL):
				t.Errorf("%d bytes of private data: %v", n, err)
			}
		}
	})
}

// leaver is a peer that goes away at one step of its connecting.
var leavers = map[string]func(t *testing.T, p *thin, addr netip.AddrPort){
	"when it has asked": func(t *testing.T, p *thin, addr netip.AddrPort) {
		p.ask(t, addr)
	},
	"when it was answered": func(t *testing.T, p *thin, addr netip.AddrPort) {
		if !p.ask(t, addr) {
			return
		}
		p.event(t) // CONNECT_RESPONSE is ESTABLISHED by now where there is a QP
	},
	"by disconnecting": func(t *testing.T, p *thin, addr netip.AddrPort) {
		if !p.ask(t, addr) {
			return
		}
		p.await(t, rdmacm.EventEstablished)
		if err := p.id.Disconnect(); err != nil {
			t.Error(err)
		}
	},
	"by disconnecting unasked": func(t *testing.T, p *thin, addr netip.AddrPort) {
		if !p.ask(t, addr) {
			return
		}
		p.id.Disconnect() // an error here, or not: the drivers differ
	},
}

// ask connects. It reports false where iWARP finds the port taken that it chose: by
// a TCP connection, perhaps an earlier test's.
func (p *thin) ask(t testing.TB, addr netip.AddrPort) bool {
	t.Helper()
	p.resolve(t, addr)
	p.createQP(t)
	err := p.id.Connect(rdmacm.ConnParam{RetryCount: 7, RNRRetryCount: 7})
	if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatal(err)
	}
	return err == nil
}

// TestHostileLeaver: peers that go away at each step.
func TestHostileLeaver(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{Config: prepared})
		ctx, cancel := context.WithCancel(verbstest.Context(t))
		defer cancel()
		conns := make(chan *rdmacm.Conn, 100)
		go func() {
			defer close(conns)
			for {
				c, err := l.Accept(ctx)
				if err != nil {
					return
				}
				conns <- c
			}
		}()
		for name, leave := range leavers {
			for range 3 {
				p := newThin(t)
				leave(t, p, l.Addr())
				if err := p.id.Close(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		// Another's connection is made all the same.
		client, err := (&rdmacm.Dialer{Config: prepared, PrivateData: []byte("good")}).DialContext(ctx, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		verbstest.Close(t, client)
		for c := range conns {
			if string(c.PrivateData()[:min(4, len(c.PrivateData()))]) == "good" {
				mustEcho(t, client, c)
				closeConn(t, c)
				break
			}
			ended(t, c)
			closeConn(t, c)
		}
		cancel()
		for c := range conns {
			closeConn(t, c)
		}
	})
}

// TestHostileServer: servers that never answer, refuse, or go away at each step
// cost a dial its time at most.
func TestHostileServer(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		for name, tc := range map[string]struct {
			serve func(*rdmacm.Event)
			want  error
		}{
			"silent":  {func(*rdmacm.Event) {}, os.ErrDeadlineExceeded},
			"refuses": {func(ev *rdmacm.Event) { ev.ID.Reject(noise(100)) }, syscall.ECONNREFUSED},
			"leaves":  {func(ev *rdmacm.Event) { ev.ID.Close() }, syscall.ECONNREFUSED},
		} {
			t.Run(name, func(t *testing.T) {
				p := thinListener(t, target)
				requests := make(chan *rdmacm.ID, 1)
				go func() {
					ev, err := p.channel.GetEvent(verbstest.Context(t))
					if err != nil {
						close(requests)
						return
					}
					tc.serve(ev)
					requests <- ev.ID
				}()
				d := rdmacm.Dialer{Config: prepared, Timeout: verbstest.Limit}
				if tc.want == os.ErrDeadlineExceeded {
					d.Timeout = 300 * time.Millisecond
				}
				if err := dialFails(t, d, p.id.LocalAddr().String()); !errors.Is(err, tc.want) {
					t.Errorf("%v, want %v", err, tc.want)
				}
				if id := <-requests; id != nil {
					id.Close()
				}
				rdmacm.WaitBackground()
			})
		}
	})
}

// TestHostileFlood: peers that ask and then never complete fill their part of the
// backlog until their time is up, and hold up nobody while there is room.
func TestHostileFlood(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		const flood = 48
		ctx := verbstest.Context(t)
		l := listen(t, target, rdmacm.ListenConfig{Config: crowdConfig})
		peers := make([]*thin, flood)
		for i := range peers {
			peers[i] = newThin(t)
			peers[i].resolve(t, l.Addr())
			if target.Has(verbstest.StateMachine) {
				// Without a QP of CreateQP's the ID never establishes by itself.
				if err := peers[i].id.Connect(rdmacm.ConnParam{QPN: uint32(17 + i), RetryCount: 7}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			// iWARP has no half-way but TCP's.
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
		}
		d := rdmacm.Dialer{Config: crowdConfig, Timeout: verbstest.Limit, ResolveTimeout: verbstest.Limit}
		c, err := gather(ctx, l, d, 8)
		if err == nil {
			err = c.echo(ctx)
		}
		if err := errors.Join(err, c.close(), l.Close()); err != nil {
			t.Fatal(err)
		}
	})
}
