package ibverbs

import (
	"errors"
	"syscall"
	"testing"
)

// fakeQueue accepts as many receives as it has room for.
type fakeQueue struct {
	room   int
	posted []RecvWR
}

func (q *fakeQueue) PostRecv(wrs []RecvWR) (int, error) {
	n := min(len(wrs), q.room)
	q.room -= n
	q.posted = append(q.posted, wrs[:n]...)
	if n < len(wrs) {
		return n, ErrQueueFull
	}
	return n, nil
}

func (q *fakeQueue) PD() *PD             { return nil }
func (q *fakeQueue) closed() bool        { return false }
func (q *fakeQueue) maxRecvWR() int      { return 8 }
func (q *fakeQueue) datagramsOnly() bool { return false }

// take is the completion of the oldest receive that was posted.
func (q *fakeQueue) take() *WC {
	wc := &WC{WRID: q.posted[0].WRID, Opcode: WCRecv, ByteLen: 4}
	q.posted = q.posted[1:]
	return wc
}

func fakeRing(q *fakeQueue, buffers int) *RecvRing {
	r := &RecvRing{
		queue: q, object: "fake", number: ringNumber.Add(1) & ringNumbers, batch: 1, slot: 64, size: 64, mem: make([]byte, 64*buffers),
		slots: make([]ringSlot, buffers), sges: make([]SGE, buffers), pending: make([]RecvWR, 0, buffers),
	}
	for i := range r.slots {
		r.sges[i].Addr = uint64(i)
		r.gather(i)
	}
	return r
}

// What a queue does not accept stays gathered, in order, and is not taken for
// posted.
func TestRecvRingFull(t *testing.T) {
	q := &fakeQueue{room: 2}
	r := fakeRing(q, 4)
	if err := r.Flush(); !errors.Is(err, ErrQueueFull) || len(q.posted) != 2 {
		t.Fatalf("%d posted, %v; want 2 and ErrQueueFull", len(q.posted), err)
	}
	early := &WC{WRID: r.id(3)}
	if err := r.Repost(early); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a buffer that was not posted: %v, want EINVAL", err)
	}
	q.room = 10
	if err := r.Repost(q.take()); err != nil || len(q.posted) != 4 {
		t.Fatalf("%d posted, %v; want 4", len(q.posted), err)
	}
	for i, want := range []int{1, 2, 3, 0} {
		if got := ringSlotOf(q.posted[i].WRID); got != want || q.posted[i].SGList[0].Addr != uint64(want) {
			t.Errorf("receive %d is of buffer %d, want %d", i, got, want)
		}
	}
}

// A buffer's turns go round, its neighbours stay as they are, and a completion
// of the turn before is never taken for one of this.
func TestRecvRingTurns(t *testing.T) {
	q := &fakeQueue{room: 1000}
	r := fakeRing(q, 1)
	r.slots[0].turn = 1<<ringTurnBits - 2
	r.pending[0].WRID = r.id(0)
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	for turn := range 5 {
		wc := q.take()
		if _, err := r.Bytes(wc); err != nil || !r.Owns(wc) {
			t.Fatalf("turn %d: %v", turn, err)
		}
		if err := r.Repost(wc); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Bytes(wc); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("turn %d again: %v, want EINVAL", turn, err)
		}
	}
	// A provider that gives a length of its own must not make us read beyond.
	wc := q.take()
	wc.ByteLen = 65
	if b, err := r.Bytes(wc); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("65 bytes in a buffer of 64: %d bytes, %v; want EINVAL", len(b), err)
	}
}
