package bench

import (
	"fmt"
	"strings"
	"time"
)

// Op is the operation that a Task repeats.
type Op string

// The operations. docs/rdmabench.md says what each of them does on each
// transport, and from where to where its time is taken.
const (
	OpSend  Op = "send"
	OpWrite Op = "write"
	OpRead  Op = "read"
)

// Mode is how a program learns that something has arrived.
type Mode string

const (
	// ModePoll looks for completions (TCP: reads a non-blocking socket) in a loop.
	ModePoll Mode = "poll"
	// ModeEvent sleeps until the kernel wakes it.
	ModeEvent Mode = "event"
)

// Kind is what a Task measures.
type Kind string

const (
	// KindLatency has one message under way at a time and times each.
	KindLatency Kind = "latency"
	// KindThroughput has up to Depth messages under way and times them all.
	KindThroughput Kind = "throughput"
)

// The transports' names, as used in flags, files and the control protocol.
const (
	TransportRoCE  = "roce"
	TransportIWARP = "iwarp"
	TransportTCP   = "tcp"
)

// Limits of what a client may ask of a server.
const (
	MaxSize   = 64 << 20
	MaxIters  = 1 << 30
	MaxDepth  = 256
	MaxRegion = 256 << 20
	MaxLimit  = time.Hour

	// FullCheckRegion is how much memory, at most, is spent at each end so that
	// every message of a Task has a slot of its own, and can be checked as a whole
	// when the clock has stopped.
	FullCheckRegion = 32 << 20

	// LatencyMaxSize is the largest message whose latency is measured by default;
	// larger ones are measured for throughput.
	LatencyMaxSize = 16 << 10
)

// Task is one run of messages, as both ends agree on it. It is also the control
// protocol's form of it.
type Task struct {
	ID    uint64        `json:"id"`
	Op    Op            `json:"op"`
	Mode  Mode          `json:"mode"`
	Kind  Kind          `json:"kind"`
	Size  int           `json:"size"`  // of a message, in bytes
	Iters int           `json:"iters"` // messages that the client sends, writes or reads
	Depth int           `json:"depth"` // messages under way at most; 1 for latency
	Seed  uint64        `json:"seed"`  // of the messages' contents
	Limit time.Duration `json:"limit"` // after which the run has failed, in nanoseconds
}

// Validate reports the first thing about t that no run can have.
func (t Task) Validate() error {
	switch t.Op {
	case OpSend, OpWrite, OpRead:
	default:
		return fmt.Errorf("unknown operation %q: use send, write or read", t.Op)
	}
	switch t.Mode {
	case ModePoll, ModeEvent:
	default:
		return fmt.Errorf("unknown mode %q: use poll or event", t.Mode)
	}
	switch t.Kind {
	case KindLatency, KindThroughput:
	default:
		return fmt.Errorf("unknown kind of measurement %q: use latency or throughput", t.Kind)
	}
	switch {
	case t.Size < 1 || t.Size > MaxSize:
		return fmt.Errorf("message size %d: use 1 to %d bytes", t.Size, MaxSize)
	case t.Iters < 1 || t.Iters > MaxIters:
		return fmt.Errorf("%d iterations: use 1 to %d", t.Iters, MaxIters)
	case t.Depth < 1 || t.Depth > MaxDepth:
		return fmt.Errorf("depth %d: use 1 to %d", t.Depth, MaxDepth)
	case t.Kind == KindLatency && t.Depth != 1:
		return fmt.Errorf("depth %d in a latency measurement, which has one message under way", t.Depth)
	case t.Limit <= 0 || t.Limit > MaxLimit:
		return fmt.Errorf("time limit %v: use up to %v", t.Limit, MaxLimit)
	}
	if need := t.minSlots() * t.Stride(); need > MaxRegion {
		return fmt.Errorf("depth %d of %d-byte messages needs %d MiB of buffers, more than %d: use a smaller depth or size",
			t.Depth, t.Size, need>>20, MaxRegion>>20)
	}
	return nil
}

// fits reports why a data connection made with p is not enough for t.
func (t Task) fits(p Params) error {
	switch {
	case t.Depth > p.Depth:
		return fmt.Errorf("depth %d on a connection made for %d", t.Depth, p.Depth)
	case t.minSlots()*t.Stride() > p.Region:
		return fmt.Errorf("%d buffers of %d bytes on a connection made with %d bytes", t.minSlots(), t.Stride(), p.Region)
	}
	return nil
}

// Stride is the distance between two messages in a region: whole cache lines.
func (t Task) Stride() int { return (t.Size + 63) &^ 63 }

// minSlots is what the pattern of messages needs: a message's slot must not be
// used again while it may still be under way, on either side.
func (t Task) minSlots() int { return min(t.Iters, 2*t.Depth) }

// Region is how much memory each side wants for its source and again for its
// sink: a slot for every message within FullCheckRegion.
func (t Task) Region() int {
	return max(t.minSlots(), min(t.Iters, FullCheckRegion/t.Stride())) * t.Stride()
}

// Slots is how many messages a region of the given size holds for this Task.
func (t Task) Slots(region int) int { return min(t.Iters, region/t.Stride()) }

// AckEvery is how many messages of a stream the receiver acknowledges at once.
func (t Task) AckEvery() int { return max(1, t.Depth/4) }

// String names the Task for an error or a progress line: "SEND 64 B latency poll".
func (t Task) String() string {
	return fmt.Sprintf("%s %s %s %s", strings.ToUpper(string(t.Op)), FormatSize(t.Size), t.Kind, t.Mode)
}

// TransportTitle is a transport's name for people.
func TransportTitle(name string) string {
	switch name {
	case TransportRoCE:
		return "RoCE v2"
	case TransportIWARP:
		return "iWARP"
	case TransportTCP:
		return "TCP"
	}
	return name
}
