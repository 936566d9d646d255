// Package pollfd waits for a C library's file descriptor in Go's network
// poller, so that a waiting goroutine costs no OS thread.
package pollfd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/gate"
)

// FD is a file descriptor that a C library reads from, watched by Go's poller.
//
// The library keeps its own descriptor; FD watches a duplicate. Both share one
// file description, so both are non-blocking from New on.
type FD struct {
	file *os.File
	conn syscall.RawConn
	// reader holds a token while a goroutine reads: the poller is
	// edge-triggered and a deadline belongs to the file, so that two readers
	// would take each other's wake-ups.
	reader chan struct{}
	closed chan struct{}
	once   sync.Once

	// What the goroutine with the token reads with, so that a wait allocates
	// nothing.
	try    func() (bool, error)
	tryErr error
	step   func(uintptr) bool // tryOnce, bound once

	watching sync.Mutex
	watched  context.Context // its end moves the deadline; under watching
	unwatch  func() bool     // under watching
}

// longAgo is a deadline that has passed: setting it wakes a parked reader.
var longAgo = time.Unix(1, 0)

// New makes fd non-blocking and registers a duplicate of it with the poller.
// name appears in errors. The caller keeps fd, and closes it after Close.
func New(fd int, name string) (*FD, error) {
	defer gate.Control.Enter()()
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("%s: set non-blocking: %w", name, err)
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: duplicate: %w", name, err)
	}
	file := os.NewFile(uintptr(dup), name)
	// A file that the poller does not know would make Wait block a thread.
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: not pollable: %w", name, err)
	}
	conn, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := &FD{
		file:   file,
		conn:   conn,
		reader: make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
	f.step = f.tryOnce
	return f, nil
}

// Wait calls try until it reports done or an error, and parks the goroutine
// between calls until the descriptor is readable. try must read until EAGAIN
// before it reports that it is not done.
//
// One goroutine reads at a time; the others queue. Wait ends with ctx's error
// when ctx ends, and with os.ErrClosed after Close. What try has read is never
// lost: once it reports done, Wait returns nil even if ctx has just ended.
func (f *FD) Wait(ctx context.Context, try func() (done bool, err error)) error {
	_, err := f.WaitOr(ctx, nil, try)
	return err
}

// WaitOr is Wait, but while it queues for the right to read, a value received
// from other ends it: it then returns false and no error, and try was not
// called. It lets goroutines that share a descriptor hand each other what they
// read.
func (f *FD) WaitOr(ctx context.Context, other <-chan struct{}, try func() (done bool, err error)) (read bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if f.isClosed() {
		return false, os.ErrClosed
	}
	select {
	case f.reader <- struct{}{}:
		defer func() { <-f.reader }()
		return true, f.read(ctx, try)
	case <-other:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-f.closed:
		return false, os.ErrClosed
	}
}

// read runs with the right to read.
func (f *FD) read(ctx context.Context, try func() (bool, error)) error {
	f.try = try
	defer func() { f.try = nil }()
	f.watch(ctx)
	// An earlier reader may have put back the deadline that ctx had moved.
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		f.tryErr = nil
		err := f.conn.Read(f.step)
		switch {
		case err == nil:
			return f.tryErr
		case f.isClosed(): // the poller's own error is not os.ErrClosed
			return os.ErrClosed
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
		// A context has ended or Kick was called. Look at ctx again after the
		// deadline is back: it may have ended in between.
		f.file.SetReadDeadline(time.Time{})
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (f *FD) tryOnce(uintptr) bool {
	done, err := f.try()
	f.tryErr = err
	return done || err != nil
}

// Kick makes the goroutine that reads, if any, call try again. What try is to
// see must be there before.
func (f *FD) Kick() { f.file.SetReadDeadline(longAgo) }

// watch has the end of ctx move the deadline into the past, and leaves it so:
// the next wait mostly has the same ctx, and costs nothing then. A reader that
// is woken by the end of another's ctx goes on.
func (f *FD) watch(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	f.watching.Lock()
	defer f.watching.Unlock()
	if f.watched == ctx || f.isClosed() {
		return
	}
	if f.unwatch != nil {
		f.unwatch()
	}
	f.watched, f.unwatch = ctx, context.AfterFunc(ctx, f.Kick)
}

func (f *FD) isClosed() bool {
	select {
	case <-f.closed:
		return true
	default:
		return false
	}
}

// Close wakes all waiters with os.ErrClosed and closes the duplicate, once no
// try is running. It may be called more than once.
func (f *FD) Close() error {
	var err error
	f.once.Do(func() {
		close(f.closed)
		f.watching.Lock()
		if f.unwatch != nil {
			f.unwatch()
		}
		f.watched, f.unwatch = nil, nil
		f.watching.Unlock()
		defer gate.Control.Enter()()
		err = f.file.Close()
	})
	return err
}
