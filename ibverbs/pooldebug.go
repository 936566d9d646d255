package ibverbs

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// What a BufferPool does in debug mode, and how it reports leaks.

// outDebug sees that nobody has written to a buffer since it was put back.
func (p *BufferPool) outDebug(b PoolBuffer) (PoolBuffer, error) {
	s := &p.slots[b.slot]
	if at := spoiled(b.data); at >= 0 {
		where := "the start"
		if last := s.where.Load(); last != nil {
			where = *last
		}
		err := hint(syscall.EFAULT, "byte %d of buffer %d was written after its Put at %s", at, b.slot, where)
		if put := b.Put(); put != nil {
			err = put
		}
		return PoolBuffer{}, wrap("get", p.object, err)
	}
	s.where.Store(caller())
	return b, nil
}

// putDebug claims the turn before it touches the buffer.
func (p *BufferPool) putDebug(b PoolBuffer) error {
	s := &p.slots[b.slot]
	if !s.turn.CompareAndSwap(b.turn, b.turn+1) {
		return p.putTwice(b)
	}
	spoil(b.data)
	s.where.Store(caller())
	p.giveBack(b.slot)
	return nil
}

// leaks reports buffers that are out.
func (p *BufferPool) leaks(out int) error {
	if out == 0 {
		return nil
	}
	var where []string
	for i := range p.slots {
		if s := &p.slots[i]; p.debug && s.turn.Load()&1 == 1 && s.where.Load() != nil && len(where) < 8 {
			where = append(where, fmt.Sprintf("buffer %d taken at %s", i, *s.where.Load()))
		}
	}
	said := fmt.Sprintf("%d of %d buffers are out", out, len(p.slots))
	if len(where) > 0 {
		said += ": " + strings.Join(where, ", ")
	}
	return wrap("close", p.object, hint(syscall.EBUSY, "%s", said))
}

// poison is what a buffer that is not out holds in debug mode.
const poison = 0xdb

func spoil(data []byte) {
	for i := range data {
		data[i] = poison
	}
}

// spoiled finds the first byte that is not poison, or -1.
func spoiled(data []byte) int {
	return slices.IndexFunc(data, func(b byte) bool { return b != poison })
}

// caller is where the pool's user called it.
func caller() *string {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "ibverbs.(*BufferPool)") && !strings.Contains(f.Function, "ibverbs.PoolBuffer") || !more {
			where := fmt.Sprintf("%s:%d", f.File, f.Line)
			return &where
		}
	}
}
