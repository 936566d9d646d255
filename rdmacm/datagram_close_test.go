package rdmacm_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// TestDatagramClose: Close wakes who waits, and afterwards nothing works.
func TestDatagramClose(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		d := newDatagram(t, target.Addr, rdmacm.DatagramConfig{})
		peer := lookup(t, d, d)
		if _, err := d.Join(ctx, testGroup, rdmacm.JoinFullMember); err != nil {
			t.Fatal(err)
		}
		silent := newThinIn(t, rdmacm.PortSpaceUDP)
		if err := errors.Join(silent.id.BindAddr(netip.AddrPortFrom(target.Addr, 0)), silent.id.Listen(0)); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, _, err := d.Receive(short, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing came: %v, want the context's error", err)
		}
		waiting := make(chan error, 5)
		for range 4 {
			go func() {
				_, _, err := d.Receive(context.Background(), make([]byte, 10))
				waiting <- err
			}()
		}
		go func() {
			_, err := d.Lookup(context.Background(), silent.id.LocalAddr().String(), nil)
			waiting <- err
		}()
		request := silent.await(t, rdmacm.EventConnectRequest)
		defer request.ID.Close()
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closers.Wait()
		for range 5 {
			if err := <-waiting; !errors.Is(err, net.ErrClosed) {
				t.Errorf("a call that waited: %v, want net.ErrClosed", err)
			}
		}
		_, _, receiveErr := d.Receive(ctx, nil)
		_, lookupErr := d.Lookup(ctx, silent.id.LocalAddr().String(), nil)
		_, joinErr := d.Join(ctx, testGroup, rdmacm.JoinFullMember)
		for name, err := range map[string]error{
			"Send": d.Send(ctx, nil, peer), "SendImm": d.SendImm(ctx, nil, 1, peer), "Receive": receiveErr,
			"Lookup": lookupErr, "Join": joinErr, "Leave": d.Leave(testGroup),
		} {
			var opErr *ibverbs.OpError
			if !errors.Is(err, net.ErrClosed) || !errors.As(err, &opErr) {
				t.Errorf("%s after Close: %v, want net.ErrClosed", name, err)
			}
		}
		select {
		case <-d.Done():
		default:
			t.Error("Done is not closed")
		}
	}, verbstest.Datagrams)
}

// TestDatagramCloseWhileBusy closes a Datagram amid traffic.
func TestDatagramCloseWhileBusy(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for range 20 {
			d := newDatagram(t, target.Addr, rdmacm.DatagramConfig{SendDepth: 4, Paths: 1})
			peer := lookup(t, d, d)
			started := make(chan struct{}, 4)
			var wg sync.WaitGroup
			for label := range 2 {
				wg.Go(func() {
					to := peer
					to.Path.TrafficClass = uint8(label << 2) // another address handle
					for i := 0; ; i++ {
						if err := d.Send(context.Background(), []byte("busy"), to); err != nil {
							if !errors.Is(err, net.ErrClosed) {
								t.Error(err)
							}
							return
						}
						if i == 10 {
							started <- struct{}{}
						}
					}
				})
				wg.Go(func() {
					for i := 0; ; i++ {
						if _, _, err := d.Receive(context.Background(), make([]byte, 10)); err != nil {
							if !errors.Is(err, net.ErrClosed) {
								t.Error(err)
							}
							return
						}
						if i == 0 {
							started <- struct{}{}
						}
					}
				})
			}
			for range 4 {
				<-started
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
		}
	}, verbstest.Datagrams)
}

// TestNoDatagramEndpoint: iWARP has none.
func TestNoDatagramEndpoint(t *testing.T) {
	verbstest.EachLacking(t, verbstest.Datagrams, func(t *testing.T, target *verbstest.Target) {
		d, err := (rdmacm.DatagramConfig{}).Listen(verbstest.Context(t), anyPort(target))
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Listen: %v, %v; want errors.ErrUnsupported", d, err)
		}
	})
}
