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

// TestEndpoint takes requests from a listening endpoint.
func TestEndpoint(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		infos, err := rdmacm.GetAddrInfo(ctx, target.Addr.String(), "0", rdmacm.AddrInfo{Flags: rdmacm.AddrInfoPassive | rdmacm.AddrInfoNumericHost})
		if err != nil {
			t.Fatal(err)
		}
		e := verbstest.Must[*rdmacm.Endpoint](t)(rdmacm.CreateEndpoint(infos[0]))
		verbstest.Close(t, e)
		if err := e.Listen(0); err != nil {
			t.Fatal(err)
		}
		channel := newThin(t).channel
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := e.GetRequest(short, channel); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a request: %v, want the context's error", err)
		}
		for i := range 3 {
			dialed := make(chan error, 1)
			go func() {
				d := rdmacm.Dialer{Config: prepared, PrivateData: []byte{byte(i), 1}}
				c, err := d.DialContext(ctx, e.Addr().String())
				if err == nil {
					err = c.Close()
				}
				dialed <- err
			}()
			ev, err := e.GetRequest(ctx, channel)
			if err != nil {
				t.Fatal(err)
			}
			server := &thin{channel, ev.ID}
			verbstest.Close(t, ev.ID)
			if ev.Type != rdmacm.EventConnectRequest || !bytes.HasPrefix(ev.PrivateData, []byte{byte(i), 1}) || ev.ID.LocalAddr() != e.Addr() {
				t.Errorf("request %+v at %v", ev, ev.ID.LocalAddr())
			}
			server.createQP(t)
			if err := ev.ID.Accept(rdmacm.ConnParam{}); err != nil {
				t.Fatal(err)
			}
			server.await(t, rdmacm.EventEstablished)
			server.await(t, rdmacm.EventDisconnected)
			ev.ID.Disconnect()
			if err := <-dialed; err != nil {
				t.Error(err)
			}
		}
		waiting := make(chan error)
		go func() {
			_, err := e.GetRequest(context.Background(), channel)
			waiting <- err
		}()
		if err := errors.Join(e.Close(), e.Close()); err != nil {
			t.Fatal(err)
		}
		_, closedErr := e.GetRequest(ctx, channel)
		for name, err := range map[string]error{"a waiting GetRequest": <-waiting, "GetRequest": closedErr, "Listen": e.Listen(0)} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s after Close: %v, want net.ErrClosed", name, err)
			}
		}
		if e.Addr().IsValid() {
			t.Error("a closed endpoint has an address")
		}
	})
}

func TestEndpointErrors(t *testing.T) {
	addr := netip.MustParseAddrPort("127.0.0.1:0")
	for _, info := range []rdmacm.AddrInfo{{Src: addr}, {Flags: rdmacm.AddrInfoPassive}} {
		if _, err := rdmacm.CreateEndpoint(info); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%+v: %v, want EINVAL", info, err)
		}
	}
	each(t, func(t *testing.T, target *verbstest.Target) {
		info := rdmacm.AddrInfo{Flags: rdmacm.AddrInfoPassive, Src: netip.MustParseAddrPort("203.0.113.7:0"), QPType: ibverbs.QPTypeRC, PortSpace: rdmacm.PortSpaceTCP}
		if _, err := rdmacm.CreateEndpoint(info); !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.ENODEV) {
			t.Errorf("an address of nobody's: %v, want EADDRNOTAVAIL or ENODEV", err)
		}
	})
}
