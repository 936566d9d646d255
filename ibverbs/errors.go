package ibverbs

import (
	"errors"
	"fmt"
	"syscall"
)

// OpError is the error of every verb: which C function failed, on which
// object, and why.
//
// It unwraps to the syscall.Errno that the provider or the kernel gave, so
// errors.Is(err, syscall.EBUSY) works. Whatever means that the driver, the
// kernel or the installed rdma-core lacks a feature satisfies
// errors.Is(err, errors.ErrUnsupported). After Close, Err is os.ErrClosed.
type OpError struct {
	Op     string // the C function, such as "ibv_create_qp"
	Object string // the object with its ancestry, such as "rxe0/pd3/qp17"
	Err    error  // the cause; a hint at the remedy may be wrapped around it
}

// Error reads "ibv_create_qp rxe0/pd3: invalid argument".
func (e *OpError) Error() string {
	if e.Object == "" {
		return e.Op + ": " + e.Err.Error()
	}
	return e.Op + " " + e.Object + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Is makes EPROTONOSUPPORT, with which some providers refuse an object type,
// count as errors.ErrUnsupported; syscall.Errno sees to ENOSYS and EOPNOTSUPP.
func (e *OpError) Is(target error) bool {
	return target == errors.ErrUnsupported && errors.Is(e.Err, syscall.EPROTONOSUPPORT)
}

// ErrQueueFull says that a send or receive queue has no room for a work
// request: poll completions, then post again. The error that satisfies it also
// satisfies syscall.ENOMEM, which is what the providers return.
var ErrQueueFull = errors.New("work queue full: poll its completions, then post again")

// wrap gives err the form of every error of this package; nil stays nil.
func wrap(op, object string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Object: object, Err: err}
}

// hint explains an errno without hiding it.
func hint(err error, format string, args ...any) error {
	return fmt.Errorf("%w: %s", err, fmt.Sprintf(format, args...))
}

// retErr reads what a verb returned. Providers have four conventions for an
// int: a positive errno, a negative errno, -1 with errno set, and a bare -1.
// errno must come from the same C call (and counts only with -1, since a call
// that succeeds may leave one behind).
func retErr(ret int, errno error) error {
	switch {
	case ret == 0:
		return nil
	case ret == -1 && errno != nil:
		return errno
	case ret == -1:
		return syscall.EIO
	case ret < 0:
		return syscall.Errno(-ret)
	}
	return syscall.Errno(ret)
}

// nullErr reads the fifth convention: NULL with errno set.
func nullErr(isNull bool, errno error) error {
	switch {
	case !isNull:
		return nil
	case errno != nil:
		return errno
	}
	return syscall.EIO
}
