package ibverbs

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/internal/verbsfake"
)

// fake is a device of a provider that tests answer for, with one of each
// object that it cannot make itself.
type fake struct {
	*verbsfake.Provider
	dev *Device
	pd  *PD
	cq  *CQ
	qp  *QP
}

func newFake(t testing.TB, answer func(verbsfake.Call) syscall.Errno) *fake {
	t.Helper()
	p := verbsfake.Open(t, answer)
	f := &fake{Provider: p}
	f.dev = &Device{ctx: (*cContext)(p.Context()), info: DeviceInfo{Name: "fake0"}}
	f.pd = &PD{dev: f.dev, pd: (*cPD)(p.PD())}
	f.cq = &CQ{dev: f.dev, cq: (*cCQ)(p.CQ())}
	f.qp = &QP{dev: f.dev, pd: f.pd, sendCQ: f.cq, recvCQ: f.cq, qp: (*cQP)(p.QP()), typ: QPTypeRawPacket}
	err := errors.Join(f.dev.adopt("device"), f.pd.adopt("PD", &f.dev.handle), f.cq.adopt("CQ", &f.dev.handle),
		f.qp.adopt("QP", &f.pd.handle, &f.cq.handle))
	if err != nil {
		t.Fatal(err)
	}
	f.dev.attrOnce.Do(func() {}) // libibverbs cannot ask a fake for its limits
	f.dev.object = "fake0"
	f.pd.named("fake0/pd1")
	f.cq.named("fake0/cq1")
	f.qp.named("fake0/pd1/qp1")
	t.Cleanup(func() {
		for _, h := range []*handle{&f.qp.handle, &f.cq.handle, &f.pd.handle, &f.dev.handle} {
			if err := h.close("close", nil, func() error { return nil }); err != nil {
				t.Error(err)
			}
		}
	})
	return f
}

// refusal sees that an error is the right OpError.
func refusal(t *testing.T, what string, err error, op string, is error, words ...string) {
	t.Helper()
	var opErr *OpError
	if !errors.As(err, &opErr) || opErr.Op != op || !errors.Is(err, is) {
		t.Errorf("%s: %v; want an OpError of %s, %v", what, err, op, is)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v; want a word on %q", what, err, w)
		}
	}
}

// pointerIn is the pointer that stands in C memory at p.
func pointerIn(p unsafe.Pointer) unsafe.Pointer { return *(*unsafe.Pointer)(p) }
