package bench

import (
	"bytes"
	"testing"
)

func task(size, iters int) Task {
	return Task{Op: OpSend, Kind: KindThroughput, Size: size, Iters: iters, Depth: 1, Seed: 42}
}

func TestPatternChecksWhatItFills(t *testing.T) {
	for size := 1; size <= 100; size++ {
		p := NewPattern(task(size, 10), FromClient, 4)
		buf := make([]byte, size)
		for seq := range 10 {
			p.Fill(buf, seq)
			if err := p.Check(buf, seq); err != nil {
				t.Fatalf("size %d: %v", size, err)
			}
			if buf[size-1] == 0 {
				t.Fatalf("size %d, message %d: the last byte is 0", size, seq)
			}
			for i := range buf {
				buf[i] ^= 0x10
				if p.Check(buf, seq) == nil {
					t.Fatalf("size %d, message %d: a change of byte %d passes", size, seq, i)
				}
				buf[i] ^= 0x10
			}
		}
	}
}

// TestPatternTellsMessagesApart: what is right for one message is wrong for any
// other, of another number, run, direction or place.
func TestPatternTellsMessagesApart(t *testing.T) {
	const size = 256
	p := NewPattern(task(size, 10), FromClient, 4)
	other := task(size, 10)
	other.Seed++
	buf := make([]byte, size)
	p.Fill(buf, 5)
	for name, check := range map[string]error{
		"number":    p.Check(buf, 6),
		"round":     p.Check(buf, 1), // the same slot
		"run":       NewPattern(other, FromClient, 4).Check(buf, 5),
		"direction": NewPattern(task(size, 10), FromServer, 4).Check(buf, 5),
		"shifted":   p.Check(append(buf[8:], buf[:8]...), 5),
		"zeroes":    p.Check(make([]byte, size), 5),
	} {
		if check == nil {
			t.Errorf("%s: passes", name)
		}
	}
}

func TestStampMakesTheNextMessageOfASlot(t *testing.T) {
	for _, size := range []int{1, 7, 8, 9, 16, 100} {
		p := NewPattern(task(size, 100), FromServer, 4)
		stamped, filled := make([]byte, size), make([]byte, size)
		p.Fill(stamped, 3)
		for seq := 7; seq < 100; seq += 4 {
			p.Stamp(stamped, seq)
			p.Fill(filled, seq)
			if !bytes.Equal(stamped, filled) {
				t.Errorf("size %d, message %d: stamped %x, filled %x", size, seq, stamped, filled)
			}
		}
	}
}

// TestBuffersWrap sends more messages than there are slots, by copying.
func TestBuffersWrap(t *testing.T) {
	for _, op := range []Op{OpSend, OpRead} {
		run := task(100, 11)
		run.Op = op
		region := run.Stride() * 4
		client := Buffers{Source: make([]byte, region), Sink: make([]byte, region)}
		server := Buffers{Source: make([]byte, region), Sink: make([]byte, region), Server: true}
		client.Prepare(run)
		server.Prepare(run)
		from, to := &client, &server
		if op == OpRead {
			from, to = &server, &client
		}
		for seq := range run.Iters {
			copy(to.In(seq), from.Out(seq))
		}
		if v, err := to.Check(run); err != nil || v != (Verified{Messages: 4, Bytes: 400}) {
			t.Errorf("%s: %+v, %v", op, v, err)
		}
		if v, err := from.Check(run); err != nil || v != (Verified{}) {
			t.Errorf("%s: the sender verified %+v, %v", op, v, err)
		}
		// One message too few: the slot holds an older one, or was cleared.
		to.Prepare(run)
		for seq := range run.Iters - 1 {
			copy(to.In(seq), from.Out(seq))
		}
		to.In(run.Iters - 1)
		if _, err := to.Check(run); err == nil {
			t.Errorf("%s: a missing message passes", op)
		}
	}
}
