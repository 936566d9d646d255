package ibverbs_test

import (
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// A memory window's life, both ways of posting: bound, used, invalidated by the
// peer, bound again, invalidated by its owner.
func TestSendOpsWindow(t *testing.T) {
	eachWay(t, 4096, func(t *testing.T, p *pipe) {
		mr := verbstest.Must[*ibverbs.MR](t)(p.b.PD.AllocMR(4096, windowAccess, ibverbs.BufferOptions{}))
		verbstest.Close(t, mr)
		mw := verbstest.Must[*ibverbs.MW](t)(p.b.PD.AllocMW(ibverbs.MWType2))
		verbstest.Close(t, mw)
		bind := ibverbs.MWBind{MW: mw, MR: mr, Addr: mr.Addr(), Length: 64, Access: ibverbs.AccessRemoteWrite}
		owner := func(wr ibverbs.SendWR, want ibverbs.WCOpcode) {
			t.Helper()
			wr.Flags = ibverbs.SendSignaled
			verbstest.Post(t, p.b.QP, wr)
			if wc := verbstest.Complete(t, p.b.CQ, 1)[0]; wc.Opcode != want {
				t.Errorf("%+v, want %v", wc, want)
			}
		}
		owner(ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &bind}, ibverbs.WCBindMW)
		key := mw.RKey()
		verbstest.Receive(t, p.b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{p.dst.SGE(0, 64)}})
		verbstest.Post(t, p.a.QP,
			ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, Inline: []byte("through"), RemoteAddr: mr.Addr(), RKey: key},
			ibverbs.SendWR{Opcode: ibverbs.WRSendWithInv, InvalidateRKey: key, Inline: []byte("done"), Flags: ibverbs.SendSignaled},
		)
		verbstest.Complete(t, p.a.CQ, 1)
		wc := verbstest.Complete(t, p.b.CQ, 1)[0]
		if wc.Flags&ibverbs.WCWithInv == 0 || wc.InvalidatedRKey() != key || string(p.dst.Bytes()[:wc.ByteLen]) != "done" {
			t.Errorf("%+v, invalidated %#x; want %#x", wc, wc.InvalidatedRKey(), key)
		}
		if got := string(mr.Bytes()[:7]); got != "through" {
			t.Errorf("the memory holds %q", got)
		}
		owner(ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &bind}, ibverbs.WCBindMW)
		owner(ibverbs.SendWR{Opcode: ibverbs.WRLocalInv, InvalidateRKey: mw.RKey()}, ibverbs.WCLocalInv)
	})
}

// UD QPs name the destination with each message.
func TestSendOpsUD(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		b := verbstest.UD(t, target, verbstest.PairCap)
		a := verbstest.NewEnd(t, target, wideCap)
		a.QP = verbstest.Must[*ibverbs.QP](t)(a.PD.CreateQP(ibverbs.QPInitAttr{
			Type: ibverbs.QPTypeUD, SendCQ: a.CQ, RecvCQ: a.CQ, Cap: wideCap,
			SendOps: ibverbs.SendOpSend | ibverbs.SendOpSendWithImm,
		}))
		verbstest.Close(t, a.QP)
		attr := ibverbs.QPAttr{Port: uint8(target.Port), QKey: verbstest.QKey}
		for _, move := range []func(ibverbs.QPAttr) error{a.QP.ToInit, a.QP.ToRTR, a.QP.ToRTS} {
			if err := move(attr); err != nil {
				t.Fatal(err)
			}
		}
		ah := verbstest.AH(t, a.PD, verbstest.AHAttr(t, target, target.Addr))
		src, dst := verbstest.MR(t, a.PD, 111), verbstest.MR(t, b.PD, 1024)
		verbstest.Pattern(src.Bytes(), 1)
		list, n := pieces(src, 0)
		for _, wr := range []ibverbs.SendWR{
			{Opcode: ibverbs.WRSend, SGList: list},
			{Opcode: ibverbs.WRSend, SGList: []ibverbs.SGE{src.SGE(0, n)}},
			{Opcode: ibverbs.WRSendWithImm, ImmData: 5, Inline: src.Bytes()},
		} {
			wr.AH, wr.RemoteQPN, wr.RemoteQKey, wr.Flags = ah, b.QP.QPN(), verbstest.QKey, ibverbs.SendSignaled
			verbstest.Receive(t, b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{dst.SGE(0, 1024)}})
			verbstest.Post(t, a.QP, wr)
			verbstest.Complete(t, a.CQ, 1)
			wc := datagram(t, b, dst, src.Bytes(), a)
			if wr.ImmData != 0 && wc.ImmData() != wr.ImmData {
				t.Errorf("immediate %d, want %d", wc.ImmData(), wr.ImmData)
			}
		}
	}, verbstest.Datagrams)
}
