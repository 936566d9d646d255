package ibverbs

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/goverbs/goverbs/internal/pollfd"
)

// AsyncEvent is something that happened to a device or to one of its objects,
// other than a completion (struct ibv_async_event). One of the fields behind
// Type is set, or none where the event is the device's own (EventDeviceFatal).
type AsyncEvent struct {
	Type EventType
	CQ   *CQ  // EventCQErr: the CQ has overflowed, and is lost with its QPs
	QP   *QP  // EventQP…, EventCommEst, EventSQDrained, EventPathMig…
	SRQ  *SRQ // EventSRQErr, EventSRQLimitReached
	WQ   *WQ  // EventWQFatal
	Port int  // all others
}

// String reads "QP_FATAL rxe0/pd3/qp17" or "PORT_ERR port 1".
func (e AsyncEvent) String() string {
	switch {
	case e.CQ != nil:
		return fmt.Sprintf("%v %v", e.Type, e.CQ)
	case e.QP != nil:
		return fmt.Sprintf("%v %v", e.Type, e.QP)
	case e.SRQ != nil:
		return fmt.Sprintf("%v %v", e.Type, e.SRQ)
	case e.WQ != nil:
		return fmt.Sprintf("%v %v", e.Type, e.WQ)
	case e.Port != 0:
		return fmt.Sprintf("%v port %d", e.Type, e.Port)
	}
	return e.Type.String()
}

// async is how a device's asynchronous events come to Go.
type async struct {
	mu      sync.Mutex
	fd      *pollfd.FD       // nil until somebody reads
	objects map[objectID]any // those that events may name
}

// register lets events name an object of C's; unregister must come before it
// is destroyed.
func (a *async) register(id objectID, object any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.objects == nil {
		a.objects = make(map[objectID]any)
	}
	a.objects[id] = object
}

func (a *async) unregister(id objectID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.objects, id)
}

func (a *async) object(id objectID) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects[id]
}

// ReadAsyncEvent takes the device's next asynchronous event, and waits for one:
// ibv_get_async_event(3). The event has been acknowledged
// (ibv_ack_async_event(3)), so that no Close waits for it. Events of an object
// that is being closed are dropped.
//
// The kernel keeps events until they are read. Reading parks the goroutine, in
// no OS thread, until an event comes, ctx ends (its own error), or the device
// is closed (os.ErrClosed). Several goroutines may read: each event goes to
// one of them.
func (d *Device) ReadAsyncEvent(ctx context.Context) (AsyncEvent, error) {
	const op = "ibv_get_async_event"
	if err := d.acquire(); err != nil {
		return AsyncEvent{}, wrap(op, d.object, err)
	}
	defer d.release()
	fd, err := d.asyncFD()
	if err != nil {
		return AsyncEvent{}, wrap(op, d.object, err)
	}
	var event AsyncEvent
	err = fd.Wait(ctx, func() (done bool, err error) {
		event, done, err = d.takeAsyncEvent()
		return done, err
	})
	return event, wrapWait(op, d.object, err)
}

// asyncFD puts the device's descriptor in Go's poller the first time.
func (d *Device) asyncFD() (*pollfd.FD, error) {
	d.async.mu.Lock()
	defer d.async.mu.Unlock()
	if d.closed() {
		return nil, os.ErrClosed // wakeAsync has been, or will find nothing
	}
	if d.async.fd == nil {
		fd, err := pollfd.New(asyncFD(d.ctx), d.object)
		if err != nil {
			return nil, err
		}
		d.async.fd = fd
	}
	return d.async.fd, nil
}

// takeAsyncEvent reads until an event is a living object's; ok is false when
// there are no more.
func (d *Device) takeAsyncEvent() (event AsyncEvent, ok bool, err error) {
	for {
		typ, id, port, err := getAsyncEvent(d.ctx)
		switch {
		case err == syscall.EAGAIN:
			return AsyncEvent{}, false, nil
		case err == syscall.EINTR:
			continue
		case err != nil:
			return AsyncEvent{}, false, err
		}
		event := AsyncEvent{Type: typ, Port: port}
		if id == 0 || event.name(d.async.object(id)) {
			return event, true, nil
		}
	}
}

// name enters the object that the event is about; false where it has gone.
func (e *AsyncEvent) name(object any) bool {
	switch o := object.(type) {
	case *CQ:
		e.CQ = o
	case *QP:
		e.QP = o
	case *SRQ:
		e.SRQ = o
	case *WQ:
		e.WQ = o
	default:
		return false
	}
	return true
}

// wakeAsync ends all reads.
func (d *Device) wakeAsync() {
	d.async.mu.Lock()
	defer d.async.mu.Unlock()
	if d.async.fd != nil {
		d.async.fd.Close()
		d.async.fd = nil
	}
}
