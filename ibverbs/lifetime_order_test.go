package ibverbs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// closer is any verbs object.
type closer interface {
	Close() error
	String() string
}

// relative is an object with the ones that must outlive it.
type relative struct {
	closer
	parents []closer
}

// newFamily makes one object of each kind that the device can create, and more
// than one where they differ. Parents come before their children.
func newFamily(t *testing.T, target *verbstest.Target) []relative {
	t.Helper()
	var all []relative
	dev := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(target.Dev.Name()))
	add := func(c closer, parents ...closer) { all = append(all, relative{c, parents}) }
	add(dev)
	pd := verbstest.Must[*ibverbs.PD](t)(dev.AllocPD())
	add(pd, dev)
	add(verbstest.Must[*ibverbs.MR](t)(pd.AllocMR(4096, verbstest.AllAccess, ibverbs.BufferOptions{})), pd)
	add(verbstest.Must[*ibverbs.MR](t)(pd.RegMR(make([]byte, 64), verbstest.AllAccess)), pd)
	ch := verbstest.Must[*ibverbs.CompChannel](t)(dev.CreateCompChannel())
	add(ch, dev)
	cq := verbstest.Must[*ibverbs.CQ](t)(dev.CreateCQ(16, ibverbs.CQOptions{Channel: ch}))
	add(cq, dev, ch)
	cq2 := verbstest.Must[*ibverbs.CQ](t)(dev.CreateCQ(16, ibverbs.CQOptions{}))
	add(cq2, dev)
	srq := verbstest.Must[*ibverbs.SRQ](t)(pd.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: 8, MaxSGE: 1}))
	add(srq, pd)
	init := ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq2, Cap: verbstest.PairCap}
	add(verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(init)), pd, cq, cq2)
	init.SRQ, init.Cap.MaxRecvWR, init.Cap.MaxRecvSGE = srq, 0, 0
	add(verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(init)), pd, cq, cq2, srq)
	if target.Has(verbstest.MemoryWindows) {
		add(verbstest.Must[*ibverbs.MW](t)(pd.AllocMW(ibverbs.MWType2)), pd)
	}
	if target.Has(verbstest.Datagrams) {
		add(verbstest.Must[*ibverbs.AH](t)(pd.CreateAH(verbstest.AHAttr(t, target, target.Addr))), pd)
	}
	if target.Has(verbstest.ExtendedCQ) {
		ex := verbstest.Must[*ibverbs.CQEx](t)(dev.CreateCQEx(ibverbs.CQExInitAttr{CQE: 16, Channel: ch}))
		add(ex, dev, ch)
	}
	return all
}

// children are the open ones that must go before c.
func children(all []relative, c closer, closed map[closer]bool) []closer {
	var found []closer
	for _, r := range all {
		for _, p := range r.parents {
			if p == c && !closed[r.closer] {
				found = append(found, r.closer)
			}
		}
	}
	return found
}

// Every object, whichever is closed first: those with open children refuse, say
// which kinds there are, and stay as they were; the others close.
func TestEveryCloseOrder(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for seed := range uint64(12) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				all := newFamily(t, target)
				closeInOrder(t, all, rand.New(rand.NewPCG(seed, 0)))
			})
		}
	})
}

// closeInOrder goes through all objects in one order after the other until none
// is open.
func closeInOrder(t *testing.T, all []relative, r *rand.Rand) {
	closed := make(map[closer]bool)
	for len(closed) < len(all) {
		before := len(closed)
		for _, i := range r.Perm(len(all)) {
			c := all[i].closer
			err := c.Close()
			open := children(all, c, closed)
			if closed[c] || len(open) == 0 {
				if err != nil {
					t.Errorf("Close of %v: %v", c, err)
				}
				closed[c] = true
				continue
			}
			refused(t, c.String(), err, syscall.EBUSY, "close its ")
			if len(open) == 1 && !strings.Contains(err.Error(), "("+open[0].String()+")") {
				t.Errorf("%v does not name %v", err, open[0])
			}
		}
		if len(closed) == before {
			t.Fatalf("nothing can be closed any more; %d of %d are", before, len(all))
		}
	}
}

// Objects of every kind, again and again, leave no file and no thread behind.
func TestNothingStays(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		count := func(dir string) int {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			return len(entries)
		}
		closeInOrder(t, newFamily(t, target), rand.New(rand.NewPCG(1, 1))) // what is opened once
		files, threads := count("/proc/self/fd"), count("/proc/self/task")
		const rounds = 20
		for i := range uint64(rounds) {
			closeInOrder(t, newFamily(t, target), rand.New(rand.NewPCG(i, 2)))
		}
		if now := count("/proc/self/fd"); now != files {
			t.Errorf("%d files are open, before it was %d", now, files)
		}
		if now := count("/proc/self/task"); now > threads+rounds/2 {
			t.Errorf("%d threads, before it was %d", now, threads)
		}
	})
}

// A child that is created while its parent closes either is there, and the
// parent refuses, or is refused as the parent's is.
func TestCreateRaces(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for range 20 {
			pd := verbstest.Must[*ibverbs.PD](t)(target.Dev.AllocPD())
			made := make(chan error)
			go func() {
				for {
					mr, err := pd.AllocMR(64, verbstest.AllAccess, ibverbs.BufferOptions{})
					if err == nil {
						err = mr.Close()
					}
					if err != nil {
						made <- err
						return
					}
				}
			}()
			for {
				err := pd.Close()
				if err == nil {
					break
				}
				if !errors.Is(err, syscall.EBUSY) {
					t.Fatal(err)
				}
			}
			if err := <-made; !errors.Is(err, os.ErrClosed) {
				t.Errorf("creation on a closed PD: %v, want os.ErrClosed", err)
			}
		}
	})
}
