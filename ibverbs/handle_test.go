package ibverbs

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// node is an object with a lifetime and nothing else.
type node struct {
	handle
	destroyed atomic.Int32
	fail      error
}

func newNode(t *testing.T, kind, name string, parents ...*node) *node {
	t.Helper()
	n := &node{}
	var hs []*handle
	for _, p := range parents {
		hs = append(hs, &p.handle)
	}
	if err := n.adopt(kind, hs...); err != nil {
		t.Fatal(err)
	}
	n.named("%s", name)
	return n
}

func (n *node) Close() error {
	return n.close("destroy", nil, func() error {
		if n.fail != nil {
			return n.fail
		}
		n.destroyed.Add(1)
		return nil
	})
}

func TestCloseOrder(t *testing.T) {
	pd := newNode(t, "PD", "x/pd1")
	cq := newNode(t, "CQ", "x/cq1")
	qp := newNode(t, "QP", "x/pd1/qp1", pd, cq)
	qp2 := newNode(t, "QP", "x/pd1/qp2", pd, cq)
	mr := newNode(t, "MR", "x/pd1/mr1", pd)

	err := pd.Close()
	if !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("close with open children: %v, want EBUSY", err)
	}
	for _, want := range []string{"destroy x/pd1:", "1 MR (x/pd1/mr1)", "2 QPs (x/pd1/qp1, …)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if err := pd.acquire(); err != nil {
		t.Fatalf("a refused Close left the parent unusable: %v", err)
	}
	pd.release()
	for _, n := range []*node{qp, qp2, mr, pd, cq} {
		for range 2 {
			if err := n.Close(); err != nil {
				t.Errorf("%v: %v", n, err)
			}
		}
		if got := n.destroyed.Load(); got != 1 {
			t.Errorf("%v destroyed %d times", n, got)
		}
	}
}

func TestClosedParent(t *testing.T) {
	pd := newNode(t, "PD", "x/pd1")
	cq := newNode(t, "CQ", "x/cq1")
	if err := pd.Close(); err != nil {
		t.Fatal(err)
	}
	var child node
	if err := child.adopt("QP", &cq.handle, &pd.handle); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a child of a closed parent: %v, want os.ErrClosed", err)
	}
	// The child that failed must not hold its other parent.
	if err := cq.Close(); err != nil {
		t.Errorf("the other parent: %v", err)
	}
	if err := pd.call("query", func() error { return nil }); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a call after Close: %v, want os.ErrClosed", err)
	}
}

func TestFailedDestroy(t *testing.T) {
	pd := newNode(t, "PD", "x/pd1")
	mr := newNode(t, "MR", "x/pd1/mr1", pd)
	mr.fail = syscall.EBUSY
	if err := mr.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("destroy fails: %v, want EBUSY", err)
	}
	if err := mr.acquire(); err != nil {
		t.Fatalf("the object must be usable after a Close that failed: %v", err)
	}
	mr.release()
	if err := pd.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("the parent of an object that could not be destroyed: %v, want EBUSY", err)
	}
	mr.fail = nil
	if err := errors.Join(mr.Close(), pd.Close()); err != nil {
		t.Fatal(err)
	}
}

// Close waits for calls in flight, and calls that come later fail.
func TestCloseWaits(t *testing.T) {
	n := newNode(t, "CQ", "x/cq1")
	if err := n.acquire(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- n.Close() }()
	for !n.closed() { // Close has begun, and waits for us
	}
	if err := n.acquire(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a call during Close: %v, want os.ErrClosed", err)
	}
	if n.destroyed.Load() != 0 {
		t.Error("destroyed with a call in flight")
	}
	n.release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestCloseRace(t *testing.T) {
	for range 200 {
		pd := newNode(t, "PD", "x/pd1")
		var calls, done atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for pd.call("query", func() error {
					calls.Add(1)
					if pd.destroyed.Load() != 0 {
						t.Error("a call on a destroyed object")
					}
					done.Add(1)
					return nil
				}) == nil {
				}
			})
			wg.Go(func() {
				var child node
				if child.adopt("MR", &pd.handle) == nil {
					child.named("x/pd1/mr")
					if err := child.Close(); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() {
				for {
					err := pd.Close()
					if err == nil {
						return
					}
					if !errors.Is(err, syscall.EBUSY) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if pd.destroyed.Load() != 1 || calls.Load() != done.Load() {
			t.Fatalf("destroyed %d times, %d of %d calls ended", pd.destroyed.Load(), done.Load(), calls.Load())
		}
	}
}

// An object that becomes garbage without Close is reported, with its name and
// the stack that made it; one that was closed is not.
func TestReportLeaks(t *testing.T) {
	got := make(chan string, 2)
	before := leakReport.Load()
	ReportLeaks(func(object, stack string) { got <- object + "\n" + stack })
	defer leakReport.Store(before)
	func() {
		for _, name := range []string{"x/closed", "x/leaked"} {
			n := newNode(t, "PD", name)
			watch(n, &n.handle)
			if name == "x/closed" {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	for {
		runtime.GC()
		select {
		case report := <-got:
			if !strings.HasPrefix(report, "x/leaked\n") || !strings.Contains(report, "TestReportLeaks") {
				t.Errorf("report %q", report)
			}
			return
		default:
		}
	}
}
