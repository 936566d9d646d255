package ibverbs

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
)

// nullPool is a pool whose memory no device has.
func nullPool(t testing.TB, debug bool, classes ...PoolClass) *BufferPool {
	t.Helper()
	size := 0
	for _, c := range classes {
		size += c.Size * c.Count
	}
	buf, err := mapBuffer(size, BufferOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mr := &MR{}
	mr.gone = true // there is nothing to deregister
	mr.at.Store(&region{buf: buf, addr: uint64(buf.addr()), length: size, lkey: 9})
	mr.object = "null0/pd1/mr1"

	t.Cleanup(func() { buf.free() })
	return newPool(mr, classes, debug)
}

func TestPoolClasses(t *testing.T) {
	p := nullPool(t, false, PoolClass{4096, 2}, PoolClass{64, 3})
	for _, tc := range []struct{ size, want int }{{1, 64}, {64, 64}, {65, 4096}, {4096, 4096}} {
		b, err := p.TryGet(tc.size)
		if err != nil || len(b.Bytes()) != tc.want || cap(b.Bytes()) != tc.want {
			t.Errorf("%d bytes: %d, %v", tc.size, len(b.Bytes()), err)
			continue
		}
		if sge := b.SGE(tc.size); sge.Addr != uint64(addrOf(b.Bytes())) || sge.Length != uint32(tc.size) || sge.LKey != 9 {
			t.Errorf("%d bytes: SGE %+v", tc.size, sge)
		}
		if sge := b.SGE(tc.want + 1); sge != outside {
			t.Errorf("an SGE beyond the buffer: %+v", sge)
		}
		if err := b.Put(); err != nil {
			t.Error(err)
		}
	}
	_, err := p.TryGet(4097)
	refusal(t, "too large", err, "get", syscall.EINVAL, "4097")
}

func TestPoolEmpty(t *testing.T) {
	p := nullPool(t, false, PoolClass{64, 2})
	a, _ := p.TryGet(1)
	b, _ := p.TryGet(1)
	if &a.Bytes()[0] == &b.Bytes()[0] {
		t.Fatal("one buffer twice")
	}
	_, err := p.TryGet(1)
	refusal(t, "empty", err, "get", ErrPoolEmpty)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Get(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Get with a context that has ended: %v", err)
	}
	got := make(chan PoolBuffer)
	go func() {
		c, err := p.Get(context.Background(), 1)
		if err != nil {
			t.Error(err)
		}
		got <- c
	}()
	if err := b.Put(); err != nil {
		t.Error(err)
	}
	c := <-got
	err = b.Put()
	refusal(t, "Put twice, the buffer being another's", err, "put", syscall.EINVAL)
	if err := errors.Join(a.Put(), c.Put()); err != nil {
		t.Error(err)
	}
	refusal(t, "Put twice", a.Put(), "put", syscall.EINVAL)
	if err := (PoolBuffer{}).Put(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a PoolBuffer of no pool: %v", err)
	}
}

func TestPoolDebug(t *testing.T) {
	p := nullPool(t, true, PoolClass{128, 1})
	b, err := p.TryGet(1)
	if err != nil {
		t.Fatal(err)
	}
	refusal(t, "Close", p.Close(), "close", syscall.EBUSY, "1 of 1 buffers", "pool_internal_test.go:")
	if err := b.Put(); err != nil {
		t.Fatal(err)
	}
	b.Bytes()[77] = 1
	_, err = p.TryGet(1)
	refusal(t, "Get of a buffer that was written", err, "get", syscall.EFAULT, "byte 77", "pool_internal_test.go:")
	b, err = p.TryGet(1) // it is whole again
	if err != nil {
		t.Fatal(err)
	}
	refusal(t, "Put twice", errors.Join(b.Put(), b.Put()), "put", syscall.EINVAL)
}

// Close wakes those who wait, and refuses while buffers are out.
func TestPoolClose(t *testing.T) {
	p := nullPool(t, false, PoolClass{64, 2})
	a, _ := p.TryGet(1)
	b, _ := p.TryGet(1)
	ended := make(chan error)
	go func() {
		for {
			c, err := p.Get(context.Background(), 1)
			if err != nil {
				ended <- err
				return
			}
			if err := c.Put(); err != nil {
				t.Error(err)
			}
		}
	}()
	refusal(t, "Close", p.Close(), "close", syscall.EBUSY, "of 2 buffers")
	if err := errors.Join(a.Put(), b.Put()); err != nil {
		t.Error(err)
	}
	for errors.Is(p.Close(), syscall.EBUSY) { // the goroutine may have one
	}
	refusal(t, "Get while it closes", <-ended, "get", os.ErrClosed)
	_, err := p.TryGet(1)
	refusal(t, "Get after Close", err, "get", os.ErrClosed)
	if err := p.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// Many take and put at once: each buffer has one owner, and nobody waits for
// ever.
func TestPoolConcurrent(t *testing.T) {
	p := nullPool(t, false, PoolClass{64, 3}, PoolClass{64 * 2, 1})
	var all sync.WaitGroup
	for id := range byte(8) {
		all.Go(func() {
			for i := range 3000 {
				size := 64 * (1 + i&1)
				b, err := p.Get(context.Background(), size)
				if err != nil {
					t.Error(err)
					return
				}
				mem := b.Bytes()
				mem[0], mem[size-1] = id, id
				if mem[0] != id || mem[size-1] != id {
					t.Error("two have the same buffer")
				}
				if err := b.Put(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := p.leaks(len(p.slots) - free(p)); err != nil {
		t.Error(err)
	}
}

func free(p *BufferPool) (n int) {
	for i := range p.classes {
		for _, ok := p.pop(&p.classes[i]); ok; _, ok = p.pop(&p.classes[i]) {
			n++
		}
	}
	return n
}

func TestPoolAllocs(t *testing.T) {
	p := nullPool(t, false, PoolClass{4096, 4})
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		b, err := p.Get(ctx, 100)
		if err != nil || b.SGE(100) == outside || b.Put() != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPool takes and puts a buffer in turn with sync.Pool.
func BenchmarkPool(b *testing.B) {
	p := nullPool(b, false, PoolClass{4096, 64})
	ours := func(rounds int) {
		for range rounds {
			buf, err := p.TryGet(4096)
			if err != nil || buf.Put() != nil {
				b.Fatal(err)
			}
		}
	}
	std := sync.Pool{New: func() any { return new([4096]byte) }}
	theirs := func(rounds int) {
		for range rounds {
			std.Put(std.Get())
		}
	}
	for range b.N {
		rounds := calibrate(ours)
		var ratios, times []float64
		for range benchPairs {
			a, s := timed(ours, rounds), timed(theirs, rounds)
			ratios, times = append(ratios, a/s), append(times, each(a, rounds))
		}
		b.ReportMetric(median(times), "get-put-ns")
		b.ReportMetric(median(ratios), "vs-sync-pool")
		b.ReportMetric(0, "ns/op")
	}
}
