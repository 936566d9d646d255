package ibverbs_test

import (
	"errors"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// What only hardware has is refused, says so, and leaves nothing behind: the
// device closes.
func TestSteeringRefused(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		cq := verbstest.CQ(t, target.Dev, 4)
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{
			Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq,
			Cap: ibverbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1},
		}))
		verbstest.Close(t, qp)
		_, flow := qp.CreateFlow(ibverbs.FlowAttr{Port: uint8(target.Port), Specs: []ibverbs.FlowSpec{ibverbs.FlowSpecEth{}}})
		_, counters := target.Dev.CreateCounters()
		_, action := target.Dev.CreateFlowActionESP(ibverbs.FlowActionESPAttr{
			Attr:   &ibverbs.ESPAttr{},
			Keymat: &ibverbs.ESPAESGCM{Key: make([]byte, 16), ICVLen: 16},
		})
		for name, err := range map[string]error{"CreateFlow": flow, "CreateCounters": counters, "CreateFlowActionESP": action} {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: %v, want errors.ErrUnsupported", name, err)
			}
		}
		verbstest.Refused(t, target.Dev, "flow rules, ESP actions, counters")
	})
}
