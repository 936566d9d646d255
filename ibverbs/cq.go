package ibverbs

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// CQ is a completion queue. It is safe for concurrent use; each completion
// goes to one caller.
type CQ struct {
	handle
	dev     *Device
	cq      *cCQ
	cqe     atomic.Int64
	channel *CompChannel
	id      uintptr
	rxe     bool
	debts   *debts // Soft-iWARP only

	resizing sync.Mutex // one Resize at a time

	// event is told of a completion event by the goroutine that reads the
	// channel, and closed by Close.
	event   chan struct{}
	try     func() (bool, error) // tryEvent, bound once
	waiters atomic.Int32
}

// CQOptions are what CreateCQ may be told. The zero value is a CQ for polling.
type CQOptions struct {
	// Channel gets the CQ's events; Wait needs one. nil means none.
	Channel *CompChannel
	// CompVector spreads the interrupts of several CQs: 0 to
	// Device.CompVectors() - 1.
	CompVector int
}

// CreateCQ creates a completion queue with room for at least cqe completions:
// ibv_create_cq(3). CQE tells how many it got. The caller closes it, after all
// QPs that use it.
//
// Make it at least as long as all the work requests that can be outstanding on
// its QPs. A completion that finds it full is lost, and the device raises
// EventCQErr (Device.ReadAsyncEvent); nothing that the QPs do afterwards can be
// relied upon.
func (d *Device) CreateCQ(cqe int, opts CQOptions) (*CQ, error) {
	const op = "ibv_create_cq"
	cq := &CQ{dev: d, channel: opts.Channel}
	err := cq.init(func(ch *cCompChannel) (*cCQ, error) {
		if err := d.checkCQ(int64(cqe), opts.CompVector); err != nil {
			return nil, err
		}
		return createCQ(d.ctx, cqe, cq.id, ch, opts.CompVector)
	})
	if err != nil {
		return nil, wrap(op, d.object, err)
	}
	watch(cq, &cq.handle)
	return cq, nil
}

// init starts the lifetime of a CQ whose device and channel are set, and
// creates it.
func (cq *CQ) init(create func(*cCompChannel) (*cCQ, error), parents ...*handle) error {
	cq.try, cq.rxe = cq.tryEvent, cq.dev.isRXE()
	if cq.dev.isSIW() {
		cq.debts = &debts{by: make(map[uint32]*owed)}
	}
	parents = append(parents, &cq.dev.handle)
	var ch *cCompChannel
	if cq.channel != nil {
		if cq.channel.dev != cq.dev {
			return hint(syscall.EINVAL, "%v is another device's", cq.channel)
		}
		parents = append(parents, &cq.channel.handle)
		ch = cq.channel.ch
	}
	if err := cq.adopt("CQ", parents...); err != nil {
		return err
	}
	if cq.channel != nil {
		cq.id = cqIDs.Add(1)
		cq.channel.register(cq)
	}
	c, err := create(ch)
	if err != nil {
		cq.wake()
		cq.disown()
		return err
	}
	cq.cq = c
	number, cqe := cqNumbers(c)
	cq.cqe.Store(int64(cqe))
	cq.dev.async.register(cqID(c), cq)
	cq.named("%s/cq%d", cq.dev.object, number)
	return nil
}

// checkCQ refuses what a CQ of the device cannot have; not all drivers do.
func (d *Device) checkCQ(cqe int64, vector int) error {
	limits, err := d.limits()
	switch {
	case err != nil:
		return err
	case cqe < 1 || cqe > int64(limits.MaxCQE):
		return hint(syscall.EINVAL, "%d entries: the device allows 1 to %d", cqe, limits.MaxCQE)
	case vector < 0 || vector >= d.CompVectors():
		return hint(syscall.EINVAL, "completion vector %d: the device has 0 to %d", vector, d.CompVectors()-1)
	}
	return nil
}

// CompVectors is how many completion vectors the device has: CQOptions'
// CompVector is below it. 0 once the device is closed.
func (d *Device) CompVectors() int {
	if d.acquire() != nil {
		return 0
	}
	defer d.release()
	return compVectors(d.ctx)
}

// CQE is the number of completions that the CQ has room for, which may be more
// than was asked for.
func (cq *CQ) CQE() int { return int(cq.cqe.Load()) }

// Channel is the CQ's completion channel, or nil.
func (cq *CQ) Channel() *CompChannel { return cq.channel }

// Device is the device that the CQ belongs to.
func (cq *CQ) Device() *Device { return cq.dev }

// Poll takes up to len(wcs) completions without waiting: ibv_poll_cq(3), one
// cgo call whatever the number. It returns how many there were, and allocates
// nothing. Look at each completion's Status.
func (cq *CQ) Poll(wcs []WC) (int, error) {
	const op = "ibv_poll_cq"
	if err := cq.acquire(); err != nil {
		return 0, wrap(op, cq.object, err)
	}
	// No defer, and the shortest way to C where no driver needs help: an
	// empty poll is what programs do most.
	var n int
	var err error
	switch {
	case len(wcs) == 0:
	case cq.debts == nil && !cq.rxe:
		n, err = pollCQ(cq.cq, wcs)
	default:
		n, err = cq.poll(wcs)
	}
	cq.release()
	if err != nil {
		return 0, wrap(op, cq.object, err)
	}
	return n, nil
}

func (cq *CQ) poll(wcs []WC) (int, error) {
	if cq.debts != nil {
		return cq.debts.poll(cq, wcs)
	}
	n, err := pollCQ(cq.cq, wcs)
	cq.mend(wcs[:n])
	return n, err
}

func (cq *CQ) spin(wcs []WC, budget time.Duration) (int, error) {
	if cq.debts != nil {
		return cq.debts.spin(cq, wcs, budget)
	}
	n, err := spinCQ(cq.cq, wcs, uint64(max(budget, 0)))
	cq.mend(wcs[:n])
	return n, err
}

// Spin polls in C until there is a completion or budget has passed, and
// returns like Poll: 0 and no error when nothing came. It keeps the processor
// (and an OS thread) busy all that time, for the lowest latency; Go's
// preemption signals do not interrupt it. Budgets of tens of microseconds to
// some milliseconds make sense: Close waits for a Spin to end.
func (cq *CQ) Spin(wcs []WC, budget time.Duration) (int, error) {
	const op = "ibv_poll_cq"
	if err := cq.acquire(); err != nil {
		return 0, wrap(op, cq.object, err)
	}
	defer cq.release()
	if len(wcs) == 0 {
		return 0, nil
	}
	n, err := cq.spin(wcs, budget)
	if err != nil {
		return 0, wrap(op, cq.object, err)
	}
	return n, nil
}

// ReqNotify arms the CQ: its next completion, or only the next one of a
// message that was sent SendSolicited or failed, puts an event on its channel:
// ibv_req_notify_cq(3). Poll after arming: completions that were there before
// raise no event.
func (cq *CQ) ReqNotify(solicitedOnly bool) error {
	const op = "ibv_req_notify_cq"
	if err := cq.acquire(); err != nil {
		return wrap(op, cq.object, err)
	}
	defer cq.release()
	if err := cq.needChannel(); err != nil {
		return wrap(op, cq.object, err)
	}
	return wrap(op, cq.object, reqNotifyCQ(cq.cq, solicitedOnly))
}

func (cq *CQ) needChannel() error {
	if cq.channel == nil {
		return hint(syscall.EINVAL, "the CQ has no completion channel: set CQOptions.Channel")
	}
	return nil
}

// Wait takes up to len(wcs) completions, and waits for the first one: it
// polls, arms the CQ (ibv_req_notify_cq(3)), polls again, and parks the
// goroutine until the channel has an event. It returns at least one
// completion, or an error: ctx's own when ctx ends, os.ErrClosed after Close.
//
// Several goroutines may wait, also on CQs that share a channel.
func (cq *CQ) Wait(ctx context.Context, wcs []WC) (int, error) {
	const op = "ibv_get_cq_event"
	if err := cq.acquire(); err != nil {
		return 0, wrap(op, cq.object, err)
	}
	defer cq.release()
	if err := cq.checkWait(len(wcs)); err != nil {
		return 0, wrap(op, cq.object, err)
	}
	n, err := cq.wait(ctx, func() (int, error) { return cq.poll(wcs) })
	return n, wrapWait(op, cq.object, err)
}

// checkWait refuses a wait that could never end.
func (cq *CQ) checkWait(room int) error {
	if room == 0 {
		return hint(syscall.EINVAL, "no room for a completion")
	}
	return cq.needChannel()
}

// wait is Wait with the polling left to poll.
func (cq *CQ) wait(ctx context.Context, poll func() (int, error)) (int, error) {
	cq.waiters.Add(1)
	defer cq.waiters.Add(-1)
	n, err := cq.armAndWait(ctx, poll)
	if n > 0 && cq.waiters.Load() > 1 {
		// The event was for one; nobody has armed the CQ for the others. One
		// of them may be parked in the channel already, without the event.
		cq.channel.hand(cq)
		cq.channel.fd.Kick()
	}
	return n, err
}

func (cq *CQ) armAndWait(ctx context.Context, poll func() (int, error)) (int, error) {
	for {
		if n, err := poll(); n > 0 || err != nil {
			return n, err
		}
		if err := reqNotifyCQ(cq.cq, false); err != nil {
			return 0, err
		}
		if n, err := poll(); n > 0 || err != nil {
			return n, err
		}
		if _, err := cq.channel.fd.WaitOr(ctx, cq.event, cq.try); err != nil {
			return 0, err
		}
		if cq.closed() {
			return 0, os.ErrClosed
		}
	}
}

// tryEvent reads the channel for the goroutine that waits for this CQ, and
// hands other CQs' events to theirs.
func (cq *CQ) tryEvent() (bool, error) {
	select {
	case <-cq.event: // handed over, or closed
		return true, nil
	default:
	}
	for {
		got, err := cq.channel.take()
		if got == nil || err != nil {
			return false, err
		}
		if got == cq {
			return true, nil
		}
		cq.channel.hand(got)
	}
}

// wake ends all waits.
func (cq *CQ) wake() {
	if cq.channel != nil {
		cq.channel.unregister(cq)
	}
}

// Close destroys the CQ: ibv_destroy_cq(3). It wakes waiters with
// os.ErrClosed, fails with EBUSY while QPs use the CQ, and is nil when called
// again. Completions that were not polled are lost.
func (cq *CQ) Close() error {
	return cq.close("ibv_destroy_cq", cq.wake, func() error {
		cq.dev.async.unregister(cqID(cq.cq))
		err := destroyCQ(cq.cq)
		if err == nil {
			return nil
		}
		cq.dev.async.register(cqID(cq.cq), cq)
		if cq.channel != nil {
			cq.channel.register(cq)
		}
		return err
	})
}
