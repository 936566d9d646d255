package ibverbs_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// Neither software driver has work queues; what is wrong is refused first.
func TestWQRefused(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		good := ibverbs.WQInitAttr{CQ: cq, MaxWR: 16, MaxSGE: 1}
		_, err := pd.CreateWQ(good)
		refused(t, "CreateWQ", err, errors.ErrUnsupported, "ibv_create_wq "+pd.String())
		refused(t, "CreateWQ", err, syscall.EOPNOTSUPP, "")

		_, err = pd.CreateWQ(ibverbs.WQInitAttr{MaxWR: 1})
		refused(t, "no CQ", err, syscall.EINVAL, "needs a CQ")
		_, err = pd.CreateWQ(ibverbs.WQInitAttr{CQ: cq})
		refused(t, "no receives", err, syscall.EINVAL, "no receives")

		other := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(target.Dev.Name()))
		defer other.Close()
		otherCQ := verbstest.Must[*ibverbs.CQ](t)(other.CreateCQ(4, ibverbs.CQOptions{}))
		_, err = pd.CreateWQ(ibverbs.WQInitAttr{CQ: otherCQ, MaxWR: 1})
		refused(t, "another device's CQ", err, syscall.EINVAL, "another device")
		if err := otherCQ.Close(); err != nil {
			t.Error("the CQ after refusals:", err)
		}

		closed := verbstest.Must[*ibverbs.PD](t)(target.Dev.AllocPD())
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = closed.CreateWQ(good)
		refused(t, "closed PD", err, os.ErrClosed, "")
		verbstest.Refused(t, target.Dev, "work queues, indirection tables, hashes")
	})
}

func TestRWQIndTableRefused(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for _, tc := range []struct {
			name string
			wqs  []*ibverbs.WQ
			word string
		}{
			{"none", nil, "0 WQs"},
			{"3", make([]*ibverbs.WQ, 3), "3 WQs"},
			{"nil", make([]*ibverbs.WQ, 2), "entry 0"},
			{"no WQ", []*ibverbs.WQ{{}}, "entry 0"},
		} {
			_, err := target.Dev.CreateRWQIndTable(tc.wqs)
			refused(t, tc.name, err, syscall.EINVAL, tc.word)
		}
	})
}
