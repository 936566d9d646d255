package ibverbs_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// What only some hardware has is refused, and the error names it.
func TestUnsupportedQPs(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		for _, tc := range []struct {
			init ibverbs.QPInitAttr
			word string
		}{
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeRawPacket, SendCQ: cq, RecvCQ: cq}, "RAW_PACKET"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeXRCSend, SendCQ: cq}, "XRC_SEND"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeDriver, SendCQ: cq, RecvCQ: cq}, "DRIVER"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, MaxTSOHeader: 60}, "UD QPs with MaxTSOHeader 60"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, SourceQPN: 5}, "UD QPs with SourceQPN 5"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, CreateFlags: ibverbs.QPCreateBlockSelfMcastLB}, "BLOCK_SELF_MCAST_LB"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, SendOps: ibverbs.SendOpTSO}, "SendOps TSO"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, SendOps: ibverbs.SendOpRDMARead}, "SendOps RDMA_READ"},
		} {
			tc.init.Cap = ibverbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
			qp, err := pd.CreateQP(tc.init)
			if err == nil {
				qp.Close()
			}
			refused(t, tc.word, err, errors.ErrUnsupported, tc.word)
		}
		verbstest.Refused(t, target.Dev, "TSO, chosen QP numbers, creation flags")
	})
}

// Which CQs a type has is checked before C looks at what is not there.
func TestQPNeedsCQs(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		for _, tc := range []struct {
			init ibverbs.QPInitAttr
			word string
		}{
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC}, "SendCQ"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeUD, SendCQ: cq}, "RecvCQ"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeXRCSend}, "SendCQ"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeXRCSend, SendCQ: cq, RecvCQ: cq}, "no RecvCQ"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeXRCRecv, SendCQ: cq}, "no CQs"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeXRCRecv}, "XRC domain"},
			{ibverbs.QPInitAttr{Type: ibverbs.QPTypeRawPacket, RXHash: &ibverbs.RXHash{}}, "go together"},
		} {
			qp, err := pd.CreateQP(tc.init)
			if err == nil {
				qp.Close()
			}
			refused(t, tc.init.Type.String(), err, syscall.EINVAL, tc.word)
		}
	})
}

func TestQueryInit(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, send, recv := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16), verbstest.CQ(t, target.Dev, 16)
		for _, sigAll := range []bool{true, false} {
			want := ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: send, RecvCQ: recv, Cap: verbstest.PairCap, SigAll: sigAll}
			qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(want))
			got, err := qp.QueryInit()
			same := got.Cap.MaxSendWR == qp.Cap().MaxSendWR && got.Cap.MaxRecvWR == qp.Cap().MaxRecvWR &&
				got.Cap.MaxSendSGE == qp.Cap().MaxSendSGE && got.Cap.MaxRecvSGE == qp.Cap().MaxRecvSGE && got.Cap.MaxInlineData >= qp.Cap().MaxInlineData
			if err != nil || got.Type != want.Type || !same || got.SigAll != sigAll || got.SendCQ != send || got.RecvCQ != recv || got.SendOps != 0 {
				t.Errorf("%+v, %v; the QP has %+v", got, err, qp.Cap())
			}
			if err := qp.Close(); err != nil {
				t.Error(err)
			}
			_, err = qp.QueryInit()
			if err == nil || qp.QPN() == 0 {
				t.Errorf("after Close: %v, number %d", err, qp.QPN())
			}
		}
	})
}

// SigAll gives each send a completion.
func TestSigAll(t *testing.T) {
	for _, ops := range []ibverbs.SendOps{0, rcOps} {
		verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
			a, b := verbstest.PairWith(t, target, ibverbs.QPInitAttr{Cap: wideCap, SigAll: true, SendOps: ops}, nil)
			mr := verbstest.MR(t, b.PD, 8)
			wr := ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, Inline: []byte("8 bytes!"), RemoteAddr: mr.Addr(), RKey: mr.RKey()}
			verbstest.Post(t, a.QP, wr, wr, wr)
			verbstest.Complete(t, a.CQ, 3)
		}, verbstest.SendOps)
	}
}

// Calls for which no driver of the lab has anything.
func TestUnsupportedQPCalls(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap}))
		verbstest.Close(t, qp)
		refused(t, "rate limit", qp.ModifyRateLimit(ibverbs.QPRateLimit{Rate: 1000, MaxBurst: 4096, TypicalPacket: 1024}), errors.ErrUnsupported, "ibv_modify_qp_rate_limit")
		refused(t, "SetECE", qp.SetECE(ibverbs.ECE{VendorID: 1, Options: 2}), errors.ErrUnsupported, "ibv_set_ece")
		refused(t, "SetECE of nobody", qp.SetECE(ibverbs.ECE{}), errors.ErrUnsupported, "ibv_set_ece")
		_, err := qp.QueryECE()
		refused(t, "QueryECE", err, errors.ErrUnsupported, "ibv_query_ece")
		for _, flags := range []ibverbs.DataInOrderFlags{0, ibverbs.DataInOrderReturnCaps, ibverbs.DataInOrderReturnCaps | ibverbs.DataInOrderDeviceOnly} {
			if order, err := qp.DataInOrder(ibverbs.WRRDMAWrite, flags); order != 0 || err != nil {
				t.Errorf("data in order with %v: %v, %v", flags, order, err)
			}
		}
		verbstest.Refused(t, target.Dev, "packet pacing, ECE")
	})
}

// Datagram QPs post through ibv_wr_* too: TestSendOpsUD has that. RC's
// opcodes are not theirs.
func TestDatagramOpcodes(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap}))
		verbstest.Close(t, qp)
		for _, step := range []ibverbs.QPState{ibverbs.QPStateInit, ibverbs.QPStateRTR, ibverbs.QPStateRTS} {
			required, _, _ := ibverbs.TransitionAttrs(ibverbs.QPTypeUD, step-1, step)
			if err := qp.Modify(ibverbs.QPAttr{State: step, Port: uint8(target.Port), QKey: 1}, ibverbs.QPAttrState|required); err != nil {
				t.Fatal(err)
			}
		}
		for _, op := range []ibverbs.WROpcode{ibverbs.WRRDMAWrite, ibverbs.WRRDMARead, ibverbs.WRSendWithInv, ibverbs.WRAtomicFetchAdd, ibverbs.WRLocalInv} {
			_, err := qp.PostSend([]ibverbs.SendWR{{Opcode: op}})
			refused(t, op.String(), err, syscall.EINVAL, "UD QPs have no "+op.String())
		}
		tso := ibverbs.SendWR{Opcode: ibverbs.WRTSO, TSO: &ibverbs.TSOHeader{Header: make([]byte, 54), MSS: 100}}
		_, err := qp.PostSend([]ibverbs.SendWR{tso})
		refused(t, "TSO", err, errors.ErrUnsupported, "MaxTSOHeader")
	}, verbstest.Datagrams)
}

// A bad work request in the middle of a chain: what came before it is posted
// and counted, what comes after it is not, and the error is the bad one's. siw's
// provider returns success then.
func TestBadInChain(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 4096, 0)
		good := p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{p.src.SGE(0, 8)}})
		bad := good
		bad.SGList = nil
		for range target.Attr.MaxSGE + 1 {
			bad.SGList = append(bad.SGList, p.src.SGE(0, 8))
		}
		last := good
		last.WRID = 2
		n, err := p.a.QP.PostSendUnchecked([]ibverbs.SendWR{good, bad, last})
		if n != 1 || !errors.Is(err, syscall.EINVAL) {
			t.Errorf("accepted %d, %v; want 1 and EINVAL", n, err)
		}
		verbstest.Complete(t, p.a.CQ, 1)
		verbstest.Post(t, p.a.QP, last)
		if wc := verbstest.Complete(t, p.a.CQ, 1)[0]; wc.WRID != 2 {
			t.Errorf("%+v", wc)
		}
		if extra, err := p.a.CQ.Poll(make([]ibverbs.WC, 1)); extra != 0 || err != nil {
			t.Errorf("%d completions more, %v", extra, err)
		}
	})
}
