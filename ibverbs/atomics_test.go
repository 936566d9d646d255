package ibverbs_test

import (
	"encoding/binary"
	"errors"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// number is the 8 bytes at off of a region, as this host writes numbers.
func number(mr *ibverbs.MR, off int) uint64 { return binary.NativeEndian.Uint64(mr.Bytes()[off:]) }

func setNumber(mr *ibverbs.MR, off int, v uint64) {
	binary.NativeEndian.PutUint64(mr.Bytes()[off:], v)
}

// atomic has a do something to the number at off of b's memory, and returns
// what was there before.
func (p *pipe) atomic(t *testing.T, wr ibverbs.SendWR, off int) uint64 {
	t.Helper()
	setNumber(p.src, 0, 0xdeadbeef)
	wr.SGList = []ibverbs.SGE{p.src.SGE(0, 8)}
	wr = p.remote(wr)
	wr.RemoteAddr += uint64(off)
	verbstest.Post(t, p.a.QP, wr)
	wc := verbstest.Complete(t, p.a.CQ, 1)[0]
	want := ibverbs.WCFetchAdd
	if wr.Opcode == ibverbs.WRAtomicCmpAndSwp {
		want = ibverbs.WCCompSwap
	}
	if wc.Opcode != want || wc.ByteLen != 8 {
		t.Errorf("%v completed as %+v", wr.Opcode, wc)
	}
	return number(p.src, 0)
}

func TestAtomics(t *testing.T) {
	const start, added = 0x0102030405060708, 0x1000000000000001
	eachWay(t, 64, func(t *testing.T, p *pipe) {
		setNumber(p.dst, 8, start)
		for _, step := range []struct {
			wr          ibverbs.SendWR
			before, now uint64
		}{
			{ibverbs.SendWR{Opcode: ibverbs.WRAtomicFetchAdd, CompareAdd: added}, start, start + added},
			{ibverbs.SendWR{Opcode: ibverbs.WRAtomicFetchAdd, CompareAdd: ^uint64(0)}, start + added, start + added - 1},
			{ibverbs.SendWR{Opcode: ibverbs.WRAtomicCmpAndSwp, CompareAdd: start, Swap: 1}, start + added - 1, start + added - 1},
			{ibverbs.SendWR{Opcode: ibverbs.WRAtomicCmpAndSwp, CompareAdd: start + added - 1, Swap: 42}, start + added - 1, 42},
		} {
			before := p.atomic(t, step.wr, 8)
			if now := number(p.dst, 8); before != step.before || now != step.now {
				t.Errorf("%v %#x: found %#x and left %#x, want %#x and %#x", step.wr.Opcode, step.wr.CompareAdd, before, now, step.before, step.now)
			}
		}
		if number(p.dst, 0) != 0 || number(p.dst, 16) != 0 {
			t.Error("the neighbours have changed")
		}
		verbstest.Works(t, p.a.PD.Device(), "atomics")
	})
}

// What would take the connection down is refused before.
func TestAtomicErrors(t *testing.T) {
	eachWay(t, 64, func(t *testing.T, p *pipe) {
		for _, tc := range []struct {
			name   string
			change func(*ibverbs.SendWR)
			word   string
		}{
			{"an address between numbers", func(wr *ibverbs.SendWR) { wr.RemoteAddr += 4 }, "multiple of 8"},
			{"4 bytes", func(wr *ibverbs.SendWR) { wr.SGList = []ibverbs.SGE{p.src.SGE(0, 4)} }, "8 bytes"},
			{"16 bytes", func(wr *ibverbs.SendWR) { wr.SGList = []ibverbs.SGE{p.src.SGE(0, 16)} }, "8 bytes"},
			{"no SGE", func(wr *ibverbs.SendWR) { wr.SGList = nil }, "8 bytes"},
			{"inline", func(wr *ibverbs.SendWR) { wr.Inline = make([]byte, 8) }, "inline"},
		} {
			wr := p.remote(ibverbs.SendWR{Opcode: ibverbs.WRAtomicFetchAdd, CompareAdd: 1, SGList: []ibverbs.SGE{p.src.SGE(0, 8)}})
			tc.change(&wr)
			_, err := p.a.QP.PostSend([]ibverbs.SendWR{wr})
			refused(t, tc.name, err, syscall.EINVAL, tc.word)
		}
		p.atomic(t, ibverbs.SendWR{Opcode: ibverbs.WRAtomicFetchAdd, CompareAdd: 7}, 0)
		if number(p.dst, 0) != 7 {
			t.Error("the QP does not work any more")
		}
	})
}

// The peer must have allowed it.
func TestAtomicAccess(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 0) // without AccessRemoteAtomic
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{Opcode: ibverbs.WRAtomicFetchAdd, SGList: []ibverbs.SGE{p.src.SGE(0, 8)}}))
		if wc := verbstest.Poll(t, p.a.CQ, 1)[0]; wc.Status != ibverbs.WCStatusRemAccessErr {
			t.Errorf("%+v, want %v", wc, ibverbs.WCStatusRemAccessErr)
		}
	}, verbstest.Atomics)
}

func TestNoAtomics(t *testing.T) {
	verbstest.EachLacking(t, verbstest.Atomics, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 0)
		for _, op := range []ibverbs.WROpcode{ibverbs.WRAtomicCmpAndSwp, ibverbs.WRAtomicFetchAdd, ibverbs.WRAtomicWrite, ibverbs.WRFlush, ibverbs.WRTSO} {
			_, err := p.a.QP.PostSend([]ibverbs.SendWR{p.remote(ibverbs.SendWR{Opcode: op, SGList: []ibverbs.SGE{p.src.SGE(0, 8)}})})
			refused(t, op.String(), err, errors.ErrUnsupported, op.String())
		}
		verbstest.Refused(t, target.Dev, "atomics")
	})
}

// ATOMIC_WRITE puts 8 bytes at once; where the kernel has it not, no QP can be
// made for it.
func TestAtomicWrite(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		init := ibverbs.QPInitAttr{Cap: wideCap, SendOps: rcOps | ibverbs.SendOpAtomicWrite}
		if !target.Has(verbstest.AtomicWrite) {
			refuseQP(t, target, init, "ATOMIC_WRITE")
			verbstest.Refused(t, target.Dev, "ATOMIC_WRITE")
			return
		}
		p := &pipe{}
		p.a, p.b = verbstest.PairWith(t, target, init, nil)
		p.src, p.dst = atomicMR(t, p.a.PD, 64), atomicMR(t, p.b.PD, 64)
		wr := p.remote(ibverbs.SendWR{Opcode: ibverbs.WRAtomicWrite, Inline: []byte("8 bytes!")})
		wr.RemoteAddr += 16
		verbstest.Post(t, p.a.QP, wr)
		if wc := verbstest.Complete(t, p.a.CQ, 1)[0]; wc.Opcode != ibverbs.WCAtomicWrite {
			t.Errorf("%+v", wc)
		}
		if got := string(p.dst.Bytes()[8:32]); got != "\x00\x00\x00\x00\x00\x00\x00\x008 bytes!\x00\x00\x00\x00\x00\x00\x00\x00" {
			t.Errorf("the peer's memory is %q", got)
		}
		for what, change := range map[string]func(*ibverbs.SendWR){
			"multiple of 8": func(wr *ibverbs.SendWR) { wr.RemoteAddr++ },
			"8 bytes":       func(wr *ibverbs.SendWR) { wr.Inline = wr.Inline[:7] },
			"SGList":        func(wr *ibverbs.SendWR) { wr.SGList = []ibverbs.SGE{p.src.SGE(0, 8)} },
		} {
			bad := wr
			change(&bad)
			_, err := p.a.QP.PostSend([]ibverbs.SendWR{bad})
			refused(t, what, err, syscall.EINVAL, what)
		}
		verbstest.Works(t, target.Dev, "ATOMIC_WRITE")
	})
}

// FLUSH waits until earlier writes are placed.
func TestFlushOpcode(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		init := ibverbs.QPInitAttr{Cap: wideCap, SendOps: rcOps | ibverbs.SendOpFlush}
		if !target.Has(verbstest.Flush) {
			refuseQP(t, target, init, "FLUSH")
			verbstest.Refused(t, target.Dev, "FLUSH")
			return
		}
		p := &pipe{}
		p.a, p.b = verbstest.PairWith(t, target, init, nil)
		p.src = verbstest.MR(t, p.a.PD, 64)
		p.dst = verbstest.Must[*ibverbs.MR](t)(p.b.PD.AllocMR(64, verbstest.AllAccess|ibverbs.AccessFlushGlobal, ibverbs.BufferOptions{}))
		verbstest.Close(t, p.dst)
		verbstest.Pattern(p.src.Bytes(), 1)
		write := p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{p.src.SGE(0, 64)}})
		for _, how := range []ibverbs.Flush{
			{Length: 64, Placement: ibverbs.FlushGlobal, Selectivity: ibverbs.FlushRange},
			{Placement: ibverbs.FlushGlobal, Selectivity: ibverbs.FlushMR},
		} {
			clear(p.dst.Bytes())
			verbstest.Post(t, p.a.QP, write, p.remote(ibverbs.SendWR{Opcode: ibverbs.WRFlush, Flush: &how}))
			if wc := verbstest.Complete(t, p.a.CQ, 2)[1]; wc.Opcode != ibverbs.WCFlush {
				t.Errorf("%+v", wc)
			}
			p.same(t)
		}
		_, err := p.a.QP.PostSend([]ibverbs.SendWR{p.remote(ibverbs.SendWR{Opcode: ibverbs.WRFlush})})
		refused(t, "no Flush", err, syscall.EINVAL, "SendWR.Flush")
		verbstest.Works(t, target.Dev, "FLUSH")
	})
}

// refuseQP sees that a QP with init cannot be made.
func refuseQP(t *testing.T, target *verbstest.Target, init ibverbs.QPInitAttr, word string) {
	t.Helper()
	pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
	if init.Type == 0 {
		init.Type = ibverbs.QPTypeRC
	}
	init.SendCQ, init.RecvCQ = cq, cq
	qp, err := pd.CreateQP(init)
	if err == nil {
		qp.Close()
	}
	refused(t, word, err, errors.ErrUnsupported, word)
}
