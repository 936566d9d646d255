package ibverbs_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rnic"
)

// awaitEvent reads events until one is of the type that is wanted.
func awaitEvent(t *testing.T, dev *ibverbs.Device, want ibverbs.EventType) ibverbs.AsyncEvent {
	t.Helper()
	ctx := verbstest.Context(t)
	for {
		event, err := dev.ReadAsyncEvent(ctx)
		if err != nil {
			t.Fatalf("waiting for %v: %v", want, err)
		}
		t.Logf("event: %v (%s)", event, event.Type.Description())
		if event.Type == want {
			return event
		}
	}
}

func TestAsyncEventContext(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := target.Dev.ReadAsyncEvent(ctx)
			ended <- err
		}()
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("err = %v, want context.Canceled itself", err)
		}
	})
}

// Close must end reads that have begun, and that begin while it runs.
func TestAsyncEventClose(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for range 20 {
			dev, err := ibverbs.Open(target.Dev.Name())
			if err != nil {
				t.Fatal(err)
			}
			var readers sync.WaitGroup
			for range 4 {
				readers.Go(func() {
					for {
						if _, err := dev.ReadAsyncEvent(verbstest.Context(t)); err != nil {
							if !errors.Is(err, os.ErrClosed) {
								t.Errorf("err = %v, want os.ErrClosed", err)
							}
							return
						}
					}
				})
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
			readers.Wait()
		}
	})
}

func TestAsyncEventPort(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ip := func(args ...string) {
			t.Helper()
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				t.Fatalf("ip %v: %v: %s", args, err, out)
			}
		}
		// Else the kernel takes the IPv6 addresses away with the link.
		keep := "/proc/sys/net/ipv6/conf/" + target.Netdev + "/keep_addr_on_down"
		if err := os.WriteFile(keep, []byte("1"), 0o644); err != nil {
			t.Fatal(err)
		}
		ip("link", "set", target.Netdev, "down")
		event := awaitEvent(t, target.Dev, ibverbs.EventPortErr)
		if event.Port != target.Port || event.QP != nil || event.CQ != nil {
			t.Errorf("event %+v, want port %d alone", event, target.Port)
		}
		ip("link", "set", target.Netdev, "up")
		if event := awaitEvent(t, target.Dev, ibverbs.EventPortActive); event.Port != target.Port {
			t.Errorf("event %+v, want port %d", event, target.Port)
		}
		if err := rnic.WaitUsable(verbstest.Context(t), target.Dev.Name()); err != nil {
			t.Fatal(err)
		}
		verbstest.Works(t, target.Dev, "asynchronous events of ports")
	})
}

func TestAsyncEventQP(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		a, _ := verbstest.Pair(t, target, verbstest.PairCap, nil)
		attr := ibverbs.QPAttr{State: ibverbs.QPStateSQD, EnSQDAsyncNotify: true}
		if err := a.QP.Modify(attr, ibverbs.QPAttrState|ibverbs.QPAttrEnSQDAsyncNotify); err != nil {
			t.Fatal(err)
		}
		if event := awaitEvent(t, target.Dev, ibverbs.EventSQDrained); event.QP != a.QP {
			t.Errorf("event %v, want one of %v", event, a.QP)
		}
	}, verbstest.StateMachine)
}

// An event that nobody has read must not keep its object from closing.
func TestAsyncEventUnread(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		a, _ := verbstest.Pair(t, target, verbstest.PairCap, nil)
		attr := ibverbs.QPAttr{State: ibverbs.QPStateSQD, EnSQDAsyncNotify: true}
		if err := a.QP.Modify(attr, ibverbs.QPAttrState|ibverbs.QPAttrEnSQDAsyncNotify); err != nil {
			t.Fatal(err)
		}
		if err := a.QP.Close(); err != nil {
			t.Fatal(err)
		}
		// What still comes does not name the QP that has gone.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if event, err := target.Dev.ReadAsyncEvent(ctx); err == nil && event.QP != nil {
			t.Errorf("event %v names a closed QP", event)
		}
	}, verbstest.StateMachine)
}
