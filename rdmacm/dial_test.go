package rdmacm_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// dialFails dials address, which must fail with an error of the usual form.
func dialFails(t *testing.T, d rdmacm.Dialer, address string) error {
	t.Helper()
	c, err := d.DialContext(verbstest.Context(t), address)
	if err == nil {
		c.Close()
		t.Fatalf("dialing %s succeeded", address)
	}
	var opErr *ibverbs.OpError
	if !errors.As(err, &opErr) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v: not one line from an *OpError", err)
	}
	return err
}

// TestDialClosedPort: the same error on both transports (report 21).
func TestDialClosedPort(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		closed := l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		err := dialFails(t, rdmacm.Dialer{}, closed)
		var reject *rdmacm.RejectError
		var opErr *ibverbs.OpError
		if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &reject) || reject.Reason != rdmacm.RejectNoListener ||
			!errors.As(err, &opErr) || opErr.Op != "rdma_connect" {
			t.Errorf("%v, want rdma_connect's ECONNREFUSED because nobody listens", err)
		}
	})
}

func TestDialRefused(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		why := []byte("not today")
		answers := make(chan error, 1)
		failures := make(chan error, 1)
		l := listen(t, target, rdmacm.ListenConfig{
			OnRequest: func(*rdmacm.Request) error { return <-answers },
			OnError:   func(_ netip.AddrPort, err error) { failures <- err },
		})
		for _, answer := range []error{&rdmacm.RefuseError{PrivateData: why}, errMismatch} {
			answers <- answer
			err := dialFails(t, rdmacm.Dialer{}, l.Addr().String())
			var reject *rdmacm.RejectError
			if !errors.As(err, &reject) || reject.Reason != rdmacm.RejectConsumer || !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatalf("%v, want the application's refusal", err)
			}
			if answer != errMismatch && !strings.HasPrefix(string(reject.PrivateData), string(why)) {
				t.Errorf("refused with %q, want %q", reject.PrivateData, why)
			}
			if err := <-failures; !errors.Is(err, answer) {
				t.Errorf("OnError was told %v, want %v", err, answer)
			}
		}
	})
}

// TestDialWrongDevice: a dial that is restricted to a device never goes over
// another one.
func TestDialWrongDevice(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{Device: target.Dev.Name()})
		err := dialFails(t, rdmacm.Dialer{Device: "other0"}, l.Addr().String())
		if !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), target.Dev.Name()) {
			t.Errorf("%v, want ENODEV that names %s", err, target.Dev.Name())
		}
		if _, err := (&rdmacm.ListenConfig{Device: "other0"}).Listen(verbstest.Context(t), anyPort(target)); !errors.Is(err, syscall.ENODEV) {
			t.Errorf("listening: %v, want ENODEV", err)
		}
		connect(t, l, rdmacm.Dialer{Device: target.Dev.Name()})
	})
}

func TestDialLocalAddr(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		client, _ := connect(t, l, rdmacm.Dialer{LocalAddr: netip.AddrPortFrom(target.Addr, 0)})
		if client.LocalAddr().Addr() != target.Addr {
			t.Errorf("dialed from %v, want %v", client.LocalAddr(), target.Addr)
		}
		d := rdmacm.Dialer{LocalAddr: netip.MustParseAddrPort("203.0.113.9:0")}
		dialFails(t, d, l.Addr().String())
	})
}

// TestDialZone: a link-local address goes with its zone, on both sides.
func TestDialZone(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listenOn(t, netip.AddrPortFrom(linkLocal(t, target.Netdev), 0).String(), rdmacm.ListenConfig{Config: prepared})
		client, server := connect(t, l, rdmacm.Dialer{Config: prepared})
		mustEcho(t, client, server)
		for _, addr := range []netip.AddrPort{l.Addr(), client.LocalAddr(), client.RemoteAddr(), server.LocalAddr(), server.RemoteAddr()} {
			if addr.Addr().Zone() != target.Netdev {
				t.Errorf("%v has not the zone %s", addr, target.Netdev)
			}
		}
	})
}

// linkLocal is a netdev's link-local address, with its zone.
func linkLocal(t *testing.T, netdev string) netip.Addr {
	t.Helper()
	ifi, err := net.InterfaceByName(netdev)
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := ifi.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() {
			return p.Addr().WithZone(netdev)
		}
	}
	t.Fatalf("%s has no link-local address", netdev)
	return netip.Addr{}
}

// TestDialBounds: each step's own bound ends a dial, as os.ErrDeadlineExceeded.
func TestDialBounds(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		// Its requests stay in the kernel: on a busy machine a dial's time may be
		// over before it has made one.
		mute := thinListener(t, target)
		addr := mute.id.LocalAddr().String()
		t.Cleanup(rdmacm.WaitBackground)
		for name, d := range map[string]rdmacm.Dialer{
			"Timeout":        {Timeout: 100 * time.Millisecond},
			"ConnectTimeout": {ConnectTimeout: 100 * time.Millisecond},
		} {
			if err := dialFails(t, d, addr); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %v, want os.ErrDeadlineExceeded", name, err)
			}
		}
	})
}

// TestDialNoDevice: addresses that no RDMA device serves say so.
func TestDialNoDevice(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		for _, address := range []string{"127.0.0.1:7471", "[::1]:7471"} {
			err := dialFails(t, rdmacm.Dialer{}, address)
			if !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "never works with RDMA") {
				t.Errorf("%v, want ENODEV and a hint", err)
			}
		}
		for _, address := range []string{"0.0.0.0:1", ":1", "[::]:1", target.Addr.String() + ":0"} {
			if err := dialFails(t, rdmacm.Dialer{}, address); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("dialing %q: %v, want EINVAL", address, err)
			}
		}
	})
}

func TestDialBadConfig(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		for name, cfg := range map[string]rdmacm.Config{
			"SendSGE":        {SendSGE: target.Attr.MaxSGE + 1},
			"InitiatorDepth": {InitiatorDepth: 255},
		} {
			err := dialFails(t, rdmacm.Dialer{Config: cfg}, l.Addr().String())
			if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), name) {
				t.Errorf("%v, want EINVAL that names %s", err, name)
			}
		}
	})
}

// TestDialCancel cancels at each step that waits; nothing may be left, which
// the leak check sees to.
func TestDialCancel(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		// A listener that never answers: its requests stay in the kernel.
		mute := thinListener(t, target)
		addr := mute.id.LocalAddr().String()
		t.Cleanup(rdmacm.WaitBackground)

		t.Run("before", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			dialCancelled(t, ctx, rdmacm.Dialer{}, addr)
		})
		t.Run("resolving", func(t *testing.T) {
			// No host has this address: the resolution ends with the context
			// where the network asks for it, else the connecting does.
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			shortenTCP(t)
			neighbour := target.Addr.Next().Next().Next()
			_, err := new(rdmacm.Dialer).DialContext(ctx, netip.AddrPortFrom(neighbour, 7471).String())
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want context.DeadlineExceeded", err)
			}
		})
		t.Run("preparing", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			d := rdmacm.Dialer{Config: rdmacm.Config{Prepare: func(c *rdmacm.Conn) error {
				defer cancel()
				return prepare(c)
			}}}
			dialCancelled(t, ctx, d, addr)
		})
		t.Run("connecting", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			dialed := make(chan struct{})
			var server sync.WaitGroup
			server.Go(func() {
				// The request has arrived: the dial waits for the answer. To
				// close the id is to refuse, which must not come first.
				ev, err := mute.channel.GetEvent(verbstest.Context(t))
				cancel()
				<-dialed
				if err == nil {
					ev.ID.Close()
				}
			})
			dialCancelled(t, ctx, rdmacm.Dialer{Config: prepared}, addr)
			close(dialed)
			server.Wait()
		})
		t.Run("timeout", func(t *testing.T) {
			_, err := (&rdmacm.Dialer{Timeout: 100 * time.Millisecond}).DialContext(t.Context(), addr)
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%v, want os.ErrDeadlineExceeded", err)
			}
		})
	})
}

// shortenTCP makes the kernel give up early on a host that does not answer TCP:
// what a cancelled dial leaves to the background on iWARP waits for that.
func shortenTCP(t *testing.T) {
	t.Helper()
	const knob = "/proc/sys/net/ipv4/tcp_syn_retries"
	old, err := os.ReadFile(knob)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(knob, []byte("1"), 0); err != nil {
		t.Logf("%v: this test will take two minutes", err)
		return
	}
	t.Cleanup(func() {
		rdmacm.WaitBackground()
		os.WriteFile(knob, old, 0)
	})
}

func dialCancelled(t *testing.T, ctx context.Context, d rdmacm.Dialer, addr string) {
	t.Helper()
	if c, err := d.DialContext(ctx, addr); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v, want context.Canceled", c, err)
	}
}

func TestDialPrepareFails(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		d := rdmacm.Dialer{Config: rdmacm.Config{Prepare: func(c *rdmacm.Conn) error {
			return errors.Join(prepare(c), errMismatch)
		}}}
		if _, err := d.DialContext(verbstest.Context(t), l.Addr().String()); !errors.Is(err, errMismatch) {
			t.Errorf("%v, want Prepare's own error", err)
		}
	})
}
