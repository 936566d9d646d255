package ibverbs

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/internal/verbsfake"
)

// dataPath is what a program does for each message: none of it allocates.
func dataPath(t testing.TB, n *null) map[string]func() {
	wcs := make([]WC, 256)
	check := func(got int, err error, want int) {
		if got != want || err != nil {
			t.Fatalf("%d, %v; want %d", got, err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	steps := make(map[string]func())
	for _, batch := range []int{1, 8, 32, 128, 200} {
		for _, sges := range []int{0, 1, 2} { // 0: inline
			sends, recvs := n.sends(batch, sges, WRSend), n.recvs(batch, sges)
			imm := n.sends(batch, sges, WRSendWithImm)
			post := func(wrs []SendWR) {
				got, err := n.qp.PostSend(wrs)
				check(got, err, batch)
			}
			name := fmt.Sprintf("%d of %d SGEs", batch, sges)
			steps["PostSend and Poll, "+name] = func() {
				post(sends)
				got, err := n.sendCQ.Poll(wcs)
				check(got, err, batch)
			}
			steps["PostSend with immediate data and Spin, "+name] = func() {
				post(imm)
				got, err := n.sendCQ.Spin(wcs, 0)
				check(got, err, batch)
			}
			steps["PostRecv and Wait, "+name] = func() {
				got, err := n.qp.PostRecv(recvs)
				check(got, err, batch)
				got, err = n.recvCQ.Wait(ctx, wcs)
				check(got, err, batch)
			}
		}
	}
	steps["Poll of nothing"] = func() {
		got, err := n.sendCQ.Poll(wcs)
		check(got, err, 0)
	}
	return steps
}

func TestNoAllocations(t *testing.T) {
	n := newNull(t)
	n.withChannel(t, n.recvCQ)
	for name, step := range dataPath(t, n) {
		if allocs := testing.AllocsPerRun(100, step); allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

// A Wait that parks allocates nothing either: the message comes while it waits.
func TestNoAllocationsParked(t *testing.T) {
	n := newNull(t)
	n.withChannel(t, n.recvCQ)
	recvs, wcs := n.recvs(1, 1), make([]WC, 4)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	post, done := make(chan struct{}), make(chan struct{})
	defer func() {
		close(post)
		<-done
	}()
	go func() {
		defer close(done)
		for range post {
			for !verbsfake.Armed(unsafe.Pointer(n.recvCQ.cq)) {
				runtime.Gosched()
			}
			if _, err := n.qp.PostRecv(recvs); err != nil {
				t.Error(err)
			}
		}
	}()
	allocs := testing.AllocsPerRun(100, func() {
		post <- struct{}{}
		if got, err := n.recvCQ.Wait(ctx, wcs); got != 1 || err != nil {
			t.Fatalf("%d, %v", got, err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
