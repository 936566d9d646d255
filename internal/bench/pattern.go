package bench

import (
	"encoding/binary"
	"fmt"
)

// Direction tells the two sides' messages apart: no message of one can pass for
// one of the other.
type Direction uint64

const (
	FromClient Direction = 0x636c69656e740001
	FromServer Direction = 0x7365727665720002
)

// Pattern makes and checks the contents of a Task's messages. Each message's
// first eight bytes come from its sequence number, all others from its slot and
// their offset, so that a message that is late, early, stale, cut short, shifted or
// damaged differs from the expected one. The last byte is never 0, which lets a
// receiver see that a message has been written into a cleared slot.
type Pattern struct {
	seed  uint64
	size  int
	slots int
	// bySlot: messages of one slot are all the same, as a READ's source is not
	// touched between them.
	bySlot bool
}

// NewPattern returns the Pattern of t's messages in one direction, laid out in the
// given number of slots.
func NewPattern(t Task, d Direction, slots int) Pattern {
	return Pattern{seed: mix(t.Seed ^ uint64(d)), size: t.Size, slots: slots, bySlot: t.Op == OpRead}
}

// mix is SplitMix64's finalizer: every bit of the result depends on every bit of x.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Slot is where message seq lies.
func (p Pattern) Slot(seq int) int { return seq % p.slots }

// words returns the first word of message seq, and the second word and the step
// from each word to the next one of its slot.
func (p Pattern) words(seq int) (first, second, step uint64) {
	second = mix(p.seed ^ uint64(p.Slot(seq))<<1)
	if p.bySlot {
		seq = p.Slot(seq)
	}
	return mix(p.seed + uint64(seq)), second, mix(second) | 1
}

// Fill writes message seq into buf, which has the message's size.
func (p Pattern) Fill(buf []byte, seq int) {
	first, w, step := p.words(seq)
	putWord(buf, first)
	for i := 8; i < len(buf); i += 8 {
		putWord(buf[i:], w)
		w += step
	}
	setLast(buf)
}

// Stamp makes message seq of what Fill has written for an earlier message of the
// same slot: it costs the same whatever the size.
func (p Pattern) Stamp(buf []byte, seq int) {
	first, _, _ := p.words(seq)
	putWord(buf, first)
	if len(buf) <= 8 {
		setLast(buf)
	}
}

// Check compares buf with message seq and reports where they first differ.
func (p Pattern) Check(buf []byte, seq int) error {
	first, w, step := p.words(seq)
	if !p.sameWord(buf, 0, first) {
		return p.mismatch(buf, seq)
	}
	for i := 8; i < len(buf); i += 8 {
		if !p.sameWord(buf, i, w) {
			return p.mismatch(buf, seq)
		}
		w += step
	}
	return nil
}

// sameWord compares the word at i, or what the message has of it.
func (p Pattern) sameWord(buf []byte, i int, want uint64) bool {
	if len(buf)-i > 8 {
		return binary.LittleEndian.Uint64(buf[i:]) == want
	}
	var tail [8]byte
	n := putWord(tail[:len(buf)-i], want)
	setLast(tail[:n])
	return string(buf[i:]) == string(tail[:n])
}

// mismatch describes the first wrong byte.
func (p Pattern) mismatch(buf []byte, seq int) error {
	want := make([]byte, len(buf))
	p.Fill(want, seq)
	for i := range buf {
		if buf[i] != want[i] {
			return fmt.Errorf("wrong data: message %d of %d bytes has %#02x at byte %d, not %#02x", seq, len(buf), buf[i], i, want[i])
		}
	}
	return fmt.Errorf("wrong data: message %d changed while it was compared", seq)
}

func setLast(buf []byte) {
	if last := &buf[len(buf)-1]; *last == 0 {
		*last = 0xa5
	}
}

// putWord stores as much of w as buf has room for, little end first.
func putWord(buf []byte, w uint64) int {
	if len(buf) >= 8 {
		binary.LittleEndian.PutUint64(buf, w)
		return 8
	}
	for i := range buf {
		buf[i] = byte(w >> (8 * i))
	}
	return len(buf)
}

// FillAll writes the first messages of a run into their slots of a source region.
func (p Pattern) FillAll(region []byte, stride int) {
	for slot := range p.slots {
		p.Fill(region[slot*stride:][:p.size], slot)
	}
}

// CheckAll compares the last messages of a run of iters, one in each slot of a
// sink region, and returns how many it found right.
func (p Pattern) CheckAll(region []byte, stride, iters int) (Verified, error) {
	var v Verified
	for seq := max(0, iters-p.slots); seq < iters; seq++ {
		if err := p.Check(region[p.Slot(seq)*stride:][:p.size], seq); err != nil {
			return v, err
		}
		v.Messages++
		v.Bytes += int64(p.size)
	}
	return v, nil
}
