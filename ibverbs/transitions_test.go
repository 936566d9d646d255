package ibverbs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// transitionsTested is a way through the states in which each step is tried
// with every attribute too few and too many before it is taken.
var transitionsTested = []ibverbs.QPState{
	ibverbs.QPStateReset, ibverbs.QPStateInit, ibverbs.QPStateInit, ibverbs.QPStateRTR, ibverbs.QPStateRTS,
	ibverbs.QPStateRTS, ibverbs.QPStateSQD, ibverbs.QPStateErr, ibverbs.QPStateReset,
}

// A step with an attribute missing, or one too many, is refused by the kernel,
// and the error names it.
func TestEveryTransition(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for _, typ := range []ibverbs.QPType{ibverbs.QPTypeRC, ibverbs.QPTypeUC, ibverbs.QPTypeUD} {
			t.Run(typ.String(), func(t *testing.T) {
				pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
				qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap}))
				verbstest.Close(t, qp)
				attr := everyAttr(t, target, qp)
				for i, from := range transitionsTested[:len(transitionsTested)-1] {
					tryTransition(t, qp, attr, from, transitionsTested[i+1])
				}
			})
		}
		verbstest.Works(t, target.Dev, "connecting QPs by hand, reading their state")
	}, verbstest.StateMachine)
}

// everyAttr has a value for each attribute that a transition may have.
func everyAttr(t *testing.T, target *verbstest.Target, qp *ibverbs.QP) ibverbs.QPAttr {
	t.Helper()
	attr := verbstest.RTRAttr(t, target, qp.QPN())
	attr.AltAH, attr.AltPort = attr.AH, attr.AH.Port
	attr.Port = uint8(target.Port)
	attr.QKey = 0x11111111
	attr.AccessFlags = ibverbs.AccessRemoteRead
	attr.Cap = qp.Cap()
	attr.Timeout, attr.RetryCnt, attr.RNRRetry, attr.MaxQPRDAtomic = 14, 7, 7, 1
	return attr
}

func tryTransition(t *testing.T, qp *ibverbs.QP, attr ibverbs.QPAttr, from, to ibverbs.QPState) {
	t.Helper()
	required, optional, ok := ibverbs.TransitionAttrs(qp.Type(), from, to)
	if !ok {
		t.Fatalf("no transition %v to %v", from, to)
	}
	attr.State, attr.CurState = to, from
	const base = ibverbs.QPAttrState
	for bit := ibverbs.QPAttrCurState; bit <= ibverbs.QPAttrDestQPN; bit <<= 1 {
		mask, word := base|required|bit, "superfluous "+bit.String()
		switch {
		case required&bit != 0:
			mask, word = base|required&^bit, "missing "+bit.String()
		case optional&bit != 0:
			continue
		}
		refused(t, from.String()+" to "+to.String()+" with "+mask.String(), qp.Modify(attr, mask), syscall.EINVAL, word)
	}
	// Automatic path migration is InfiniBand's alone.
	mask := base | required | optional&^(ibverbs.QPAttrAltPath|ibverbs.QPAttrPathMigState)
	if err := qp.Modify(attr, mask); err != nil {
		t.Fatal(err)
	}
	if state, err := qp.State(); err != nil || state != to {
		t.Fatalf("state %v, %v; want %v", state, err, to)
	}
}

// Where there is no transition at all, that is what the error says.
func TestNoTransition(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap}))
		verbstest.Close(t, qp)
		attr := everyAttr(t, target, qp)
		for _, to := range []ibverbs.QPState{ibverbs.QPStateRTR, ibverbs.QPStateRTS, ibverbs.QPStateSQD, ibverbs.QPStateSQE, ibverbs.QPStateErr} {
			attr.State = to
			refused(t, "RESET to "+to.String(), qp.Modify(attr, ibverbs.QPAttrState), syscall.EINVAL, "no transition RESET to "+to.String())
		}
	}, verbstest.StateMachine)
}

// A send before RTS is refused, and is not sent later on either.
func TestSendTooEarly(t *testing.T) {
	for name, ops := range map[string]ibverbs.SendOps{"ibv_post_send": 0, "ibv_wr": ibverbs.SendOpSend} {
		t.Run(name, func(t *testing.T) {
			verbstest.Each(t, func(t *testing.T, target *verbstest.Target) { testSendTooEarly(t, target, ops) }, verbstest.SendOps)
		})
	}
}

func testSendTooEarly(t *testing.T, target *verbstest.Target, ops ibverbs.SendOps) {
	early := ibverbs.SendWR{WRID: 1, Opcode: ibverbs.WRSend, Inline: []byte("early"), Flags: ibverbs.SendSignaled}
	init := ibverbs.QPInitAttr{Cap: wideCap, SendOps: ops}
	a, b := verbstest.PairWith(t, target, init, func(e *verbstest.End) {
		n, err := e.QP.PostSend([]ibverbs.SendWR{early})
		if n != 0 {
			t.Error("a send was accepted in state INIT")
		}
		refused(t, "a send in state INIT", err, syscall.EINVAL, "INIT")
	})
	mr := verbstest.MR(t, b.PD, 16)
	for range 2 {
		verbstest.Receive(t, b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{mr.SGE(0, 16)}})
	}
	verbstest.Post(t, a.QP, ibverbs.SendWR{WRID: 2, Opcode: ibverbs.WRSend, Inline: []byte("in time"), Flags: ibverbs.SendSignaled})
	if wc := verbstest.Complete(t, a.CQ, 1)[0]; wc.WRID != 2 {
		t.Errorf("%+v, want work request 2", wc)
	}
	wc := verbstest.Complete(t, b.CQ, 1)[0]
	if got := string(mr.Bytes()[:wc.ByteLen]); !strings.HasPrefix(got, "in time") {
		t.Errorf("received %q", got)
	}
	if n, err := b.CQ.Poll(make([]ibverbs.WC, 1)); n != 0 || err != nil {
		t.Errorf("%d messages more, %v", n, err)
	}
}
