package ibverbs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// handle is the lifetime of a verbs object. Each object embeds one.
//
// A call into C holds a reference (acquire, release), so that close can wait
// for calls in flight. A child is entered in its parents before it is created
// and leaves them after it is destroyed, so that no parent goes first.
type handle struct {
	kind   string // as errors count it: "QP", "MR"
	object string // ancestry and name: "rxe0/pd3/qp17"; set by named

	refs    atomic.Int64  // calls in flight, plus openBit
	drained chan struct{} // told when the last call in flight leaves a closing handle

	closing sync.Mutex // one Close at a time
	gone    bool       // destroyed; under closing

	mu       sync.Mutex
	parents  []*handle          // under mu
	refuse   bool               // no new children: a Close has begun; under mu
	children map[*handle]string // by name, "" while being created

	leak *leakRecord // debug mode only
}

// openBit marks a handle that takes calls. Neither a closed object has it nor one
// that nobody created, such as a caller's &QP{}: C would crash on its nil pointer.
const openBit = 1 << 62

// errNotCreated is what a call to an object gets that nobody created.
var errNotCreated = hint(syscall.EINVAL, "nobody created this object: take it from the method that makes it")

// String is the object's ancestry and name, as errors show it: "rxe0/pd3/qp17".
func (h *handle) String() string { return h.object }

// adopt starts the lifetime of h under its parents. It fails with os.ErrClosed
// if one of them is closed. If creation then fails, disown undoes it.
func (h *handle) adopt(kind string, parents ...*handle) error {
	h.kind = kind
	h.drained = make(chan struct{}, 1)
	h.refs.Or(openBit)
	for _, p := range parents {
		if p == nil {
			continue
		}
		if err := h.join(p); err != nil {
			h.disown()
			return err
		}
	}
	return nil
}

// join gives h one more parent, which must stay open for as long as h is, or
// until h leaves it. The caller holds a reference to h, or has just made it.
func (h *handle) join(parent *handle) error {
	if err := parent.addChild(h); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parents = append(h.parents, parent)
	return nil
}

// leave undoes join.
func (h *handle) leave(parent *handle) {
	h.mu.Lock()
	h.parents = slices.DeleteFunc(h.parents, func(p *handle) bool { return p == parent })
	h.mu.Unlock()
	parent.mu.Lock()
	delete(parent.children, h)
	parent.mu.Unlock()
}

// family is the parents that h has now.
func (h *handle) family() []*handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.parents)
}

func (h *handle) addChild(child *handle) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kind == "" {
		return errNotCreated
	}
	if h.refuse {
		return os.ErrClosed
	}
	if h.children == nil {
		h.children = make(map[*handle]string)
	}
	h.children[child] = child.object
	return nil
}

// named gives h its name, once it has been created. Until then only its
// parents know of it.
func (h *handle) named(format string, args ...any) {
	h.object = fmt.Sprintf(format, args...)
	for _, p := range h.family() {
		p.mu.Lock()
		p.children[h] = h.object
		p.mu.Unlock()
	}
}

// disown takes h out of its parents.
func (h *handle) disown() {
	for _, p := range h.family() {
		p.mu.Lock()
		delete(p.children, h)
		p.mu.Unlock()
	}
}

// acquire begins a call into C; release ends it.
func (h *handle) acquire() error {
	if h.refs.Add(1)&openBit == 0 {
		return h.tooLate()
	}
	return nil
}

// tooLate takes back the reference of a call that found the handle closed, or
// never created.
func (h *handle) tooLate() error {
	h.release()
	if h.kind == "" {
		return errNotCreated
	}
	return os.ErrClosed
}

func (h *handle) release() {
	if h.refs.Add(-1) == 0 {
		h.tellDrained()
	}
}

func (h *handle) tellDrained() {
	select {
	case h.drained <- struct{}{}:
	default:
	}
}

// closed reports whether a Close has begun, or nobody created the object.
func (h *handle) closed() bool { return h.refs.Load()&openBit == 0 }

// call runs fn between acquire and release, and wraps its error.
func (h *handle) call(op string, fn func() error) error {
	if err := h.acquire(); err != nil {
		return wrap(op, h.object, err)
	}
	defer h.release()
	return wrap(op, h.object, fn())
}

// close ends the lifetime: it refuses while children are open, wakes waiters,
// waits for calls in flight, and destroys. If destroy fails the object is
// usable again. Closing twice is no error.
func (h *handle) close(op string, wake func(), destroy func() error) error {
	h.closing.Lock()
	defer h.closing.Unlock()
	if h.gone {
		return nil
	}
	if h.kind == "" {
		return wrap(op, "", errNotCreated)
	}
	if err := h.refuseChildren(); err != nil {
		return wrap(op, h.object, err)
	}
	h.refs.And(^int64(openBit))
	if wake != nil {
		wake()
	}
	for h.refs.Load() != 0 {
		<-h.drained
	}
	if err := destroy(); err != nil {
		h.reopen()
		return wrap(op, h.object, err)
	}
	h.gone = true
	h.disown()
	h.leak.close()
	return nil
}

// refuseChildren stops new children, or says which are still open.
func (h *handle) refuseChildren() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.children) > 0 {
		return hint(syscall.EBUSY, "close its %s first", countKinds(h.children))
	}
	h.refuse = true
	return nil
}

func (h *handle) reopen() {
	h.mu.Lock()
	h.refuse = false
	h.mu.Unlock()
	h.refs.Or(openBit)
}

// countKinds names open children: "1 MR (rxe0/pd3/mr1), 2 QPs (rxe0/pd3/qp17, …)".
func countKinds(children map[*handle]string) string {
	names := make(map[string][]string)
	for c, name := range children {
		if name == "" {
			name = "being created"
		}
		names[c.kind] = append(names[c.kind], name)
	}
	var parts []string
	for kind, objects := range names {
		slices.Sort(objects)
		part := fmt.Sprintf("%d %s (%s", len(objects), kind, objects[0])
		if len(objects) > 1 {
			part = fmt.Sprintf("%d %ss (%s, …", len(objects), kind, objects[0])
		}
		parts = append(parts, part+")")
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
