package rdmacm

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/goverbs/goverbs/ibverbs"
)

var wide = ibverbs.DeviceAttr{MaxQPWR: 16384, MaxSGE: 32, MaxQPRDAtom: 128, MaxQPInitRDAtom: 128, MaxCQE: 32767}

func TestSettleDefaults(t *testing.T) {
	got, err := (&Config{}).settle(wide)
	if err != nil {
		t.Fatal(err)
	}
	want := limits{
		sendCQ: 257, recvCQ: 257,
		cap:       ibverbs.QPCap{MaxSendWR: 128, MaxRecvWR: 128, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64},
		initiator: 16, responder: 16, retry: 7, rnrRetry: 7,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(limits{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettleSmallDevice(t *testing.T) {
	got, err := (&Config{}).settle(ibverbs.DeviceAttr{MaxQPWR: 8, MaxSGE: 1, MaxQPRDAtom: 2, MaxQPInitRDAtom: 1, MaxCQE: 10})
	if err != nil {
		t.Fatal(err)
	}
	if got.cap.MaxSendWR != 8 || got.sendCQ != 10 || got.cap.MaxSendSGE != 1 || got.responder != 2 || got.initiator != 1 {
		t.Errorf("defaults beyond the device: %+v", got)
	}
}

func TestSettleNone(t *testing.T) {
	got, err := (&Config{Inline: -1, InitiatorDepth: -1, ResponderResources: -1, RetryCount: -1, RNRRetryCount: -1}).settle(wide)
	if err != nil {
		t.Fatal(err)
	}
	if got.cap.MaxInlineData != 0 || got.initiator != 0 || got.responder != 0 || got.retry != 0 || got.rnrRetry != 0 {
		t.Errorf("-1 must mean none: %+v", got)
	}
}

func TestSettleRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"SendDepth":          {SendDepth: 20000},
		"RecvDepth":          {RecvDepth: -1},
		"SendCQSize":         {SendCQSize: 40000},
		"RecvCQSize":         {RecvCQSize: -1},
		"SendSGE":            {SendSGE: 33},
		"RecvSGE":            {RecvSGE: -2},
		"Inline":             {Inline: -2},
		"InitiatorDepth":     {InitiatorDepth: 129},
		"ResponderResources": {ResponderResources: 255},
		"RetryCount":         {RetryCount: 8},
		"RNRRetryCount":      {RNRRetryCount: -2},
		"MinRNRTimer":        {MinRNRTimer: 32},
		"AckTimeout":         {AckTimeout: 32},
	} {
		_, err := cfg.settle(wide)
		if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), name) {
			t.Errorf("bad %s: %v, want EINVAL that names it", name, err)
		}
	}
}

func TestDepth(t *testing.T) {
	for _, tc := range []struct {
		device int
		bound  uint8
		want   uint8
	}{{128, 255, 128}, {128, 4, 4}, {1000, 255, 254}, {0, 16, 0}, {-1, 16, 0}} {
		if got := depth(tc.device, tc.bound); got != tc.want {
			t.Errorf("depth(%d, %d) = %d, want %d", tc.device, tc.bound, got, tc.want)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for _, tc := range []struct {
		in   time.Duration
		want int
	}{
		{0, 1}, {-time.Second, 1}, {time.Nanosecond, 1}, {time.Millisecond, 1},
		{time.Millisecond + 1, 2}, {2 * time.Second, 2000}, {1 << 62, 1<<31 - 1},
	} {
		if got := milliseconds(tc.in); got != tc.want {
			t.Errorf("milliseconds(%v) = %d, want %d", tc.in, got, tc.want)
		}
	}
}

func TestGrant(t *testing.T) {
	asked := ConnParam{PrivateData: []byte("x"), ResponderResources: 16, InitiatorDepth: 16, RetryCount: 7}
	for _, tc := range []struct{ got, want ConnParam }{
		{ConnParam{ResponderResources: 4, InitiatorDepth: 200}, ConnParam{ResponderResources: 4, InitiatorDepth: 16, RetryCount: 7}},
		{ConnParam{}, ConnParam{ResponderResources: 16, InitiatorDepth: 16, RetryCount: 7}},
		{ConnParam{ResponderResources: 4}, ConnParam{ResponderResources: 4, RetryCount: 7}},
	} {
		if diff := cmp.Diff(tc.want, grant(asked, tc.got)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.got, diff)
		}
	}
}

func TestCheckDevice(t *testing.T) {
	addr := netip.MustParseAddrPort("192.0.2.1:5")
	if err := checkDevice("", "siw0", addr); err != nil {
		t.Error(err)
	}
	if err := checkDevice("siw0", "siw0", addr); err != nil {
		t.Error(err)
	}
	err := checkDevice("rxe0", "siw0", addr)
	if !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "siw0, not over rxe0") {
		t.Errorf("wrong device: %v", err)
	}
}

func TestTransportOf(t *testing.T) {
	attr := ibverbs.DeviceAttr{AtomicCap: ibverbs.AtomicHCA, MaxSGE: 32, MaxSGERD: 32}
	roce := transportOf(ibverbs.TransportIB, ibverbs.LinkLayerEthernet, attr)
	if want := (Transport{Kind: TransportRoCE, Immediate: true, Atomics: true, MaxReadSGE: 32}); roce != want {
		t.Errorf("RoCE: %+v", roce)
	}
	if roce.ReadSinkAccess() != ibverbs.AccessLocalWrite {
		t.Errorf("a READ sink on RoCE needs %v", roce.ReadSinkAccess())
	}
	if ib := transportOf(ibverbs.TransportIB, ibverbs.LinkLayerInfiniBand, attr); ib.Kind != TransportInfiniBand {
		t.Errorf("InfiniBand: %+v", ib)
	}
	attr = ibverbs.DeviceAttr{MaxSGE: 6, MaxSGERD: 1}
	iwarp := transportOf(ibverbs.TransportIWARP, ibverbs.LinkLayerEthernet, attr)
	if want := (Transport{Kind: TransportIWARP, ReadSinkRemoteWrite: true, DialerSendsFirst: true, MaxReadSGE: 1}); iwarp != want {
		t.Errorf("iWARP: %+v", iwarp)
	}
	if iwarp.ReadSinkAccess() != ibverbs.AccessLocalWrite|ibverbs.AccessRemoteWrite {
		t.Errorf("a READ sink on iWARP needs %v", iwarp.ReadSinkAccess())
	}
	if got := iwarp.String(); got != "iWARP" {
		t.Errorf("String: %q", got)
	}
}
