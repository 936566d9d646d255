package rdmacm_test

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// fault is a fault of a dial, told by its error alone.
type fault struct {
	name string
	dial func(t *testing.T, target *verbstest.Target) error
	want error  // errors.Is
	op   string // OpError.Op
	text string // in the message
}

// faults is the table of TestSameErrors.
var faults = []fault{
	{"closed port", func(t *testing.T, target *verbstest.Target) error {
		return dialFails(t, rdmacm.Dialer{}, netip.AddrPortFrom(target.Addr, 9).String())
	}, syscall.ECONNREFUSED, "rdma_connect", "connection refused: nobody listens on that port"},
	{"no route to the network", func(t *testing.T, target *verbstest.Target) error {
		return dialFails(t, rdmacm.Dialer{}, "203.0.113.7:7471")
	}, syscall.ENETUNREACH, "rdma_resolve_addr", "network is unreachable"},
	{"nobody has the address", func(t *testing.T, target *verbstest.Target) error {
		shortenTCP(t)
		neighbour := target.Addr.Next().Next().Next()
		return dialFails(t, rdmacm.Dialer{Timeout: 300 * time.Millisecond}, netip.AddrPortFrom(neighbour, 7471).String())
	}, os.ErrDeadlineExceeded, "rdma_connect", "i/o timeout"},
	{"rejected", func(t *testing.T, target *verbstest.Target) error {
		l := listen(t, target, rdmacm.ListenConfig{OnRequest: func(*rdmacm.Request) error { return errMismatch }})
		return dialFails(t, rdmacm.Dialer{}, l.Addr().String())
	}, syscall.ECONNREFUSED, "rdma_connect", "connection refused: refused by the peer's application"},
	{"timed out", func(t *testing.T, target *verbstest.Target) error {
		mute := thinListener(t, target)
		err := dialFails(t, rdmacm.Dialer{Timeout: 300 * time.Millisecond}, mute.id.LocalAddr().String())
		ev, evErr := mute.channel.GetEvent(verbstest.Context(t))
		if evErr != nil {
			t.Fatal(evErr)
		}
		closeID(t, ev.ID)
		return err
	}, os.ErrDeadlineExceeded, "rdma_connect", "i/o timeout"},
	{"no device for the address", func(t *testing.T, target *verbstest.Target) error {
		return dialFails(t, rdmacm.Dialer{}, plainAddr(t).String()+":7471")
	}, syscall.ENODEV, "rdma_resolve_addr", "no RDMA device serves"},
	{"source address without a device", func(t *testing.T, target *verbstest.Target) error {
		d := rdmacm.Dialer{LocalAddr: netip.AddrPortFrom(plainAddr(t), 0)}
		return dialFails(t, d, netip.AddrPortFrom(target.Addr, 9).String())
	}, syscall.ENODEV, "rdma_resolve_addr", ""},
	{"127.0.0.1", func(t *testing.T, target *verbstest.Target) error {
		return dialFails(t, rdmacm.Dialer{}, "127.0.0.1:7471")
	}, syscall.ENODEV, "rdma_resolve_route", "127.0.0.1 never works with RDMA"},
	{"another device", func(t *testing.T, target *verbstest.Target) error {
		return dialFails(t, rdmacm.Dialer{Device: "other0"}, netip.AddrPortFrom(target.Addr, 9).String())
	}, syscall.ENODEV, "rdma_resolve_addr", "not over other0"},
}

func closeID(t testing.TB, id *rdmacm.ID) {
	t.Helper()
	if err := id.Close(); err != nil {
		t.Error(err)
	}
}

// plainAddr is the address of a network interface without an RDMA device, until
// the test ends.
func plainAddr(t *testing.T) netip.Addr {
	t.Helper()
	addr := netip.MustParseAddr("10.79.1.1")
	addDummy(t, "gvplain", addr)
	return addr
}

// TestSameErrors: the same fault gives the same error on every transport: the
// same cause, the same operation, the same words.
func TestSameErrors(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		for _, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				err := f.dial(t, target)
				var opErr *ibverbs.OpError
				if !errors.Is(err, f.want) || !errors.As(err, &opErr) || opErr.Op != f.op || !strings.Contains(err.Error(), f.text) {
					t.Errorf("%v; want %s's %q (%v)", err, f.op, f.text, f.want)
				}
				var timeout interface{ Timeout() bool }
				if f.want == os.ErrDeadlineExceeded && (!errors.As(err, &timeout) || !timeout.Timeout()) {
					t.Errorf("%v is not a Timeout", err)
				}
			})
		}
	})
}
