// Package verbsfake is a provider of libibverbs' without a device: tests see
// what it is called with, and choose what it answers. It has the verbs that
// libibverbs passes on to the provider as they are, and that no software driver
// has: work queues, indirection tables and QPs that use them, flow rules and
// actions, counters. Its QPs carry nothing out, and complete each work request
// as it is posted, so that what a binding costs can be measured on any host;
// they can fail in every way that a provider does.
//
// Only tests import it: they cannot import "C" themselves.
package verbsfake

// #cgo pkg-config: libibverbs
// #cgo CFLAGS: -Wall -Wextra -Wno-unused-parameter
// #include "fake.h"
// #include <stdlib.h>
import "C"

import (
	"syscall"
	"testing"
	"unsafe"
)

// Call is a call of the provider's. What Arg points to is C memory of the
// caller's, as long as the call lasts.
type Call struct {
	Op     string         // the member of struct verbs_context
	Object unsafe.Pointer // the object that is called, or in which one is made
	Arg    unsafe.Pointer // the attributes, or where values are wanted
	Values [2]uint64      // further arguments
}

// Provider is the fake. One test at a time has one.
type Provider struct {
	ctx    *C.struct_ibv_context
	things []unsafe.Pointer
	cqs    []*C.struct_vf_null_cq
	calls  []string
	answer func(Call) syscall.Errno
	alive  int
}

var current *Provider

// Open makes a provider that asks answer about each call; 0 is success. The
// test's end fails the test if objects are left.
func Open(t testing.TB, answer func(Call) syscall.Errno) *Provider {
	p := &Provider{ctx: C.vf_open(), answer: answer}
	current = p
	t.Cleanup(func() {
		if p.alive != 0 {
			t.Errorf("%d objects of the provider are left", p.alive)
		}
		for _, thing := range p.things {
			C.free(thing)
		}
		for _, cq := range p.cqs {
			C.vf_null_cq_free(cq)
		}
		C.vf_close(p.ctx)
		current = nil
	})
	return p
}

// Context is the struct ibv_context.
func (p *Provider) Context() unsafe.Pointer { return unsafe.Pointer(p.ctx) }

// PD is a new struct ibv_pd.
func (p *Provider) PD() unsafe.Pointer { return p.keep(unsafe.Pointer(C.vf_pd(p.ctx))) }

// CQ is a new struct ibv_cq.
func (p *Provider) CQ() unsafe.Pointer {
	cq := C.vf_null_cq(p.ctx, nullCQRoom)
	p.cqs = append(p.cqs, cq)
	return unsafe.Pointer(cq)
}

// QP is a new struct ibv_qp.
func (p *Provider) QP() unsafe.Pointer { return p.keep(unsafe.Pointer(C.vf_qp(p.ctx))) }

// DestroyQP ends a QP of ibv_create_qp_ex's: ibv_destroy_qp wants to know more
// of a provider than this one has.
func (p *Provider) DestroyQP(qp unsafe.Pointer) { C.vf_destroy_qp((*C.struct_ibv_qp)(qp)) }

func (p *Provider) keep(thing unsafe.Pointer) unsafe.Pointer {
	p.things = append(p.things, thing)
	return thing
}

// Calls are the calls since the last time, by Op.
func (p *Provider) Calls() []string {
	calls := p.calls
	p.calls = nil
	return calls
}

// Post is a receive that was posted to a WQ.
type Post struct {
	WRID   uint64
	NumSGE int
	Addr   uint64 // of the last SGE
	Length uint32
	LKey   uint32
}

// Posts are all receives that were posted.
func (p *Provider) Posts() []Post {
	c := C.vf_posts()
	posts := make([]Post, c.n)
	for i := range posts {
		wr := &c.wr[i]
		posts[i] = Post{uint64(wr.wr_id), int(wr.num_sge), uint64(wr.last.addr), uint32(wr.last.length), uint32(wr.last.lkey)}
	}
	return posts
}

// FailPosts refuses receives from number n on.
func (p *Provider) FailPosts(n int, with int) {
	c := C.vf_posts()
	c.fail_at, c.fail_with = C.int(n), C.int(with)
}

//export vfCall
func vfCall(op *C.char, object, arg unsafe.Pointer, a, b C.uint64_t) C.int {
	call := Call{C.GoString(op), object, arg, [2]uint64{uint64(a), uint64(b)}}
	current.calls = append(current.calls, call.Op)
	if current.answer == nil {
		return 0
	}
	return C.int(current.answer(call))
}

//export vfCount
func vfCount(n C.int) { current.alive += int(n) }
