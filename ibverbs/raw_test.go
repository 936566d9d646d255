package ibverbs_test

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// lender is what every object of this package is.
type lender interface {
	Raw(func(unsafe.Pointer) error) error
	Close() error
}

// Each object's pointer is the C object's: all of them begin with the address
// of their context, or, a PD's MR, lead there.
func TestRaw(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		var context unsafe.Pointer
		if err := target.Dev.Raw(func(p unsafe.Pointer) error { context = p; return nil }); err != nil || context == nil {
			t.Fatalf("%p, %v", context, err)
		}
		pd := verbstest.PD(t, target.Dev)
		cq := verbstest.CQ(t, target.Dev, 4)
		qp, err := pd.CreateQP(ibverbs.QPInitAttr{
			Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq,
			Cap: ibverbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		own := errors.New("fn's own error")
		for _, o := range []lender{qp, cq.Channel(), cq, verbstest.MR(t, pd, 4096), pd} {
			err := o.Raw(func(p unsafe.Pointer) error {
				if got := *(*unsafe.Pointer)(p); got != context {
					t.Errorf("%v begins with %p, want the context %p", o, got, context)
				}
				return own
			})
			if err != own {
				t.Errorf("%v: %v, want fn's own error", o, err)
			}
		}
		if err := qp.Close(); err != nil {
			t.Fatal(err)
		}
		err = qp.Raw(func(unsafe.Pointer) error { t.Error("lent after Close"); return nil })
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%v, want os.ErrClosed", err)
		}
	})
}
