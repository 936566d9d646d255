package ibverbs_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

func refused(t *testing.T, what string, err error, is error, word string) {
	t.Helper()
	var op *ibverbs.OpError
	if !errors.As(err, &op) || !errors.Is(err, is) || !strings.Contains(err.Error(), word) {
		t.Errorf("%s: %v; want an OpError, %v, and a word on %q", what, err, is, word)
	}
}

func TestCQErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		dev := target.Dev
		for _, cqe := range []int{0, -1, target.Attr.MaxCQE + 1} {
			_, err := dev.CreateCQ(cqe, ibverbs.CQOptions{})
			refused(t, "CreateCQ", err, syscall.EINVAL, "entries")
		}
		_, err := dev.CreateCQ(1, ibverbs.CQOptions{CompVector: 1 << 20})
		refused(t, "bad vector", err, syscall.EINVAL, "vector")

		other := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(dev.Name()))
		defer other.Close()
		ch := verbstest.Must[*ibverbs.CompChannel](t)(other.CreateCompChannel())
		defer ch.Close()
		_, err = dev.CreateCQ(1, ibverbs.CQOptions{Channel: ch})
		refused(t, "another device's channel", err, syscall.EINVAL, "another device")

		cq := verbstest.Must[*ibverbs.CQ](t)(dev.CreateCQ(64, ibverbs.CQOptions{}))
		verbstest.Close(t, cq)
		if cq.CQE() < 64 {
			t.Errorf("asked for 64 entries, got %d", cq.CQE())
		}
		refused(t, "ReqNotify without a channel", cq.ReqNotify(false), syscall.EINVAL, "CQOptions.Channel")
		_, err = cq.Wait(verbstest.Context(t), make([]ibverbs.WC, 1))
		refused(t, "Wait without a channel", err, syscall.EINVAL, "CQOptions.Channel")
		withChannel := verbstest.CQ(t, dev, 1)
		_, err = withChannel.Wait(verbstest.Context(t), nil)
		refused(t, "Wait without room", err, syscall.EINVAL, "room")
		if n, err := cq.Poll(nil); n != 0 || err != nil {
			t.Errorf("Poll without room: %d, %v", n, err)
		}
		if n, err := cq.Spin(make([]ibverbs.WC, 1), -1); n != 0 || err != nil {
			t.Errorf("Spin without a budget: %d, %v", n, err)
		}
	})
}

func TestQPErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		init := ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap}
		for _, tc := range []struct {
			name   string
			change func(*ibverbs.QPInitAttr)
			word   string
		}{
			{"no send CQ", func(a *ibverbs.QPInitAttr) { a.SendCQ = nil }, "SendCQ"},
			{"no receive CQ", func(a *ibverbs.QPInitAttr) { a.RecvCQ = nil }, "RecvCQ"},
			{"too many work requests", func(a *ibverbs.QPInitAttr) { a.Cap.MaxSendWR = uint32(target.Attr.MaxQPWR) + 1 }, "work requests a queue"},
			{"too many SGEs", func(a *ibverbs.QPInitAttr) { a.Cap.MaxRecvSGE = uint32(target.Attr.MaxSGE) + 1 }, "SGEs a work request"},
		} {
			attr := init
			tc.change(&attr)
			qp, err := pd.CreateQP(attr)
			if err == nil {
				qp.Close()
			}
			refused(t, tc.name, err, syscall.EINVAL, tc.word)
		}
		for _, typ := range []ibverbs.QPType{ibverbs.QPTypeRawPacket, ibverbs.QPTypeXRCRecv, ibverbs.QPType(99)} {
			attr := init
			attr.Type = typ
			if qp, err := pd.CreateQP(attr); err == nil {
				qp.Close()
				t.Errorf("created a %v QP", typ)
			}
		}
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(init))
		verbstest.Close(t, qp)
		got := qp.Cap()
		if got.MaxSendWR < init.Cap.MaxSendWR || got.MaxRecvSGE < init.Cap.MaxRecvSGE || got.MaxInlineData < init.Cap.MaxInlineData {
			t.Errorf("asked for %+v, granted %+v", init.Cap, got)
		}
	})
}

// A QP type that a device lacks says so.
func TestNoDatagrams(t *testing.T) {
	verbstest.EachLacking(t, verbstest.Datagrams, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		for _, typ := range []ibverbs.QPType{ibverbs.QPTypeUD, ibverbs.QPTypeUC} {
			_, err := pd.CreateQP(ibverbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq})
			refused(t, typ.String(), err, errors.ErrUnsupported, typ.String())
		}
		verbstest.Refused(t, target.Dev, "UC QPs")
	})
}

func TestModifyErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{
			Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap,
		}))
		verbstest.Close(t, qp)

		err := qp.ToRTS(verbstest.RTSAttr)
		refused(t, "RESET to RTS", err, syscall.EINVAL, "no transition RESET to RTS")
		err = qp.Modify(ibverbs.QPAttr{State: ibverbs.QPStateInit, Port: 1}, ibverbs.QPAttrState|ibverbs.QPAttrPort|ibverbs.QPAttrQKey)
		refused(t, "RESET to INIT", err, syscall.EINVAL, "missing ACCESS_FLAGS|PKEY_INDEX, superfluous QKEY")
		if _, err := qp.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRSend}}); err == nil {
			t.Error("posted a send in state RESET")
		} else if !strings.Contains(err.Error(), "RESET") {
			t.Errorf("a send in state RESET: %v names no state", err)
		}

		verbstest.ToInit(t, target, qp)
		if state, err := qp.State(); err != nil || state != ibverbs.QPStateInit {
			t.Errorf("state %v, %v", state, err)
		}
		local := verbstest.RTRAttr(t, target, 1)
		local.AH.IsGlobal = false
		refused(t, "no GRH", qp.ToRTR(local), syscall.EINVAL, "IsGlobal")
		empty := verbstest.RTRAttr(t, target, 1)
		empty.AH.SGIDIndex = 200
		if err := qp.ToRTR(empty); err == nil || !strings.Contains(err.Error(), "SGIDIndex 200") {
			t.Errorf("an empty GID: %v", err)
		}
		verbstest.ToRTS(t, target, qp, qp.QPN())
		attr, err := qp.Query(ibverbs.QPAttrState | ibverbs.QPAttrAV | ibverbs.QPAttrDestQPN | ibverbs.QPAttrTimeout)
		if err != nil || attr.State != ibverbs.QPStateRTS || attr.DestQPN != qp.QPN() || attr.Timeout != verbstest.RTSAttr.Timeout || !attr.AH.IsGlobal {
			t.Errorf("query: %+v, %v", attr, err)
		}
		if err := qp.ToReset(); err != nil {
			t.Error(err)
		}
	}, verbstest.StateMachine)
}

// What the provider would take and get wrong is refused before it is posted,
// and what comes before it in the batch is posted.
func TestPostErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 1)
		sge := p.src.SGE(0, 8)
		for _, tc := range []struct {
			name string
			wr   ibverbs.SendWR
			is   error
			word string
		}{
			{"too many SGEs", ibverbs.SendWR{Opcode: ibverbs.WRSend, SGList: make([]ibverbs.SGE, p.a.QP.Cap().MaxSendSGE+1)}, syscall.EINVAL, "MaxSendSGE"},
			{"inline too long", ibverbs.SendWR{Opcode: ibverbs.WRSend, Inline: make([]byte, p.a.QP.Cap().MaxInlineData+1)}, syscall.EINVAL, "MaxInlineData"},
			{"inline SGEs too long", ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendInline, SGList: []ibverbs.SGE{{Addr: sge.Addr, Length: p.a.QP.Cap().MaxInlineData + 1}}}, syscall.EINVAL, "MaxInlineData"},
			{"inline READ", ibverbs.SendWR{Opcode: ibverbs.WRRDMARead, Inline: []byte{1}}, syscall.EINVAL, "inline"},
			{"READ with too many SGEs", ibverbs.SendWR{Opcode: ibverbs.WRRDMARead, SGList: make([]ibverbs.SGE, target.Attr.MaxSGERD+1)}, syscall.EINVAL, "SGEs"},
			{"unknown opcode", ibverbs.SendWR{Opcode: 99}, errors.ErrUnsupported, "WROpcode(99)"},
			{"FLUSH", ibverbs.SendWR{Opcode: ibverbs.WRFlush}, errors.ErrUnsupported, "FLUSH"},
		} {
			good := ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{sge}, RemoteAddr: p.dst.Addr(), RKey: p.dst.RKey()}
			n, err := p.a.QP.PostSend([]ibverbs.SendWR{good, tc.wr, good})
			if n != 1 {
				t.Errorf("%s: %d accepted, want 1", tc.name, n)
			}
			refused(t, tc.name, err, tc.is, tc.word)
			verbstest.Complete(t, p.a.CQ, n)
		}
		n, err := p.b.QP.PostRecv([]ibverbs.RecvWR{{}, {SGList: make([]ibverbs.SGE, p.b.QP.Cap().MaxRecvSGE+1)}})
		if n > 1 {
			t.Errorf("%d receives accepted", n)
		}
		refused(t, "receive with too many SGEs", err, syscall.EINVAL, "")
	})
}

func TestNoImmediates(t *testing.T) {
	verbstest.EachLacking(t, verbstest.Immediates, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 0)
		for _, op := range []ibverbs.WROpcode{
			ibverbs.WRSendWithImm, ibverbs.WRRDMAWriteWithImm, ibverbs.WRAtomicCmpAndSwp, ibverbs.WRAtomicFetchAdd, ibverbs.WRLocalInv, ibverbs.WRBindMW,
		} {
			n, err := p.a.QP.PostSend([]ibverbs.SendWR{p.remote(ibverbs.SendWR{Opcode: op, SGList: []ibverbs.SGE{p.src.SGE(0, 8)}})})
			if n != 0 {
				t.Errorf("%v was accepted", op)
			}
			refused(t, op.String(), err, errors.ErrUnsupported, op.String())
		}
		verbstest.Refused(t, target.Dev, "immediate data")
	})
}

// A device that reads into one SGE at a time is not asked for more.
func TestNoReadScatter(t *testing.T) {
	verbstest.EachLacking(t, verbstest.ReadScatter, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 1000, 0)
		_, err := p.a.QP.PostSend([]ibverbs.SendWR{p.remote(ibverbs.SendWR{
			Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{p.src.SGE(0, 10), p.src.SGE(10, 990)},
		})})
		refused(t, "READ into 2 SGEs", err, syscall.EINVAL, "SGEs")
		verbstest.Refused(t, target.Dev, "READ into several SGEs")
	})
}

// An iWARP QP is connected by rdma_cm alone: there is no TCP connection for it
// before.
func TestNoStateMachine(t *testing.T) {
	verbstest.EachLacking(t, verbstest.StateMachine, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap}))
		verbstest.Close(t, qp)
		if err := qp.ToInit(ibverbs.QPAttr{Port: 1, AccessFlags: ibverbs.AccessRemoteWrite}); err != nil {
			t.Fatal(err)
		}
		refused(t, "to RTS", qp.ToRTS(verbstest.RTSAttr), syscall.EINVAL, "no transition")
		verbstest.Refused(t, target.Dev, "connecting QPs by hand, reading their state")
	})
}

// A READ whose depth is 0 would never complete.
func TestReadDepth(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{
			Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap,
		}))
		verbstest.Close(t, qp)
		verbstest.ToInit(t, target, qp)
		if err := qp.ToRTR(verbstest.RTRAttr(t, target, qp.QPN())); err != nil {
			t.Fatal(err)
		}
		attr := verbstest.RTSAttr
		attr.MaxQPRDAtomic = 0
		if err := qp.ToRTS(attr); err != nil {
			t.Fatal(err)
		}
		mr := verbstest.MR(t, pd, 8)
		_, err := qp.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{mr.SGE(0, 8)}, RemoteAddr: mr.Addr(), RKey: mr.RKey()}})
		refused(t, "READ of depth 0", err, syscall.EINVAL, "MaxQPRDAtomic")
	}, verbstest.StateMachine)
}

// Failures that the device sees end the work request with a status that says
// which side was wrong, and then flush the rest.
func TestCompletionErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 4096, 0)
		bad := p.src.SGE(0, 64)
		bad.LKey ^= 0x5500
		n, err := p.a.QP.PostSend([]ibverbs.SendWR{p.remote(ibverbs.SendWR{WRID: 9, Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{bad}})})
		if n != 1 || err != nil {
			t.Fatal(n, err) // keys are the device's to check
		}
		wc := verbstest.Poll(t, p.a.CQ, 1)[0]
		// rxe says LOC_QP_OP_ERR (6.1) or WR_FLUSH_ERR (6.12), others LOC_PROT_ERR.
		if wc.Status == ibverbs.WCStatusSuccess || wc.WRID != 9 || wc.QPN != p.a.QP.QPN() {
			t.Errorf("a wrong LKey: %+v", wc)
		}
		var wce *ibverbs.WCError
		if !errors.As(wc.Err(), &wce) || wce.Status != wc.Status {
			t.Errorf("error %v", wc.Err())
		}
	})
}

// The send queue fills up, says so, and can be used again once completions
// have been polled.
func TestQueueFull(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size = 64 << 10
		p := newPipe(t, target, size, 0)
		// READs are slow enough to fill siw's queue. rxe does them while they
		// are posted, but a SEND without a receive has to wait there.
		wr := p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{p.src.SGE(0, size)}})
		rnr := target.Has(verbstest.ReceiverNotReady)
		if rnr {
			wr.Opcode = ibverbs.WRSend
		}
		// A driver may have room for more than it says it granted.
		batch := make([]ibverbs.SendWR, 4*p.a.QP.Cap().MaxSendWR+64)
		for i := range batch {
			batch[i] = wr
			batch[i].WRID = uint64(i)
		}
		n, err := p.a.QP.PostSend(batch)
		if n == len(batch) || !errors.Is(err, ibverbs.ErrQueueFull) || !errors.Is(err, syscall.ENOMEM) {
			t.Fatalf("%d work requests accepted, %v; want fewer than %d and ErrQueueFull", n, err, len(batch))
		}
		take := func(n int) {
			t.Helper()
			for i := 0; rnr && i < n; i++ {
				verbstest.Receive(t, p.b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{p.dst.SGE(0, size)}})
				verbstest.Complete(t, p.b.CQ, 1)
			}
		}
		take(n)
		for i, wc := range verbstest.Complete(t, p.a.CQ, n) {
			if wc.WRID != uint64(i) {
				t.Fatalf("completion %+v, want work request %d", wc, i)
			}
		}
		verbstest.Post(t, p.a.QP, wr)
		take(1)
		verbstest.Complete(t, p.a.CQ, 1)
	})
}
