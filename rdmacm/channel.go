package rdmacm

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/goverbs/goverbs/internal/gate"
	"github.com/goverbs/goverbs/internal/pollfd"
)

// EventChannel carries the events of the IDs that were created on it or
// migrated to it (struct rdma_event_channel).
//
// It costs two file descriptors. Its methods may be called from several
// goroutines at once.
type EventChannel struct {
	name string
	c    *cChannel
	fd   *pollfd.FD

	// taking is held while an event is taken: librdmacm then moves QPs that it
	// has made, which must not go meanwhile.
	taking sync.Mutex

	mu      sync.Mutex
	drained *sync.Cond // told when calls falls
	calls   int        // calls that use c
	ids     int        // open IDs
	closing bool
	closed  bool
}

// channelCount numbers the channels, to tell them apart in errors.
var channelCount atomic.Uint64

// CreateEventChannel opens a channel (rdma_create_event_channel(3)).
//
// ENODEV means that the host has no RDMA device, ENOENT or EACCES that the
// rdma_ucm kernel module is not loaded or /dev/infiniband/rdma_cm not readable.
func CreateEventChannel() (*EventChannel, error) {
	name := fmt.Sprintf("channel%d", channelCount.Add(1))
	c, fd, err := cCreateChannel()
	if err != nil {
		return nil, wrap("rdma_create_event_channel", "", channelHint(err))
	}
	poll, err := pollfd.New(fd, name)
	if err != nil {
		cDestroyChannel(c)
		return nil, wrap("rdma_create_event_channel", "", err)
	}
	ch := &EventChannel{name: name, c: c, fd: poll}
	ch.drained = sync.NewCond(&ch.mu)
	return ch, nil
}

func channelHint(err error) error {
	switch err {
	case syscall.ENODEV:
		return hint(err, "this host has no RDMA device; `rnic add` creates a software one")
	case syscall.ENOENT, syscall.EACCES, syscall.EPERM:
		return hint(err, "open /dev/infiniband/rdma_cm: load the rdma_ucm module, and see to the device's permissions")
	case syscall.EMFILE, syscall.ENFILE:
		return hint(err, "each connection needs several descriptors; raise `ulimit -n`")
	}
	return err
}

// String is the channel's name in errors, such as "channel3".
func (ch *EventChannel) String() string { return ch.name }

// enter begins a use of ch.c; leave ends it.
func (ch *EventChannel) enter() error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closing {
		return net.ErrClosed
	}
	ch.calls++
	return nil
}

func (ch *EventChannel) leave() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.calls--
	ch.drained.Broadcast()
}

// addID enters an ID, which keeps the channel open; it fails once the channel
// is closed.
func (ch *EventChannel) addID() error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closing {
		return net.ErrClosed
	}
	ch.ids++
	return nil
}

func (ch *EventChannel) dropID() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.ids--
}

// CreateID makes an ID whose events arrive here (rdma_create_id(3)). The
// caller closes it, before the channel.
func (ch *EventChannel) CreateID(ps PortSpace) (*ID, error) {
	if err := ch.addID(); err != nil {
		return nil, wrap("rdma_create_id", ch.name, err)
	}
	token := ids.token()
	c, err := cCreateID(ch.c, token, ps)
	if err != nil {
		ch.dropID()
		return nil, wrap("rdma_create_id", ch.name, err)
	}
	return newID(c, token, ps, ch, route{}), nil
}

// GetEvent takes the next event, and waits for one until ctx ends
// (rdma_get_cm_event(3), rdma_ack_cm_event(3)). It holds no OS thread while it
// waits.
//
// Where an ID has a QP that ID.CreateQP made, GetEvent moves it on as
// librdmacm would: CONNECT_RESPONSE takes the QP to RTS, completes the
// connection and becomes ESTABLISHED (or CONNECT_ERROR, if that fails);
// REJECTED, DISCONNECTED and DEVICE_REMOVAL take the QP to the error state, so
// that its receives are flushed.
//
// It fails with ctx's error, and with net.ErrClosed after Close. Events of IDs
// that have been closed are dropped.
func (ch *EventChannel) GetEvent(ctx context.Context) (*Event, error) {
	const op = "rdma_get_cm_event"
	if err := ch.enter(); err != nil {
		return nil, wrap(op, ch.name, err)
	}
	defer ch.leave()
	for {
		raw := new(cEvent)
		token := ids.token()
		err := ch.fd.Wait(ctx, func() (bool, error) {
			err := ch.take(token, raw)
			if err == syscall.EAGAIN {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return nil, wrap(op, ch.name, waitErr(ctx, err))
		}
		if ev := ch.deliver(raw, token); ev != nil {
			return ev, nil
		}
	}
}

func (ch *EventChannel) take(token uint64, raw *cEvent) error {
	ch.taking.Lock()
	defer ch.taking.Unlock()
	return cGetEvent(ch.c, token, raw)
}

// deliver gives an event its IDs and does what librdmacm would do about it. It
// returns nil for an event that the user is not to see.
func (ch *EventChannel) deliver(raw *cEvent, newToken uint64) *Event {
	ev := eventFromC(raw)
	if ev.Type == EventConnectRequest {
		ev.ListenID = ids.find(uint64(raw.listen_token))
		if ev.ListenID == nil || ch.addID() != nil {
			cDestroyID(raw.new_id, gate.Slow)
			return nil
		}
		ev.ID = newID(raw.new_id, newToken, ev.ListenID.ps, ch, routeFromC(&raw.route).within(ev.ListenID.LocalAddr().Addr().Zone()))
		ev.ID.request = ev.Param
		return ev
	}
	ev.ID = ids.find(uint64(raw.token))
	if ev.ID == nil || !ev.ID.process(ev, routeFromC(&raw.route), uint64(raw.join)) {
		return nil
	}
	return ev
}

// Close wakes GetEvent with net.ErrClosed and closes the channel
// (rdma_destroy_event_channel(3)). While IDs are open on it, it fails with
// EBUSY and changes nothing. Closing twice is no error.
func (ch *EventChannel) Close() error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closing {
		for !ch.closed {
			ch.drained.Wait()
		}
		return nil
	}
	if ch.ids > 0 {
		err := hint(syscall.EBUSY, "close its %d open ID(s) first", ch.ids)
		return wrap("rdma_destroy_event_channel", ch.name, err)
	}
	ch.closing = true
	ch.mu.Unlock()
	err := ch.fd.Close()
	ch.mu.Lock()
	for ch.calls > 0 {
		ch.drained.Wait()
	}
	cDestroyChannel(ch.c)
	ch.closed = true
	ch.drained.Broadcast()
	return wrap("rdma_destroy_event_channel", ch.name, err)
}
