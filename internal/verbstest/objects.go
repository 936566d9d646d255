package verbstest

import (
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
)

// Close closes an object at the end of the test, and fails the test if that
// fails. Objects close in reverse order of their creation.
func Close(t testing.TB, object interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := object.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Must returns v, and fails the test at once where err says that there is
// none.
func Must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// PD allocates a PD that the test's end closes.
func PD(t testing.TB, dev *ibverbs.Device) *ibverbs.PD {
	t.Helper()
	pd := Must[*ibverbs.PD](t)(dev.AllocPD())
	Close(t, pd)
	return pd
}

// CQ creates a CQ with a completion channel of its own.
func CQ(t testing.TB, dev *ibverbs.Device, cqe int) *ibverbs.CQ {
	t.Helper()
	ch := Must[*ibverbs.CompChannel](t)(dev.CreateCompChannel())
	Close(t, ch)
	cq := Must[*ibverbs.CQ](t)(dev.CreateCQ(cqe, ibverbs.CQOptions{Channel: ch}))
	Close(t, cq)
	return cq
}

// AllAccess is what a test's memory may be used for.
const AllAccess = ibverbs.AccessLocalWrite | ibverbs.AccessRemoteWrite | ibverbs.AccessRemoteRead

// MR allocates a memory region of size bytes.
func MR(t testing.TB, pd *ibverbs.PD, size int) *ibverbs.MR {
	t.Helper()
	mr := Must[*ibverbs.MR](t)(pd.AllocMR(size, AllAccess, ibverbs.BufferOptions{}))
	Close(t, mr)
	return mr
}

// Poll waits for n completions of cq by events.
func Poll(t testing.TB, cq *ibverbs.CQ, n int) []ibverbs.WC {
	t.Helper()
	ctx := Context(t)
	var all []ibverbs.WC
	for len(all) < n {
		wcs := make([]ibverbs.WC, n-len(all))
		got, err := cq.Wait(ctx, wcs)
		if err != nil {
			t.Fatalf("after %d of %d completions: %v", len(all), n, err)
		}
		all = append(all, wcs[:got]...)
	}
	return all
}

// Complete waits for n completions that must succeed.
func Complete(t testing.TB, cq *ibverbs.CQ, n int) []ibverbs.WC {
	t.Helper()
	wcs := Poll(t, cq, n)
	for i := range wcs {
		if err := wcs[i].Err(); err != nil {
			t.Fatal(err)
		}
	}
	return wcs
}

// Post posts send work requests that must all be accepted.
func Post(t testing.TB, qp *ibverbs.QP, wrs ...ibverbs.SendWR) {
	t.Helper()
	if n, err := qp.PostSend(wrs); err != nil || n != len(wrs) {
		t.Fatalf("PostSend accepted %d of %d: %v", n, len(wrs), err)
	}
}

// Receive posts receive work requests that must all be accepted.
func Receive(t testing.TB, qp *ibverbs.QP, wrs ...ibverbs.RecvWR) {
	t.Helper()
	if n, err := qp.PostRecv(wrs); err != nil || n != len(wrs) {
		t.Fatalf("PostRecv accepted %d of %d: %v", n, len(wrs), err)
	}
}

// Pattern fills b with bytes that depend on seed and position.
func Pattern(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed*31 + 1)
	}
}
