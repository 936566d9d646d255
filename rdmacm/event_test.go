package rdmacm

import (
	"errors"
	"net/netip"
	"reflect"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/goverbs/goverbs/ibverbs"
)

// set assigns to a field of a C struct, whose types a test cannot name.
func set[D, V ~int8 | ~uint8 | ~uint16 | ~int32 | ~uint32](dst *D, v V) { *dst = D(v) }

func TestEventFromC(t *testing.T) {
	ev := cEvent{
		_type:               5,
		status:              -110,
		responder_resources: 3,
		initiator_depth:     4,
		flow_control:        1,
		retry_count:         5,
		rnr_retry_count:     6,
		srq:                 1,
		qp_num:              0x123456,
		qkey:                0x01234567,
		private_data_len:    3,
	}
	ev.private_data[0], ev.private_data[1], ev.private_data[2] = 'a', 0, 0xff
	ev.private_data[3] = 'x' // beyond the length

	got := eventFromC(&ev)
	data := []byte{'a', 0, 0xff}
	want := &Event{
		Type:        EventConnectResponse,
		Status:      -110,
		QKey:        0x01234567,
		PrivateData: data,
		Param: ConnParam{
			PrivateData: data, ResponderResources: 3, InitiatorDepth: 4, FlowControl: true,
			RetryCount: 5, RNRRetryCount: 6, SRQ: true, QPN: 0x123456,
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Event{}), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ev.private_data[0] = 'z'
	if got.PrivateData[0] != 'a' {
		t.Error("the event's private data is not a copy")
	}
}

func TestEventFromCAllPrivateData(t *testing.T) {
	var ev cEvent
	ev.private_data_len = MaxPrivateData
	for i := range ev.private_data {
		ev.private_data[i] = 7
	}
	if got := len(eventFromC(&ev).PrivateData); got != 255 {
		t.Errorf("%d bytes of private data, want 255", got)
	}
}

func TestRouteFromC(t *testing.T) {
	var r cRoute
	for i, b := range []byte("rxe0") {
		set(&r.device[i], b)
	}
	r.transport = 1
	r.port_num = 2
	put := func(dst []byte, s string) {
		sa, err := toSockaddr(netip.MustParseAddrPort(s))
		if err != nil {
			t.Fatal(err)
		}
		copy(dst, sa[:])
	}
	var src, dst sockaddr
	put(src[:], "10.77.1.1:7471")
	put(dst[:], "[fd77:1::2]:80")
	for i := range src {
		set(&r.src[i], src[i])
		set(&r.dst[i], dst[i])
	}
	r.sgid[15], r.dgid[0] = 9, 8
	got := routeFromC(&r)
	want := route{
		device: "rxe0", transport: ibverbs.TransportIWARP, port: 2,
		src:  netip.MustParseAddrPort("10.77.1.1:7471"),
		dst:  netip.MustParseAddrPort("[fd77:1::2]:80"),
		sgid: ibverbs.GID{15: 9}, dgid: ibverbs.GID{0: 8},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// A name that fills its field has no terminating NUL.
	for i := range r.device {
		r.device[i] = 'x'
	}
	if got := len(routeFromC(&r).device); got != len(r.device) {
		t.Errorf("a full name has %d characters, want %d", got, len(r.device))
	}
}

func TestEventErr(t *testing.T) {
	for _, tc := range []struct {
		ev     Event
		op     string
		target error
	}{
		{Event{Type: EventAddrError, Status: -19}, "rdma_resolve_addr", syscall.ENODEV},
		{Event{Type: EventAddrError}, "rdma_resolve_addr", syscall.EHOSTUNREACH},
		{Event{Type: EventRouteError, Status: -110}, "rdma_resolve_route", syscall.ETIMEDOUT},
		{Event{Type: EventUnreachable, Status: -110}, "rdma_connect", syscall.ETIMEDOUT},
		{Event{Type: EventUnreachable}, "rdma_connect", syscall.ENETUNREACH},
		{Event{Type: EventConnectError, Status: -22}, "rdma_connect", syscall.EINVAL},
		{Event{Type: EventConnectError, err: syscall.ENOMEM}, "rdma_establish", syscall.ENOMEM},
		{Event{Type: EventRejected, Status: 8}, "rdma_connect", syscall.ECONNREFUSED},
		{Event{Type: EventRejected, Status: 28}, "rdma_connect", syscall.ECONNREFUSED},
		{Event{Type: EventMulticastError, Status: -12}, "rdma_join_multicast", syscall.ENOMEM},
		{Event{Type: EventDisconnected}, "rdma_get_cm_event", ErrDisconnected},
		{Event{Type: EventDeviceRemoval}, "rdma_get_cm_event", ErrDeviceRemoved},
		{Event{Type: EventDeviceRemoval}, "rdma_get_cm_event", syscall.ENODEV},
		{Event{Type: EventAddrChange}, "rdma_get_cm_event", ErrAddrChanged},
		{Event{Type: EventRouteResolved, Status: -5}, "rdma_get_cm_event", syscall.EIO},
	} {
		err := tc.ev.Err()
		var opErr *ibverbs.OpError
		if !errors.As(err, &opErr) || opErr.Op != tc.op || !errors.Is(err, tc.target) {
			t.Errorf("%v, status %d: %v, want %s: %v", tc.ev.Type, tc.ev.Status, err, tc.op, tc.target)
		}
	}
	for _, typ := range []EventType{
		EventAddrResolved, EventRouteResolved, EventConnectRequest, EventConnectResponse,
		EventEstablished, EventMulticastJoin, EventTimewaitExit,
	} {
		if err := (&Event{Type: typ}).Err(); err != nil {
			t.Errorf("%v: %v, want nil", typ, err)
		}
	}
}

func TestRejectError(t *testing.T) {
	for _, tc := range []struct {
		status int
		want   RejectReason
	}{
		{8, RejectNoListener}, {28, RejectConsumer}, {10, RejectStaleConn}, {0, RejectUnknown},
		{-111, RejectNoListener}, {-104, RejectConsumer}, {-5, RejectUnknown}, {999, 999},
	} {
		e := rejectError(tc.status, []byte("why"))
		if e.Reason != tc.want || e.Status != tc.status || string(e.PrivateData) != "why" {
			t.Errorf("status %d: %+v, want reason %v", tc.status, e, tc.want)
		}
	}
	if got, want := rejectError(8, nil).Error(), "connection refused: nobody listens on that port"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzEvent: any bytes in C memory make an event that prints and has an error
// of the right form, or none.
func FuzzEvent(f *testing.F) {
	f.Add(int32(4), int32(0), uint8(255), []byte("data"))
	f.Add(int32(-1), int32(-4095), uint8(0), []byte{})
	f.Fuzz(func(t *testing.T, typ, status int32, n uint8, data []byte) {
		var ev cEvent
		set(&ev.private_data_len, n)
		set(&ev._type, typ)
		set(&ev.status, status)
		for i := range min(len(data), len(ev.private_data)) {
			set(&ev.private_data[i], data[i])
		}
		got := eventFromC(&ev)
		if len(got.PrivateData) != int(n) {
			t.Fatalf("%d bytes of private data, want %d", len(got.PrivateData), n)
		}
		var opErr *ibverbs.OpError
		if err := got.Err(); err != nil && !errors.As(err, &opErr) {
			t.Fatalf("%v: %v is no *OpError", got.Type, err)
		}
		_ = got.Type.String()
	})
}
