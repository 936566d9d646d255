package ibverbs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/goverbs/goverbs/internal/pollfd"
)

// CompChannel is a completion event channel. One channel can serve many CQs.
// Its descriptor is in Go's network poller: a goroutine that waits costs no OS
// thread. It is safe for concurrent use.
type CompChannel struct {
	handle
	dev *Device
	ch  *cCompChannel
	fd  *pollfd.FD

	mu     sync.Mutex
	cqs    map[uintptr]*CQ // by the id that C carries for us
	raised []*CQ           // have an event that C knows nothing of
}

// cqIDs numbers CQs: C carries the number, never a Go pointer.
var cqIDs atomic.Uintptr

// channelIDs numbers completion channels, for their names.
var channelIDs atomic.Uint64

// CreateCompChannel creates a completion event channel:
// ibv_create_comp_channel(3). The caller closes it.
func (d *Device) CreateCompChannel() (*CompChannel, error) {
	const op = "ibv_create_comp_channel"
	ch := &CompChannel{dev: d, cqs: make(map[uintptr]*CQ)}
	if err := ch.adopt("completion channel", &d.handle); err != nil {
		return nil, wrap(op, d.object, err)
	}
	if err := ch.create(); err != nil {
		ch.disown()
		return nil, wrap(op, d.object, err)
	}
	watch(ch, &ch.handle)
	return ch, nil
}

func (ch *CompChannel) create() error {
	c, err := createCompChannel(ch.dev.ctx)
	if err != nil {
		return err
	}
	ch.named("%s/channel%d", ch.dev.object, channelIDs.Add(1))
	fd, err := pollfd.New(compChannelFD(c), ch.object)
	if err != nil {
		destroyCompChannel(c)
		return err
	}
	ch.ch, ch.fd = c, fd
	return nil
}

// Wait takes one completion event and returns its CQ: ibv_get_cq_event(3),
// acknowledged. An event says that a CQ that was armed (CQ.ReqNotify) has had
// a completion since; arm it again, then poll it until it is empty.
//
// Wait parks the goroutine until an event comes, ctx ends or the channel is
// closed. Most programs want CQ.Wait, which does all of it for one CQ; do not
// use both on CQs of one channel.
func (ch *CompChannel) Wait(ctx context.Context) (*CQ, error) {
	const op = "ibv_get_cq_event"
	if err := ch.acquire(); err != nil {
		return nil, wrap(op, ch.object, err)
	}
	defer ch.release()
	var got *CQ
	err := ch.fd.Wait(ctx, func() (done bool, err error) {
		got, err = ch.take()
		return got != nil, err
	})
	return got, wrapWait(op, ch.object, err)
}

// wrapWait leaves a context's error as it is: callers compare it.
func wrapWait(op, object string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return wrap(op, object, err)
}

// take reads events until one is a living CQ's; nil when there are no more.
func (ch *CompChannel) take() (*CQ, error) {
	if cq := ch.takeRaised(); cq != nil {
		return cq, nil
	}
	for {
		id, err := getCQEvent(ch.ch)
		if err == syscall.EAGAIN {
			return nil, nil
		}
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		ch.mu.Lock()
		cq := ch.cqs[id]
		ch.mu.Unlock()
		if cq != nil {
			return cq, nil
		}
	}
}

// raise gives cq an event, as C would for a completion.
func (ch *CompChannel) raise(cq *CQ) {
	ch.mu.Lock()
	if ch.cqs[cq.id] == cq && !slices.Contains(ch.raised, cq) {
		ch.raised = append(ch.raised, cq)
	}
	ch.mu.Unlock()
	ch.fd.Kick()
}

func (ch *CompChannel) takeRaised() *CQ {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if len(ch.raised) == 0 {
		return nil
	}
	cq := ch.raised[0]
	ch.raised = slices.Delete(ch.raised, 0, 1)
	return cq
}

// hand passes an event to whoever waits for cq.
func (ch *CompChannel) hand(cq *CQ) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.cqs[cq.id] != cq {
		return // closed meanwhile, and so is cq.event
	}
	select {
	case cq.event <- struct{}{}:
	default: // one is waiting already
	}
}

func (ch *CompChannel) register(cq *CQ) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	cq.event = make(chan struct{}, 1)
	ch.cqs[cq.id] = cq
}

// unregister wakes everybody who waits for cq.
func (ch *CompChannel) unregister(cq *CQ) {
	ch.mu.Lock()
	delete(ch.cqs, cq.id)
	ch.raised = slices.DeleteFunc(ch.raised, func(other *CQ) bool { return other == cq })
	close(cq.event)
	ch.mu.Unlock()
	ch.fd.Kick()
}

// Close destroys the channel: ibv_destroy_comp_channel(3). It wakes waiters
// with os.ErrClosed, fails with EBUSY while CQs use the channel, and is nil
// when called again.
func (ch *CompChannel) Close() error {
	wake := func() { ch.fd.Close() }
	return ch.close("ibv_destroy_comp_channel", wake, func() error { return destroyCompChannel(ch.ch) })
}
