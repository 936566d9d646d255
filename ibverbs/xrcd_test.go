package ibverbs_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// No software driver has XRC: each way in says so, and leaves nothing behind.
func TestNoXRC(t *testing.T) {
	verbstest.EachLacking(t, verbstest.XRC, func(t *testing.T, target *verbstest.Target) {
		_, err := target.Dev.OpenXRCD(-1, syscall.O_CREAT)
		refused(t, "OpenXRCD", err, syscall.EOPNOTSUPP, "ibv_open_xrcd "+target.Dev.Name())
		_, err = target.Dev.OpenXRCD(int(os.Stdin.Fd()), syscall.O_CREAT|syscall.O_EXCL)
		refused(t, "OpenXRCD on a file", err, syscall.EOPNOTSUPP, "ibv_open_xrcd")

		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		_, err = pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeXRCRecv})
		refused(t, "XRC_RECV QP", err, syscall.EINVAL, "XRC domain")
		_, err = pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeXRCSend, SendCQ: cq, Cap: ibverbs.QPCap{MaxSendWR: 4, MaxSendSGE: 1}})
		refused(t, "XRC_SEND QP", err, errors.ErrUnsupported, "XRC_SEND")
		verbstest.Refused(t, target.Dev, "XRC domains, SRQs and QPs")
	})
}

func TestSRQTypes(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		for _, tc := range []struct {
			name string
			attr ibverbs.SRQInitAttr
			is   error
			word string
		}{
			{"XRC without a domain", ibverbs.SRQInitAttr{Type: ibverbs.SRQTypeXRC, CQ: cq}, syscall.EINVAL, "XRC domain"},
			{"tags without a CQ", ibverbs.SRQInitAttr{Type: ibverbs.SRQTypeTM, MaxTags: 4, MaxOps: 4}, syscall.EINVAL, "CQ"},
			{"a CQ without a use", ibverbs.SRQInitAttr{CQ: cq}, syscall.EINVAL, "CQ"},
			{"tags without a use", ibverbs.SRQInitAttr{MaxTags: 4}, syscall.EINVAL, "tags"},
			{"tags", ibverbs.SRQInitAttr{Type: ibverbs.SRQTypeTM, CQ: cq, MaxTags: 4, MaxOps: 4}, errors.ErrUnsupported, "TM"},
			{"an unknown type", ibverbs.SRQInitAttr{Type: 77, CQ: cq}, syscall.EINVAL, "SRQType(77)"},
		} {
			tc.attr.MaxWR, tc.attr.MaxSGE = 16, 1
			srq, err := pd.CreateSRQ(tc.attr)
			if err == nil {
				srq.Close()
			}
			refused(t, tc.name, err, tc.is, tc.word)
		}
		srq := verbstest.Must[*ibverbs.SRQ](t)(pd.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: 16, MaxSGE: 1}))
		verbstest.Close(t, srq)
		if srq.Type() != ibverbs.SRQTypeBasic || srq.PD() != pd {
			t.Errorf("type %v, PD %v", srq.Type(), srq.PD())
		}
		_, err := srq.SRQN()
		refused(t, "SRQN", err, errors.ErrUnsupported, "ibv_get_srq_num")
		n, err := srq.PostOps([]ibverbs.OpsWR{{Opcode: ibverbs.OpsTagSync}})
		if n != 0 {
			t.Errorf("%d operations accepted", n)
		}
		refused(t, "PostOps", err, errors.ErrUnsupported, "BASIC")
		verbstest.Refused(t, target.Dev, "SRQs that match tags")
	})
}
