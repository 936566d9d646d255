package pollfd

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// limit is far beyond anything a wait needs: a test that reaches it hangs.
const limit = time.Minute

// eventfd gives a counter in the kernel, read as a C library reads its
// channel, and its watched descriptor.
func eventfd(t *testing.T) (int, *FD) {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_SEMAPHORE)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(fd, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Close()
		unix.Close(fd)
	})
	return fd, f
}

// take reads one event from fd.
func take(fd int) func() (bool, error) {
	return func() (bool, error) {
		var b [8]byte
		_, err := unix.Read(fd, b[:])
		if err == unix.EAGAIN {
			return false, nil
		}
		return err == nil, err
	}
}

func signal(t *testing.T, fd int) {
	t.Helper()
	if _, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
}

func TestWait(t *testing.T) {
	fd, f := eventfd(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	signal(t, fd)
	if err := f.Wait(ctx, take(fd)); err != nil {
		t.Fatalf("event that was already there: %v", err)
	}
	got := make(chan error)
	go func() { got <- f.Wait(ctx, take(fd)) }()
	signal(t, fd)
	if err := <-got; err != nil {
		t.Fatalf("event that comes later: %v", err)
	}
}

func TestWaitContext(t *testing.T) {
	fd, f := eventfd(t)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() { got <- f.Wait(ctx, take(fd)) }()
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled wait: %v, want context.Canceled", err)
	}

	deadline, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if err := f.Wait(deadline, take(fd)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("wait past its deadline: %v, want context.DeadlineExceeded", err)
	}

	// The descriptor must be as good as new for the next reader.
	signal(t, fd)
	if err := f.Wait(t.Context(), take(fd)); err != nil {
		t.Fatalf("wait after a cancelled one: %v", err)
	}
}

func TestClose(t *testing.T) {
	fd, f := eventfd(t)
	const waiters = 8
	got := make(chan error, waiters)
	for range waiters {
		go func() { got <- f.Wait(context.Background(), take(fd)) }()
	}
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closers.Wait()
	for range waiters {
		if err := <-got; !errors.Is(err, os.ErrClosed) {
			t.Errorf("wait on a closed descriptor: %v, want os.ErrClosed", err)
		}
	}
	if err := f.Wait(t.Context(), take(fd)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("wait after Close: %v, want os.ErrClosed", err)
	}
}

// Each event wakes exactly one of many readers, while others come and go.
func TestWaitMany(t *testing.T) {
	fd, f := eventfd(t)
	const readers, events = 16, 50
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for range events {
				short, stop := context.WithTimeout(ctx, 50*time.Microsecond)
				err := f.Wait(short, take(fd))
				stop()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if err == nil {
					continue
				}
				if err := f.Wait(ctx, take(fd)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range readers * events {
		signal(t, fd)
	}
	wg.Wait()
}

func TestWaitOr(t *testing.T) {
	fd, f := eventfd(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	other := make(chan struct{}, 1)
	var handed error
	// The reader hands the first event to the goroutine that queues.
	reader := make(chan error, 1)
	reading := make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() { close(reading) })
		seen := 0
		reader <- f.Wait(ctx, func() (bool, error) {
			once()
			for {
				done, err := take(fd)()
				if !done || err != nil {
					return false, err
				}
				if seen++; seen == 2 {
					return true, nil
				}
				other <- struct{}{}
			}
		})
	}()
	<-reading
	queued := make(chan struct{})
	go func() {
		defer close(queued)
		var read bool
		read, handed = f.WaitOr(ctx, other, take(fd))
		if read {
			handed = errors.New("read the descriptor while another reader had it")
		}
	}()
	signal(t, fd)
	<-queued
	if handed != nil {
		t.Fatal(handed)
	}
	signal(t, fd)
	if err := <-reader; err != nil {
		t.Fatal(err)
	}
}

func TestNewRefusesFiles(t *testing.T) {
	// Memory, since some file systems, such as FUSE's, have files that can be
	// polled.
	fd, err := unix.MemfdCreate("file", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if f, err := New(fd, "file"); err == nil {
		f.Close()
		t.Error("New took a regular file, which the poller cannot watch")
	}
	if f, err := New(-1, "none"); !errors.Is(err, unix.EBADF) {
		t.Errorf("New(-1) = %v, %v; want EBADF", f, err)
	}
}

// Kick makes a parked reader look again, and does not harm later ones.
func TestKick(t *testing.T) {
	fd, f := eventfd(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	f.Kick() // nobody reads: must not break the next reader

	stop := errors.New("stop")
	var stopped atomic.Bool
	parked := make(chan struct{})
	got := make(chan error, 1)
	go func() {
		once := sync.OnceFunc(func() { close(parked) })
		got <- f.Wait(ctx, func() (bool, error) {
			once()
			if stopped.Load() {
				return false, stop
			}
			return take(fd)()
		})
	}()
	<-parked
	stopped.Store(true)
	f.Kick()
	if err := <-got; err != stop {
		t.Fatalf("kicked wait: %v, want what try returned", err)
	}
	signal(t, fd)
	if err := f.Wait(ctx, take(fd)); err != nil {
		t.Fatalf("wait after a kick: %v", err)
	}
}
