package rdmacm

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// deadConn is a connection whose ID is closed: its events can be played to it
// without a device.
func deadConn() *Conn {
	return newConn(&ID{closed: true, name: "id0"}, nil, &Config{})
}

// TestLateEvents: whatever comes after the event that ended a connection, it
// ended once and for that reason (report 22).
func TestLateEvents(t *testing.T) {
	for _, tc := range []struct {
		first Event
		want  error
	}{
		{Event{Type: EventUnreachable, Status: -110}, syscall.ETIMEDOUT},
		{Event{Type: EventConnectError, Status: -22}, syscall.EINVAL},
		{Event{Type: EventDisconnected}, ErrDisconnected},
		{Event{Type: EventDeviceRemoval}, ErrDeviceRemoved},
		{Event{Type: EventAddrChange}, ErrAddrChanged},
		{Event{Type: EventRejected, Status: 28}, syscall.ECONNREFUSED},
	} {
		c := deadConn()
		c.handle(&Event{Type: EventTimewaitExit})
		c.handle(&Event{Type: EventEstablished})
		if c.Err() != nil {
			t.Fatalf("ended with %v before %v", c.Err(), tc.first.Type)
		}
		for _, ev := range []Event{tc.first, {Type: EventUnreachable}, {Type: EventDisconnected}, {Type: EventDisconnected}, {Type: EventDeviceRemoval}, {Type: EventTimewaitExit}} {
			c.handle(&ev)
		}
		if err := c.Err(); !errors.Is(err, tc.want) {
			t.Errorf("%v, then others: %v, want %v", tc.first.Type, err, tc.want)
		}
	}
}

// TestLateEventsAfterClose: what the user did is the reason, not its echo.
func TestLateEventsAfterClose(t *testing.T) {
	c := deadConn()
	c.end(net.ErrClosed)
	c.handle(&Event{Type: EventDisconnected})
	if err := c.Err(); err != net.ErrClosed {
		t.Errorf("%v, want net.ErrClosed", err)
	}
	select {
	case <-c.gone:
	default:
		t.Error("Close would wait for an answer that has come")
	}
}

// TestHiddenEvents: once the handshake failed here, the kernel's echo of that
// is not reported.
func TestHiddenEvents(t *testing.T) {
	id := &ID{}
	for _, typ := range []EventType{EventRejected, EventDisconnected} {
		if !id.process(&Event{Type: typ, ID: id}, route{}, 0) {
			t.Errorf("%v is not reported", typ)
		}
	}
	id.hidden.Store(true)
	for _, typ := range []EventType{EventRejected, EventDisconnected} {
		if id.process(&Event{Type: typ, ID: id}, route{}, 0) {
			t.Errorf("%v is reported after the handshake failed", typ)
		}
	}
}
