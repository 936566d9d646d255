package ibverbs

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// ErrPoolEmpty means that all buffers of the size are out.
var ErrPoolEmpty = errors.New("the pool has no buffer of that size left")

// PoolClass is one size of a pool's buffers.
type PoolClass struct {
	Size  int // bytes of a buffer, rounded up to 64
	Count int // how many there are
}

// PoolOptions say which buffers a BufferPool has.
type PoolOptions struct {
	Classes []PoolClass
	Access  Access
	Memory  BufferOptions // huge pages, NUMA nodes
	// Debug fills buffers that are put back, and sees at the next Get that
	// nobody has written to them meanwhile; it also remembers where buffers
	// were taken and put. It costs a pass over a buffer each time.
	Debug bool
}

// BufferPool hands out buffers of one memory region and takes them back. Get and
// Put are lock-free, allocate nothing, and are safe for concurrent use.
type BufferPool struct {
	mr      *MR
	object  string
	debug   bool
	classes []poolClass // by size
	slots   []poolSlot
	closing sync.Mutex  // one Close at a time
	gone    atomic.Bool // closed, or being closed
}

// poolClass is a stack of the free buffers of a size.
type poolClass struct {
	size  int
	count int
	// head is the top's slot number plus 1, 0 if there is none; in its upper
	// half it counts changes, so that a compare-and-swap sees that another top
	// with the same number has come.
	head atomic.Uint64
	_    [cacheLine - 8]byte

	waiting atomic.Int32
	mu      sync.Mutex
	waiters []chan struct{} // first come, first served; under mu
}

// poolSlot is what the pool knows about a buffer.
type poolSlot struct {
	next atomic.Uint32 // in the stack
	// turn is odd while the buffer is out. Each Get and each Put adds 1: a
	// PoolBuffer of an earlier turn is none any more.
	turn  atomic.Uint32
	class int
	off   int
	where atomic.Pointer[string] // of the last Get or Put; debug only
}

// PoolBuffer is a buffer of a pool. It is a value: copies of it are the same
// buffer, and none may be used after Put.
type PoolBuffer struct {
	data []byte
	pool *BufferPool
	slot uint32
	turn uint32
}

// CreateBufferPool maps and registers memory for all of opts.Classes as one
// region. The caller closes the pool, after its buffers are back.
func (pd *PD) CreateBufferPool(opts PoolOptions) (*BufferPool, error) {
	if err := pd.acquire(); err != nil {
		return nil, wrap("mmap", pd.object, err)
	}
	defer pd.release()
	classes := slices.Clone(opts.Classes)
	size := 0
	if len(classes) == 0 {
		return nil, wrap("mmap", pd.object, hint(syscall.EINVAL, "PoolOptions.Classes: a pool has at least one class"))
	}
	for i := range classes {
		c := &classes[i]
		if c.Size <= 0 || c.Count <= 0 || c.Size > maxPoolBytes || c.Count > maxPoolBytes/c.Size {
			return nil, wrap("mmap", pd.object, hint(syscall.EINVAL, "PoolClass %+v: Size and Count are positive, and at most %d bytes", *c, maxPoolBytes))
		}
		c.Size = (c.Size + cacheLine - 1) &^ (cacheLine - 1)
		size += c.Size * c.Count
	}
	slices.SortFunc(classes, func(a, b PoolClass) int { return b.Size - a.Size })
	mr, err := pd.AllocMR(size, opts.Access, opts.Memory)
	if err != nil {
		return nil, err
	}
	return newPool(mr, classes, opts.Debug), nil
}

// maxPoolBytes bounds the sum of a class.
const maxPoolBytes = 1 << 40

// newPool divides mr. classes are sorted from large to small, so that large
// buffers begin on pages.
func newPool(mr *MR, classes []PoolClass, debug bool) *BufferPool {
	p := &BufferPool{mr: mr, object: mr.object, debug: debug, classes: make([]poolClass, len(classes))}
	off := 0
	for i, c := range classes {
		at := len(classes) - 1 - i
		p.classes[at].size, p.classes[at].count = c.Size, c.Count
		for range c.Count {
			p.slots = append(p.slots, poolSlot{class: at, off: off})
			off += c.Size
		}
	}
	for i := range p.slots {
		if debug {
			spoil(p.bytes(uint32(i)))
		}
		p.push(uint32(i))
	}
	return p
}

func (p *BufferPool) bytes(slot uint32) []byte {
	s := &p.slots[slot]
	size := p.classes[s.class].size
	return p.mr.at.Load().buf.data[s.off : s.off+size : s.off+size]
}

// push puts a slot on top of its class's stack.
func (p *BufferPool) push(slot uint32) {
	s := &p.slots[slot]
	c := &p.classes[s.class]
	for {
		head := c.head.Load()
		s.next.Store(uint32(head))
		if c.head.CompareAndSwap(head, (head>>32+1)<<32|uint64(slot+1)) {
			return
		}
	}
}

// pop takes the top of a class's stack.
func (p *BufferPool) pop(c *poolClass) (slot uint32, ok bool) {
	for {
		head := c.head.Load()
		if uint32(head) == 0 {
			return 0, false
		}
		slot = uint32(head) - 1
		if c.head.CompareAndSwap(head, (head>>32+1)<<32|uint64(p.slots[slot].next.Load())) {
			return slot, true
		}
	}
}

// class is the one with the smallest buffers of at least size bytes.
func (p *BufferPool) class(size int) (*poolClass, error) {
	for i := range p.classes {
		if size <= p.classes[i].size {
			return &p.classes[i], nil
		}
	}
	return nil, wrap("get", p.object, hint(syscall.EINVAL, "%d bytes: the pool's buffers have none so large", size))
}

// TryGet takes a buffer of at least size bytes, from the class of the smallest
// such. It never waits: ErrPoolEmpty means that all of that class are out. After
// Close it returns os.ErrClosed.
func (p *BufferPool) TryGet(size int) (PoolBuffer, error) {
	c, err := p.class(size)
	if err != nil {
		return PoolBuffer{}, err
	}
	if slot, ok := p.pop(c); ok {
		return p.out(slot)
	}
	closed := p.closed()
	if slot, ok := p.pop(c); ok { // a Close that failed had it
		return p.out(slot)
	}
	if closed {
		return PoolBuffer{}, wrap("get", p.object, os.ErrClosed)
	}
	return PoolBuffer{}, wrap("get", p.object, ErrPoolEmpty)
}

// closed tells whether the pool is closed. It waits for a Close under way, which
// may still fail.
func (p *BufferPool) closed() bool {
	if !p.gone.Load() {
		return false
	}
	p.closing.Lock()
	defer p.closing.Unlock()
	return p.gone.Load()
}

// Get is TryGet, but waits until a buffer is put back, ctx ends or the pool is
// closed. Those who wait are told in turn, but one that comes just then may be
// faster.
func (p *BufferPool) Get(ctx context.Context, size int) (PoolBuffer, error) {
	c, err := p.class(size)
	if err != nil {
		return PoolBuffer{}, err
	}
	if slot, ok := p.pop(c); ok {
		return p.out(slot)
	}
	return p.wait(ctx, c)
}

// wait queues for a buffer of c.
func (p *BufferPool) wait(ctx context.Context, c *poolClass) (PoolBuffer, error) {
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	for {
		turn := c.queue()
		// Who puts a buffer back after this sees the waiter.
		if slot, ok := p.pop(c); ok {
			c.leave(turn)
			return p.out(slot)
		}
		if p.closed() {
			c.leave(turn)
			return PoolBuffer{}, wrap("get", p.object, os.ErrClosed)
		}
		select {
		case <-turn:
		case <-ctx.Done():
			c.leave(turn)
			return PoolBuffer{}, wrap("get", p.object, ctx.Err())
		}
	}
}

func (c *poolClass) queue() chan struct{} {
	turn := make(chan struct{}, 1)
	c.mu.Lock()
	c.waiters = append(c.waiters, turn)
	c.mu.Unlock()
	return turn
}

// leave takes a waiter out. A buffer that it has been told of is the next one's.
func (c *poolClass) leave(turn chan struct{}) {
	c.mu.Lock()
	i := slices.Index(c.waiters, turn)
	if i >= 0 {
		c.waiters = slices.Delete(c.waiters, i, i+1)
	}
	c.mu.Unlock()
	if i < 0 {
		c.tell()
	}
}

// tell lets the first waiter look, if there is one.
func (c *poolClass) tell() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiters) == 0 {
		return false
	}
	c.waiters[0] <- struct{}{}
	c.waiters = slices.Delete(c.waiters, 0, 1)
	return true
}

// out hands a slot to the caller.
func (p *BufferPool) out(slot uint32) (PoolBuffer, error) {
	s := &p.slots[slot]
	b := PoolBuffer{data: p.bytes(slot), pool: p, slot: slot, turn: s.turn.Add(1)}
	if p.debug {
		return p.outDebug(b)
	}
	return b, nil
}

// Put gives the buffer back. Neither its bytes nor its SGEs may be used after
// that, and no work request that names it may be outstanding. A buffer that was
// put back before is refused with EINVAL.
func (b PoolBuffer) Put() error {
	p := b.pool
	if p == nil {
		return hint(syscall.EINVAL, "a PoolBuffer that no pool gave")
	}
	s := &p.slots[b.slot]
	if p.debug {
		return p.putDebug(b)
	}
	if !s.turn.CompareAndSwap(b.turn, b.turn+1) {
		return p.putTwice(b)
	}
	p.giveBack(b.slot)
	return nil
}

func (p *BufferPool) giveBack(slot uint32) {
	p.push(slot)
	if c := &p.classes[p.slots[slot].class]; c.waiting.Load() > 0 {
		c.tell()
	}
}

func (p *BufferPool) putTwice(b PoolBuffer) error {
	err := hint(syscall.EINVAL, "buffer %d was put back before", b.slot)
	return wrap("put", p.object, err)
}

// Bytes is the buffer's memory, of its class's size.
func (b PoolBuffer) Bytes() []byte { return b.data }

// SGE names the buffer's first length bytes in a work request; see MR.SGE.
func (b PoolBuffer) SGE(length int) SGE {
	if length > len(b.data) {
		return outside
	}
	return b.pool.mr.SGE(b.pool.slots[b.slot].off, length)
}

// MR is the region that all buffers of the pool are in.
func (p *BufferPool) MR() *MR { return p.mr }

// Close deregisters and frees the memory. While buffers are out it does nothing
// but fail with EBUSY and say how many, and in debug mode where they were taken.
// It wakes those who wait in Get with os.ErrClosed, and is nil when called again.
func (p *BufferPool) Close() error {
	p.closing.Lock()
	defer p.closing.Unlock()
	if p.gone.Load() {
		return nil
	}
	p.gone.Store(true)
	// Once all buffers are in hand, no one else can have one.
	var held []uint32
	for i := range p.classes {
		for slot, ok := p.pop(&p.classes[i]); ok; slot, ok = p.pop(&p.classes[i]) {
			held = append(held, slot)
		}
	}
	err := p.leaks(len(p.slots) - len(held))
	if err == nil {
		err = p.mr.Close()
	}
	if err != nil {
		p.gone.Store(false)
		for _, slot := range held {
			p.giveBack(slot)
		}
		return err
	}
	for i := range p.classes {
		for p.classes[i].tell() {
		}
	}
	return nil
}
