package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/goverbs/goverbs/ibverbs"
)

// What ends a connection. Conn.Err and context.Cause(Conn.Context()) give one
// of them wrapped in an *ibverbs.OpError, or net.ErrClosed after Conn.Close.
var (
	// ErrDisconnected says that the peer disconnected, or went away so that
	// the transport noticed.
	ErrDisconnected = errors.New("disconnected by the peer")
	// ErrDeviceRemoved says that the RDMA device is gone. It satisfies
	// syscall.ENODEV.
	ErrDeviceRemoved = fmt.Errorf("RDMA device removed: %w", syscall.ENODEV)
	// ErrAddrChanged says that the address that a connection was bound to
	// moved to another device.
	ErrAddrChanged = errors.New("the local address moved to another device")
)

// RejectError says that the peer rejected the connection. It satisfies
// errors.Is(err, syscall.ECONNREFUSED) on every transport; Reason tells whether
// anybody was there to refuse: RejectNoListener where the port is closed,
// RejectConsumer where an application refused.
type RejectError struct {
	Reason RejectReason
	// Status is the number that the event carried: the InfiniBand reason, or
	// a negative errno with iWARP.
	Status int
	// PrivateData is what the application sent along. RoCE and InfiniBand pad
	// it with zeros to 148 bytes.
	PrivateData []byte
}

// Error reads "connection refused: nobody listens on that port".
func (e *RejectError) Error() string {
	return syscall.ECONNREFUSED.Error() + ": " + e.Reason.String()
}

// Unwrap returns syscall.ECONNREFUSED.
func (e *RejectError) Unwrap() error { return syscall.ECONNREFUSED }

// RefuseError is what a ListenConfig.OnRequest returns to refuse a request
// with private data for the peer, which sees it in its RejectError. Any other
// error refuses without.
type RefuseError struct {
	PrivateData []byte
}

// Error reads "connection request refused".
func (e *RefuseError) Error() string { return "connection request refused" }

// wrap gives err the form of every error of this package; nil stays nil. What
// waits report becomes what a user of package net expects.
func wrap(op, object string, err error) error {
	switch {
	case err == nil:
		return nil
	case err == os.ErrClosed:
		err = net.ErrClosed
	case err == errStepTimeout:
		err = os.ErrDeadlineExceeded
	}
	return &ibverbs.OpError{Op: op, Object: object, Err: err}
}

// hint explains an error without hiding it.
func hint(err error, format string, args ...any) error {
	return fmt.Errorf("%w: %s", err, fmt.Sprintf(format, args...))
}

// errStepTimeout is the cause with which this package's own bounds end a
// context, to tell them from the caller's.
var errStepTimeout = errors.New("step timed out")

// waitErr is the error of a wait that ended with err: the cause of ctx where
// that is a bound of this package, else err.
func waitErr(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), errStepTimeout) {
		return errStepTimeout
	}
	return err
}

// noDeviceHint explains why an address leads to no RDMA device.
func noDeviceHint(err error, addr netip.Addr) error {
	if !errors.Is(err, syscall.ENODEV) && !errors.Is(err, syscall.EADDRNOTAVAIL) &&
		!errors.Is(err, syscall.EINVAL) {
		return err
	}
	switch {
	case addr.IsLoopback():
		return hint(err, "%s never works with RDMA; use the address of an RDMA device's network interface", addr)
	case errors.Is(err, syscall.ENODEV):
		return hint(err, "no RDMA device serves %s; `rnic list` shows which addresses are served", addr)
	}
	return err
}

// privateDataHint explains the EINVAL that too much private data gives.
func privateDataHint(err error, n int) error {
	if n > 0 && errors.Is(err, syscall.EINVAL) {
		return hint(err, "%d bytes of private data may be too many; RoCE carries 56 with a connect, 196 with an accept, 148 with a reject", n)
	}
	return err
}

// checkPrivateData refuses what librdmacm cannot even count.
func checkPrivateData(data []byte) error {
	if len(data) > MaxPrivateData {
		return hint(syscall.EINVAL, "%d bytes of private data; the limit is %d", len(data), MaxPrivateData)
	}
	return nil
}
