package rdmacm

import (
	"fmt"
	"testing"
)

func TestEnumStrings(t *testing.T) {
	for _, tc := range []struct {
		v    fmt.Stringer
		want string
	}{
		{EventAddrResolved, "ADDR_RESOLVED"},
		{EventTimewaitExit, "TIMEWAIT_EXIT"},
		{EventType(99), "EventType(99)"},
		{EventType(-1), "EventType(-1)"},
		{PortSpaceTCP, "TCP"},
		{PortSpaceIPoIB, "IPoIB"},
		{PortSpace(7), "PortSpace(7)"},
		{RejectNoListener, "nobody listens on that port"},
		{RejectReason(34), "RejectReason(34)"},
		{TransportIWARP, "iWARP"},
		{TransportKind(0), "TransportKind(0)"},
	} {
		if got := tc.v.String(); got != tc.want {
			t.Errorf("%T: got %q, want %q", tc.v, got, tc.want)
		}
	}
}
