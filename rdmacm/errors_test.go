package rdmacm

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
)

func TestWrap(t *testing.T) {
	if err := wrap("op", "object", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	for _, tc := range []struct{ in, want error }{
		{os.ErrClosed, net.ErrClosed},
		{errStepTimeout, os.ErrDeadlineExceeded},
		{context.Canceled, context.Canceled},
		{syscall.EBUSY, syscall.EBUSY},
	} {
		err := wrap("rdma_connect", "rxe0/id3", tc.in)
		var opErr *ibverbs.OpError
		if !errors.As(err, &opErr) || opErr.Err != tc.want {
			t.Errorf("%v became %v, want an *OpError around %v", tc.in, err, tc.want)
		}
	}
}

// TestWaitErr: a bound of the package's own is told from the caller's.
func TestWaitErr(t *testing.T) {
	own, cancel := context.WithTimeoutCause(context.Background(), -1, errStepTimeout)
	defer cancel()
	if err := wrap("op", "", waitErr(own, own.Err())); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("own bound: %v, want os.ErrDeadlineExceeded", err)
	}
	user, cancel := context.WithTimeout(context.Background(), -1)
	defer cancel()
	both, cancel := context.WithTimeoutCause(user, time.Hour, errStepTimeout)
	defer cancel()
	if err := wrap("op", "", waitErr(both, both.Err())); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the user's deadline: %v, want context.DeadlineExceeded", err)
	}
}

func TestNoDeviceHint(t *testing.T) {
	for _, tc := range []struct {
		err  error
		addr string
		want string
	}{
		{syscall.ENODEV, "127.0.0.1", "never works with RDMA"},
		{syscall.ENODEV, "::1", "never works with RDMA"},
		{syscall.ENODEV, "192.0.2.1", "rnic list"},
		{syscall.ETIMEDOUT, "127.0.0.1", ""},
	} {
		err := noDeviceHint(tc.err, netip.MustParseAddr(tc.addr))
		if !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v for %s: %q, want %q in it", tc.err, tc.addr, err, tc.want)
		}
		if tc.want == "" && err != tc.err {
			t.Errorf("%v for %s got a hint: %v", tc.err, tc.addr, err)
		}
	}
}

func TestPrivateDataTooLong(t *testing.T) {
	if err := checkPrivateData(make([]byte, 255)); err != nil {
		t.Errorf("255 bytes: %v", err)
	}
	if err := checkPrivateData(make([]byte, 256)); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("256 bytes: %v, want EINVAL", err)
	}
	if err := privateDataHint(syscall.EINVAL, 60); !strings.Contains(err.Error(), "56") {
		t.Errorf("EINVAL with 60 bytes has no hint: %v", err)
	}
	if err := privateDataHint(syscall.EINVAL, 0); err != syscall.EINVAL {
		t.Errorf("EINVAL without private data: %v", err)
	}
}

func TestRetErr(t *testing.T) {
	for _, tc := range []struct {
		ret   int
		errno error
		want  error
	}{
		{0, nil, nil},
		{0, syscall.EAGAIN, nil}, // a stale errno is no failure
		{-1, syscall.EINVAL, syscall.EINVAL},
		{-1, nil, syscall.EIO},
		{-12, syscall.EAGAIN, syscall.ENOMEM},
		{22, nil, syscall.EINVAL},
	} {
		if got := retErr(tc.ret, tc.errno); got != tc.want {
			t.Errorf("retErr(%d, %v) = %v, want %v", tc.ret, tc.errno, got, tc.want)
		}
	}
}

func TestToward(t *testing.T) {
	err := toward(wrap("rdma_connect", "rxe0/id1", syscall.ETIMEDOUT), netip.MustParseAddrPort("192.0.2.1:5"))
	const want = "rdma_connect rxe0/id1 to 192.0.2.1:5: connection timed out"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestNoDevices: on a host without RDMA every way in says so, in one form.
func TestNoDevices(t *testing.T) {
	infos, err := ibverbs.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) > 0 {
		ch, err := CreateEventChannel()
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	_, chErr := CreateEventChannel()
	_, dialErr := new(Dialer).Dial("192.0.2.1:7471")
	_, listenErr := new(ListenConfig).Listen(context.Background(), "192.0.2.1:7471")
	for _, err := range []error{chErr, dialErr, listenErr} {
		var opErr *ibverbs.OpError
		if !errors.As(err, &opErr) || opErr.Op != "rdma_create_event_channel" || strings.Contains(err.Error(), "\n") {
			t.Errorf("without a device: %v, want one line from rdma_create_event_channel", err)
		}
	}
}
