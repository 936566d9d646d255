package ibverbs

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
)

// leakReport is what ReportLeaks set; nil is off.
var leakReport atomic.Pointer[func(object, stack string)]

// ReportLeaks turns debug mode on: from now on report is called, from a
// goroutine of the runtime, for each object that became garbage without Close,
// with the object's name and the stack that created it. A nil report turns it
// off for objects created later.
//
// A leaked object is only reported, never destroyed: memory that a device may
// still write to must not be freed because Go code lost sight of it.
func ReportLeaks(report func(object, stack string)) {
	if report == nil {
		leakReport.Store(nil)
		return
	}
	leakReport.Store(&report)
}

// leakRecord outlives its object, and must not refer to it.
type leakRecord struct {
	object string
	stack  []uintptr // written out only for a report: that takes long
	closed atomic.Bool
}

// trace writes the stack as a panic would.
func (r *leakRecord) trace() string {
	var out strings.Builder
	frames := runtime.CallersFrames(r.stack)
	for {
		frame, more := frames.Next()
		fmt.Fprintf(&out, "%s\n\t%s:%d\n", frame.Function, frame.File, frame.Line)
		if !more {
			return out.String()
		}
	}
}

func (r *leakRecord) close() {
	if r != nil {
		r.closed.Store(true)
	}
}

// watch reports object if it becomes garbage before its handle is closed.
func watch[T any](object *T, h *handle) {
	report := leakReport.Load()
	if report == nil {
		return
	}
	var pcs [32]uintptr
	n := runtime.Callers(2, pcs[:]) // from the creator on
	h.leak = &leakRecord{object: h.object, stack: slices.Clone(pcs[:n])}
	runtime.AddCleanup(object, func(r *leakRecord) {
		if !r.closed.Load() {
			(*report)(r.object, r.trace())
		}
	}, h.leak)
}
