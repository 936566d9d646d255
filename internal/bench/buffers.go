package bench

// Buffers are one side's source and sink, and the messages that a Task has in them:
// what every Conn does for Prepare and Check.
type Buffers struct {
	Source, Sink []byte
	Server       bool

	out, in Pattern
	slots   int
	stride  int
	size    int
	// oneSided: the source's owner does not see the messages go, so that it
	// cannot stamp them; instead the reader clears their place.
	oneSided bool
	receives bool
}

// Prepare fills the source with t's first messages and clears the sink.
func (b *Buffers) Prepare(t Task) {
	b.slots, b.stride, b.size = t.Slots(len(b.Source)), t.Stride(), t.Size
	b.oneSided = t.Op == OpRead
	if d, sends := Outgoing(t, b.Server); sends {
		b.out = NewPattern(t, d, b.slots)
		b.out.FillAll(b.Source, b.stride)
	}
	var d Direction
	if d, b.receives = Incoming(t, b.Server); b.receives {
		b.in = NewPattern(t, d, b.slots)
		clear(b.Sink[:b.slots*b.stride])
	}
}

// SlotCount is how many messages the regions hold: message SlotCount takes the
// place of message 0.
func (b *Buffers) SlotCount() int { return b.slots }

// Offset is where message seq lies in its region.
func (b *Buffers) Offset(seq int) int { return seq % b.slots * b.stride }

// Out returns message seq, ready to be sent.
func (b *Buffers) Out(seq int) []byte {
	buf := b.Source[b.Offset(seq):][:b.size:b.size]
	if seq >= b.slots && !b.oneSided {
		b.out.Stamp(buf, seq)
	}
	return buf
}

// In returns the place for message seq.
func (b *Buffers) In(seq int) []byte {
	buf := b.Sink[b.Offset(seq):][:b.size:b.size]
	if seq >= b.slots && b.oneSided {
		clear(buf[:min(8, b.size)])
		buf[b.size-1] = 0
	}
	return buf
}

// Check compares what is in the sink; see Conn.Check.
func (b *Buffers) Check(t Task) (Verified, error) {
	if !b.receives {
		return Verified{}, nil
	}
	return b.in.CheckAll(b.Sink, b.stride, t.Iters)
}
