package ibverbs_test

import (
	"bytes"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// pipe is a connected pair with a memory region on each side.
type pipe struct {
	a, b     *verbstest.End
	src, dst *ibverbs.MR
}

// newPipe connects two ends; b has recvs receives of up to size bytes posted,
// one after the other in dst.
func newPipe(t *testing.T, target *verbstest.Target, size, recvs int) *pipe {
	t.Helper()
	p := &pipe{}
	p.a, p.b = verbstest.Pair(t, target, verbstest.PairCap, nil)
	p.src = verbstest.MR(t, p.a.PD, size*max(recvs, 1))
	p.dst = verbstest.MR(t, p.b.PD, size*max(recvs, 1))
	for i := range recvs {
		verbstest.Receive(t, p.b.QP, ibverbs.RecvWR{WRID: uint64(i), SGList: []ibverbs.SGE{p.dst.SGE(i*size, size)}})
	}
	return p
}

func (p *pipe) remote(wr ibverbs.SendWR) ibverbs.SendWR {
	wr.RemoteAddr, wr.RKey = p.dst.Addr(), p.dst.RKey()
	wr.Flags |= ibverbs.SendSignaled
	return wr
}

// same fails the test unless b's memory holds what a's does.
func (p *pipe) same(t *testing.T) {
	t.Helper()
	if !bytes.Equal(p.src.Bytes(), p.dst.Bytes()) {
		t.Error("the data differs")
	}
}

// placed waits until everything that a has written is in b's memory: a READ
// that follows does not pass it.
func (p *pipe) placed(t *testing.T) {
	t.Helper()
	sink := verbstest.MR(t, p.a.PD, 1)
	verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{sink.SGE(0, 1)}}))
	verbstest.Complete(t, p.a.CQ, 1)
}

func TestSend(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size, n = 5000, 8
		p := newPipe(t, target, size, n)
		verbstest.Pattern(p.src.Bytes(), 1)
		var wrs []ibverbs.SendWR
		for i := range n {
			// Two SGEs make one message.
			wrs = append(wrs, ibverbs.SendWR{
				WRID: 100 + uint64(i), Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled,
				SGList: []ibverbs.SGE{p.src.SGE(i*size, 1000), p.src.SGE(i*size+1000, size-1000)},
			})
		}
		verbstest.Post(t, p.a.QP, wrs...)
		for i, wc := range verbstest.Complete(t, p.a.CQ, n) {
			if wc.WRID != 100+uint64(i) || wc.Opcode != ibverbs.WCSend || wc.QPN != p.a.QP.QPN() {
				t.Errorf("send %d: %+v", i, wc)
			}
		}
		for i, wc := range verbstest.Complete(t, p.b.CQ, n) {
			if wc.WRID != uint64(i) || wc.Opcode != ibverbs.WCRecv || wc.ByteLen != size || wc.QPN != p.b.QP.QPN() {
				t.Errorf("receive %d: %+v", i, wc)
			}
		}
		p.same(t)
		verbstest.Works(t, target.Dev, "SEND, WRITE, READ")
	})
}

func TestInline(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 3)
		room := int(p.a.QP.Cap().MaxInlineData)
		if room < 64 {
			t.Fatalf("asked for 64 bytes inline, got %d", room)
		}
		verbstest.Pattern(p.src.Bytes(), 2)
		one, two, three := bytes.Clone(p.src.Bytes()[:64]), bytes.Clone(p.src.Bytes()[64:128]), p.src.SGE(128, 64)
		three.LKey = 0xdead // not looked at
		// A batch of one's own bytes, which may be overwritten at once, and of
		// registered memory that is sent inline.
		verbstest.Post(t, p.a.QP,
			ibverbs.SendWR{Opcode: ibverbs.WRSend, Inline: one, Flags: ibverbs.SendSignaled},
			ibverbs.SendWR{Opcode: ibverbs.WRSend, Inline: two, Flags: ibverbs.SendSignaled},
			ibverbs.SendWR{Opcode: ibverbs.WRSend, SGList: []ibverbs.SGE{three}, Flags: ibverbs.SendSignaled | ibverbs.SendInline},
		)
		clear(one)
		clear(two)
		verbstest.Complete(t, p.a.CQ, 3)
		verbstest.Complete(t, p.b.CQ, 3)
		p.same(t)
		verbstest.Works(t, target.Dev, "inline data")
	})
}

func TestWrite(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 100_000, 0)
		verbstest.Pattern(p.src.Bytes(), 3)
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{
			WRID: 1, Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{p.src.SGE(0, 30_000), p.src.SGE(30_000, 70_000)},
		}))
		if wc := verbstest.Complete(t, p.a.CQ, 1)[0]; wc.WRID != 1 || wc.Opcode != ibverbs.WCRDMAWrite {
			t.Errorf("%+v", wc)
		}
		p.placed(t)
		p.same(t)
		verbstest.Works(t, target.Dev, "SEND, WRITE, READ")
	})
}

func TestRead(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 100_000, 0)
		verbstest.Pattern(p.dst.Bytes(), 4)
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{WRID: 1, Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{p.src.SGE(0, 100_000)}}))
		if wc := verbstest.Complete(t, p.a.CQ, 1)[0]; wc.WRID != 1 || wc.Opcode != ibverbs.WCRDMARead {
			t.Errorf("%+v", wc)
		}
		p.same(t)
		verbstest.Works(t, target.Dev, "SEND, WRITE, READ")
	})
}

func TestReadScatter(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 1000, 0)
		verbstest.Pattern(p.dst.Bytes(), 5)
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{p.src.SGE(0, 10), p.src.SGE(10, 990)}}))
		verbstest.Complete(t, p.a.CQ, 1)
		p.same(t)
		verbstest.Works(t, target.Dev, "READ into several SGEs")
	}, verbstest.ReadScatter)
}

func TestImmediates(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 100, 2)
		verbstest.Pattern(p.src.Bytes(), 6)
		verbstest.Post(t, p.a.QP,
			ibverbs.SendWR{Opcode: ibverbs.WRSendWithImm, ImmData: 0x11223344, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(0, 100)}},
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWriteWithImm, ImmData: 0x55667788, SGList: []ibverbs.SGE{p.src.SGE(0, 200)}}),
		)
		verbstest.Complete(t, p.a.CQ, 2)
		for i, want := range []struct {
			op  ibverbs.WCOpcode
			imm uint32
			n   uint32
		}{{ibverbs.WCRecv, 0x11223344, 100}, {ibverbs.WCRecvRDMAWithImm, 0x55667788, 200}} {
			wc := verbstest.Complete(t, p.b.CQ, 1)[0]
			if wc.Opcode != want.op || wc.Flags&ibverbs.WCWithImm == 0 || wc.ImmData() != want.imm || wc.ByteLen != want.n {
				t.Errorf("receive %d: %+v, immediate %#x", i, wc, wc.ImmData())
			}
		}
		p.same(t)
		verbstest.Works(t, target.Dev, "immediate data")
	}, verbstest.Immediates)
}

func TestZeroLength(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 16, 1)
		verbstest.Post(t, p.a.QP,
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite}),
			ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled},
		)
		verbstest.Complete(t, p.a.CQ, 2)
		if wc := verbstest.Complete(t, p.b.CQ, 1)[0]; wc.ByteLen != 0 {
			t.Errorf("received %d bytes of nothing", wc.ByteLen)
		}
	})
}

// More work requests than cross to C at once, most of them unsignaled: each is
// done, in order.
func TestLongBatch(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const n = 300
		limits := ibverbs.QPCap{MaxSendWR: n, MaxRecvWR: n, MaxSendSGE: 1, MaxRecvSGE: 1}
		a, b := verbstest.Pair(t, target, limits, nil)
		src, dst := verbstest.MR(t, a.PD, n*8), verbstest.MR(t, b.PD, n*8)
		verbstest.Pattern(src.Bytes(), 7)
		var recvs []ibverbs.RecvWR
		var sends []ibverbs.SendWR
		for i := range n {
			recvs = append(recvs, ibverbs.RecvWR{WRID: uint64(i), SGList: []ibverbs.SGE{dst.SGE(i*8, 8)}})
			wr := ibverbs.SendWR{WRID: uint64(i), Opcode: ibverbs.WRSend, SGList: []ibverbs.SGE{src.SGE(i*8, 8)}}
			if i == n-1 {
				wr.Flags = ibverbs.SendSignaled
			}
			sends = append(sends, wr)
		}
		verbstest.Receive(t, b.QP, recvs...)
		verbstest.Post(t, a.QP, sends...)
		if wc := verbstest.Complete(t, a.CQ, 1)[0]; wc.WRID != n-1 {
			t.Errorf("the signaled work request is %d, got %+v", n-1, wc)
		}
		for i, wc := range verbstest.Complete(t, b.CQ, n) {
			if wc.WRID != uint64(i) {
				t.Fatalf("receive %d came as number %d", wc.WRID, i)
			}
		}
		if !bytes.Equal(src.Bytes(), dst.Bytes()) {
			t.Error("the data differs")
		}
	})
}

// The data path allocates nothing.
func TestNoAllocation(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 64, 0)
		send := []ibverbs.SendWR{{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{p.src.SGE(0, 64)}}}
		recv := []ibverbs.RecvWR{{SGList: []ibverbs.SGE{p.dst.SGE(0, 64)}}}
		wcs := make([]ibverbs.WC, 4)
		reap := func(cq *ibverbs.CQ) {
			for {
				n, err := cq.Spin(wcs, verbstest.Limit)
				if err != nil {
					t.Fatal(err)
				}
				if n > 0 {
					return
				}
			}
		}
		allocs := testing.AllocsPerRun(50, func() {
			if n, err := p.b.QP.PostRecv(recv); n != 1 {
				t.Fatal(err)
			}
			if n, err := p.a.QP.PostSend(send); n != 1 {
				t.Fatal(err)
			}
			reap(p.a.CQ)
			reap(p.b.CQ)
			if n, err := p.a.CQ.Poll(wcs); n != 0 || err != nil {
				t.Fatal(n, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations a round trip, want 0", allocs)
		}
	})
}
