package ibverbs_test

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// Windows are bound and invalidated while they, their regions and their QPs
// are closed: each call works or says what is closed, and each Close works in
// the end. The kernel lives.
func TestWindowRaces(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for range 5 {
			w := newWindowed(t, target, ibverbs.MWType2, 0)
			one := verbstest.Must[*ibverbs.MW](t)(w.b.PD.AllocMW(ibverbs.MWType1))
			verbstest.Close(t, one)
			var wg sync.WaitGroup
			loop := func(call func() error) {
				wg.Go(func() {
					for {
						err := call()
						switch {
						case errors.Is(err, os.ErrClosed):
							return
						case err == nil, errors.Is(err, ibverbs.ErrQueueFull), errors.Is(err, syscall.EINVAL), errors.Is(err, errors.ErrUnsupported):
							// EINVAL: it is not bound now
						default:
							t.Error(err)
							return
						}
					}
				})
			}
			for range 2 {
				loop(func() error {
					bind := w.bind()
					_, err := w.b.QP.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRBindMW, Bind: &bind}})
					return err
				})
				loop(func() error {
					_, err := w.b.QP.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRLocalInv, InvalidateRKey: w.mw.RKey()}})
					return err
				})
				loop(func() error {
					bind := w.bind()
					bind.MW = one
					return w.b.QP.BindMW(1, 0, bind)
				})
			}
			loop(func() error { return w.mr.Rereg(ibverbs.ReregMRAccess, ibverbs.ReregMRAttr{Access: windowAccess}) })
			closeAll(t, &wg, w.mw, one, w.mr, w.b.QP)
			wg.Wait()
		}
	}, verbstest.MemoryWindows)
}

// closeAll closes objects at the same time, and again until nothing that has
// to go first is open.
func closeAll(t *testing.T, wg *sync.WaitGroup, objects ...interface{ Close() error }) {
	t.Helper()
	for _, object := range objects {
		for range 2 {
			wg.Go(func() {
				for {
					err := object.Close()
					if err == nil {
						return
					}
					if !errors.Is(err, syscall.EBUSY) {
						t.Error(err)
						return
					}
				}
			})
		}
	}
}
