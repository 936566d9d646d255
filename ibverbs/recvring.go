package ibverbs

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// RecvQueue is what a RecvRing posts to: a *QP or an *SRQ.
type RecvQueue interface {
	PostRecv(wrs []RecvWR) (accepted int, err error)
	PD() *PD
	closed() bool
	maxRecvWR() int
	datagramsOnly() bool
}

func (qp *QP) maxRecvWR() int        { return int(qp.cap.MaxRecvWR) }
func (qp *QP) datagramsOnly() bool   { return qp.typ == QPTypeUD }
func (srq *SRQ) maxRecvWR() int      { return srq.MaxWR() }
func (srq *SRQ) datagramsOnly() bool { return false }

// RecvRingOptions say which buffers a RecvRing has.
type RecvRingOptions struct {
	Buffers int // how many receives stay posted; at most what the queue has room for
	Size    int // bytes of the longest message, without its GRH
	// GRH makes room for the GRHs of UD messages. A UD QP's ring always has
	// it; an SRQ's needs it where UD QPs take from it, all of them being UD then.
	GRH bool
	// Batch is how many buffers Repost gathers before it posts them: more make
	// a call cheaper, and leave fewer posted meanwhile. 0 stands for a quarter
	// of Buffers, at most 32.
	Batch int
}

// RecvRing keeps a receive queue filled, from buffers of one size in a memory
// region of its own:
//
//	wcs come from CQ.Poll or CQ.Wait:
//	for i := range wcs[:n] {
//		message, err := ring.Bytes(&wcs[i])
//		… // look at message
//		err = ring.Repost(&wcs[i])
//	}
//
// It allocates nothing for a message, copies none, and is safe for concurrent
// use; the bytes of a message are the caller's from its completion until
// Repost.
//
// A ring for each QP has room for all peers to send at once, Buffers*Size bytes
// a peer. With many peers, of which few send at a time, one SRQ and one ring
// serve them from far less.
type RecvRing struct {
	queue  RecvQueue
	mr     *MR
	mem    []byte // mr's
	object string // mr's, for errors
	number uint64
	grh    int // bytes in front of the message
	slot   int // from one buffer to the next
	size   int // of a buffer, GRH included
	batch  int

	mu      sync.Mutex
	gone    bool
	slots   []ringSlot
	sges    []SGE
	pending []RecvWR // to be posted
}

// ringSlot is what the ring knows about a buffer.
type ringSlot struct {
	turn   uint32 // counts its receives; ringTurnBits of it go round
	posted bool   // and not given back since
}

// A ring's work requests have an id that says which ring, buffer and turn it
// is, so that a completion that was used before, or is another's, is known.
const (
	ringBit      = 1 << 63
	ringTurnBits = 24
	ringSlotBits = 20
	ringNumbers  = 1<<(63-ringSlotBits-ringTurnBits) - 1
)

var ringNumber atomic.Uint64

// NewRecvRing allocates buffers, registers them and posts them all, to a QP in
// state INIT or later, or to an SRQ. The caller closes the ring, after the QP or
// SRQ.
//
// The ring's work requests have ids (WC.WRID) whose bit 63 is set: keep it clear
// in others of the same CQ.
func NewRecvRing(queue RecvQueue, opts RecvRingOptions) (*RecvRing, error) {
	pd := queue.PD()
	if pd == nil {
		return nil, wrap("receive ring", "", hint(syscall.EINVAL, "the QP takes its receives from SRQs"))
	}
	if err := opts.check(queue); err != nil {
		return nil, wrap("receive ring", pd.object, err)
	}
	r := &RecvRing{
		queue: queue, number: ringNumber.Add(1) & ringNumbers, batch: opts.Batch,
		slots: make([]ringSlot, opts.Buffers), sges: make([]SGE, opts.Buffers), pending: make([]RecvWR, 0, opts.Buffers),
	}
	if opts.GRH || queue.datagramsOnly() {
		r.grh = GRHSize
	}
	const line = 64 // of the processor's cache: no two messages share one
	r.size = r.grh + opts.Size
	r.slot = (r.size + line - 1) &^ (line - 1)
	mr, err := pd.AllocMR(opts.Buffers*r.slot, AccessLocalWrite, BufferOptions{})
	if err != nil {
		return nil, err
	}
	r.mr, r.mem, r.object = mr, mr.Bytes(), mr.object
	for i := range r.slots {
		r.sges[i] = mr.SGE(i*r.slot, r.size)
		r.gather(i)
	}
	if err := r.post(); err != nil {
		// What was posted loses its memory: the device fails it then.
		mr.Close()
		return nil, err
	}
	return r, nil
}

func (o *RecvRingOptions) check(queue RecvQueue) error {
	if queue.maxRecvWR() == 0 {
		return hint(syscall.EINVAL, "the QP has no room for receives, or takes them from an SRQ: post there")
	}
	if o.Buffers < 1 || o.Buffers > queue.maxRecvWR() || o.Buffers > 1<<ringSlotBits {
		return hint(syscall.EINVAL, "%d buffers: the queue has room for 1 to %d", o.Buffers, min(queue.maxRecvWR(), 1<<ringSlotBits))
	}
	const most = 1 << 30
	if o.Size < 1 || o.Size > most {
		return hint(syscall.EINVAL, "buffers of %d bytes: they have 1 to %d", o.Size, most)
	}
	if o.Batch < 0 || o.Batch > o.Buffers {
		return hint(syscall.EINVAL, "batches of %d: there are %d buffers", o.Batch, o.Buffers)
	}
	if o.Batch == 0 {
		o.Batch = max(1, min(o.Buffers/4, 32))
	}
	return nil
}

// gather puts a buffer among those to be posted.
func (r *RecvRing) gather(slot int) {
	r.pending = append(r.pending, RecvWR{WRID: r.id(slot), SGList: r.sges[slot : slot+1]})
}

// id is the work request id of a buffer's present turn.
func (r *RecvRing) id(slot int) uint64 {
	turn := uint64(r.slots[slot].turn) & (1<<ringTurnBits - 1)
	return ringBit | r.number<<(ringSlotBits+ringTurnBits) | uint64(slot)<<ringTurnBits | turn
}

// ringSlotOf is the buffer that an id names.
func ringSlotOf(id uint64) int { return int(id >> ringTurnBits & (1<<ringSlotBits - 1)) }

// post posts what is gathered; what is not accepted stays there.
func (r *RecvRing) post() error {
	if len(r.pending) == 0 {
		return nil
	}
	n, err := r.queue.PostRecv(r.pending)
	for i := range r.pending[:n] {
		r.slots[ringSlotOf(r.pending[i].WRID)].posted = true
	}
	r.pending = append(r.pending[:0], r.pending[n:]...)
	return err
}

// Owns tells whether a completion is of one of the ring's receives.
func (r *RecvRing) Owns(wc *WC) bool {
	return wc.WRID>>(ringSlotBits+ringTurnBits) == (ringBit|r.number<<(ringSlotBits+ringTurnBits))>>(ringSlotBits+ringTurnBits)
}

// find gives the buffer that a completion is about.
func (r *RecvRing) find(wc *WC) (int, error) {
	if r.gone {
		return 0, os.ErrClosed
	}
	slot := ringSlotOf(wc.WRID)
	switch {
	case !r.Owns(wc) || slot >= len(r.slots):
		return 0, hint(syscall.EINVAL, "work request %#x is not one of this ring's", wc.WRID)
	case !r.slots[slot].posted || r.id(slot) != wc.WRID:
		return 0, hint(syscall.EINVAL, "the completion is an old one: its buffer has been reposted")
	}
	return slot, nil
}

// buffer is the part of its buffer that a completion has filled.
func (r *RecvRing) buffer(wc *WC) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slot, err := r.find(wc)
	if err != nil {
		return nil, wrap("receive ring", r.object, err)
	}
	if wc.Status != WCStatusSuccess {
		return nil, wc.Err()
	}
	n := int(wc.ByteLen)
	if wc.Opcode == WCRecvRDMAWithImm {
		n = r.grh // its bytes went to where the peer said
	}
	if n < r.grh || n > r.size {
		return nil, wrap("receive ring", r.object, hint(syscall.EINVAL, "a completion of %d bytes in a buffer of %d", n, r.size))
	}
	return r.mem[slot*r.slot:][:n:n], nil
}

// Bytes is the message that a completion is about, without its GRH: empty for
// an RDMA_WRITE_WITH_IMM. It stays as it is until Repost. For a work request
// that failed the error is WC.Err's. EINVAL means that the completion is no
// receive's of this ring, or one that has been reposted.
func (r *RecvRing) Bytes(wc *WC) ([]byte, error) {
	b, err := r.buffer(wc)
	if err != nil {
		return nil, err
	}
	return b[r.grh:], nil
}

// GRH is the 40 bytes in front of a UD message, for ParseGRH and
// PD.CreateAHFromWC. EINVAL means that it has none, or what it means for Bytes.
func (r *RecvRing) GRH(wc *WC) ([]byte, error) {
	b, err := r.buffer(wc)
	if err != nil {
		return nil, err
	}
	if r.grh == 0 || wc.Flags&WCGRH == 0 {
		return nil, wrap("receive ring", r.object, hint(syscall.EINVAL, "the message has no GRH"))
	}
	return b[:GRHSize:GRHSize], nil
}

// Repost gives the buffer of a completion back, whether it brought a message or
// an error, and posts a batch of those when there are enough: ibv_post_recv(3).
// The message's bytes are the device's from then on. EINVAL is as for Bytes, and
// changes nothing.
//
// An error of PostRecv's leaves the buffers gathered: Flush or the next Repost
// posts them.
func (r *RecvRing) Repost(wc *WC) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	slot, err := r.find(wc)
	if err != nil {
		return wrap("receive ring", r.object, err)
	}
	r.slots[slot].posted = false
	r.slots[slot].turn++
	r.gather(slot)
	if len(r.pending) < r.batch {
		return nil
	}
	return r.post()
}

// Flush posts what Repost has gathered, without waiting for a whole batch.
func (r *RecvRing) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return wrap("receive ring", r.object, os.ErrClosed)
	}
	return r.post()
}

// MR is the memory of the ring's buffers.
func (r *RecvRing) MR() *MR { return r.mr }

// Close frees the buffers: no message's bytes may be used after that. It fails
// with EBUSY while the QP or SRQ is open, which may still fill them, and is nil
// when called again.
func (r *RecvRing) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return nil
	}
	if !r.queue.closed() {
		return wrap("receive ring", r.object, hint(syscall.EBUSY, "close %v first", r.queue))
	}
	err := r.mr.Close()
	r.gone = err == nil
	return err
}
