package ibverbs_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// rcOps are the opcodes of RC QPs that all kernels' rxe has.
const rcOps = ibverbs.SendOpRDMAWrite | ibverbs.SendOpRDMAWriteWithImm | ibverbs.SendOpSend | ibverbs.SendOpSendWithImm |
	ibverbs.SendOpRDMARead | ibverbs.SendOpAtomicCmpAndSwp | ibverbs.SendOpAtomicFetchAdd | ibverbs.SendOpLocalInv |
	ibverbs.SendOpBindMW | ibverbs.SendOpSendWithInv

var wideCap = ibverbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 128}

// eachWay runs fn with a pair whose QPs post through ibv_post_send, and with
// one whose QPs post through ibv_wr_*. Each side has a region of size bytes.
func eachWay(t *testing.T, size int, fn func(*testing.T, *pipe)) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for name, ops := range map[string]ibverbs.SendOps{"ibv_post_send": 0, "ibv_wr": rcOps} {
			t.Run(name, func(t *testing.T) {
				p := &pipe{}
				p.a, p.b = verbstest.PairWith(t, target, ibverbs.QPInitAttr{Cap: wideCap, SendOps: ops}, nil)
				if p.a.QP.SendOps() != ops {
					t.Fatalf("SendOps %v, want %v", p.a.QP.SendOps(), ops)
				}
				p.src, p.dst = atomicMR(t, p.a.PD, size), atomicMR(t, p.b.PD, size)
				fn(t, p)
			})
		}
	}, verbstest.SendOps)
}

// atomicMR is memory that takes everything.
func atomicMR(t *testing.T, pd *ibverbs.PD, size int) *ibverbs.MR {
	t.Helper()
	mr := verbstest.Must[*ibverbs.MR](t)(pd.AllocMR(size, verbstest.AllAccess|ibverbs.AccessRemoteAtomic, ibverbs.BufferOptions{}))
	verbstest.Close(t, mr)
	return mr
}

// pieces are SGEs of unequal length from off on, and how long they are in all.
func pieces(mr *ibverbs.MR, off int) ([]ibverbs.SGE, int) {
	return []ibverbs.SGE{mr.SGE(off, 100), mr.SGE(off+100, 10), mr.SGE(off+110, 1)}, 111
}

// Lists of SGEs of several lengths, alone and among others, arrive whole
// (rxe's ibv_wr_set_sge_list counts the first one's length several times).
func TestSGELists(t *testing.T) {
	eachWay(t, 4*111, func(t *testing.T, p *pipe) {
		verbstest.Pattern(p.src.Bytes(), 1)
		for i := range 3 {
			into, _ := pieces(p.dst, i*111)
			verbstest.Receive(t, p.b.QP, ibverbs.RecvWR{WRID: uint64(i), SGList: into})
		}
		var list [4][]ibverbs.SGE
		for i := range list {
			list[i], _ = pieces(p.src, i*111)
		}
		write := p.remote(ibverbs.SendWR{WRID: 13, Opcode: ibverbs.WRRDMAWrite, SGList: list[3]})
		write.RemoteAddr += 3 * 111
		verbstest.Post(t, p.a.QP,
			ibverbs.SendWR{WRID: 10, Opcode: ibverbs.WRSend, SGList: list[0]},
			ibverbs.SendWR{WRID: 11, Opcode: ibverbs.WRSend, SGList: []ibverbs.SGE{p.src.SGE(111, 111)}},
			ibverbs.SendWR{WRID: 12, Opcode: ibverbs.WRSend, SGList: list[2], Flags: ibverbs.SendSignaled},
			write,
		)
		for i, wc := range verbstest.Complete(t, p.a.CQ, 2) {
			if wc.WRID != 12+uint64(i) {
				t.Errorf("completion %d: %+v", i, wc)
			}
		}
		for i, wc := range verbstest.Complete(t, p.b.CQ, 3) {
			if wc.WRID != uint64(i) || wc.ByteLen != 111 {
				t.Errorf("receive %d: %+v", i, wc)
			}
		}
		p.placed(t)
		p.same(t)
		// A READ into a list.
		clear(p.src.Bytes())
		verbstest.Post(t, p.a.QP,
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMARead, SGList: list[0]}),
			readAt(p, 111, 3*111))
		verbstest.Complete(t, p.a.CQ, 2)
		p.same(t)
		verbstest.Works(t, p.a.PD.Device(), "posting by ibv_wr_*")
	})
}

func readAt(p *pipe, off, length int) ibverbs.SendWR {
	wr := p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{p.src.SGE(off, length)}})
	wr.RemoteAddr += uint64(off)
	return wr
}

// Inline data: from a slice, from one SGE, from several, nothing at all, as
// much as there may be.
func TestInlineLists(t *testing.T) {
	eachWay(t, 4*128, func(t *testing.T, p *pipe) {
		room := int(p.a.QP.Cap().MaxInlineData)
		if room < 128 {
			t.Fatalf("asked for 128 bytes inline, got %d", room)
		}
		verbstest.Pattern(p.src.Bytes(), 2)
		want := bytes.Clone(p.src.Bytes())
		lengths := []uint32{128, 111, 20, 0}
		for i := range lengths {
			verbstest.Receive(t, p.b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{p.dst.SGE(i*128, 128)}})
		}
		list, _ := pieces(p.src, 128)
		for i := range list {
			list[i].LKey = 0xdead // not looked at
		}
		slice := bytes.Clone(want[2*128 : 2*128+20])
		verbstest.Post(t, p.a.QP,
			ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendInline, SGList: []ibverbs.SGE{p.src.SGE(0, 128)}},
			ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendInline, SGList: list},
			ibverbs.SendWR{Opcode: ibverbs.WRSend, Inline: slice},
			ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendInline | ibverbs.SendSignaled},
		)
		clear(slice) // copied: they are the caller's again
		clear(p.src.Bytes())
		verbstest.Complete(t, p.a.CQ, 1)
		for i, wc := range verbstest.Complete(t, p.b.CQ, len(lengths)) {
			n := int(wc.ByteLen)
			if wc.ByteLen != lengths[i] || !bytes.Equal(p.dst.Bytes()[i*128:i*128+n], want[i*128:i*128+n]) {
				t.Errorf("message %d: %d bytes, want %d, or they differ", i, n, lengths[i])
			}
		}
		long := p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, Flags: ibverbs.SendInline, SGList: []ibverbs.SGE{p.src.SGE(0, room), p.src.SGE(0, 1)}})
		_, err := p.a.QP.PostSend([]ibverbs.SendWR{long})
		refused(t, "a byte too much inline", err, syscall.EINVAL, "MaxInlineData")
		verbstest.Works(t, p.a.PD.Device(), "posting by ibv_wr_*")
	})
}

// Immediate data, and messages of no length.
func TestImmediateAndEmpty(t *testing.T) {
	eachWay(t, 100, func(t *testing.T, p *pipe) {
		verbstest.Pattern(p.src.Bytes(), 3)
		for range 4 {
			verbstest.Receive(t, p.b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{p.dst.SGE(0, 100)}})
		}
		all := []ibverbs.SGE{p.src.SGE(0, 100)}
		verbstest.Post(t, p.a.QP,
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRSendWithImm, ImmData: 0x11223344, SGList: all}),
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWriteWithImm, ImmData: 0x55667788, SGList: all}),
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRSend}),
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite}),
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWriteWithImm, ImmData: 0x99aabbcc}),
		)
		verbstest.Complete(t, p.a.CQ, 5)
		for i, want := range []ibverbs.WC{
			{Opcode: ibverbs.WCRecv, Flags: ibverbs.WCWithImm, ByteLen: 100},
			{Opcode: ibverbs.WCRecvRDMAWithImm, Flags: ibverbs.WCWithImm, ByteLen: 100},
			{Opcode: ibverbs.WCRecv},
			{Opcode: ibverbs.WCRecvRDMAWithImm, Flags: ibverbs.WCWithImm},
		} {
			wc := verbstest.Complete(t, p.b.CQ, 1)[0]
			if wc.Opcode != want.Opcode || wc.Flags&ibverbs.WCWithImm != want.Flags || wc.ByteLen != want.ByteLen {
				t.Errorf("receive %d: %+v, want %+v", i, wc, want)
			}
			if imm := []uint32{0x11223344, 0x55667788, 0, 0x99aabbcc}[i]; imm != 0 && wc.ImmData() != imm {
				t.Errorf("receive %d: immediate %#x, want %#x", i, wc.ImmData(), imm)
			}
		}
		p.same(t)
	})
}

// A batch of ibv_wr_* that the queue has no room for is refused whole; one that
// it has room for goes.
func TestSendOpsQueueFull(t *testing.T) {
	eachWay(t, 8, func(t *testing.T, p *pipe) {
		send := p.remote(ibverbs.SendWR{Opcode: ibverbs.WRSend, SGList: []ibverbs.SGE{p.src.SGE(0, 8)}})
		posted := 0 // no receive is there: they wait
		for {
			n, err := p.a.QP.PostSend([]ibverbs.SendWR{send, send, send, send, send})
			posted += n
			if err == nil {
				continue
			}
			if !errors.Is(err, ibverbs.ErrQueueFull) || !errors.Is(err, syscall.ENOMEM) {
				t.Fatal(err)
			}
			if n != 0 && p.a.QP.SendOps() != 0 {
				t.Errorf("%d of a batch accepted", n)
			}
			break
		}
		for range posted {
			verbstest.Receive(t, p.b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{p.dst.SGE(0, 8)}})
			verbstest.Complete(t, p.b.CQ, 1)
		}
		verbstest.Complete(t, p.a.CQ, posted)
		verbstest.Receive(t, p.b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{p.dst.SGE(0, 8)}})
		verbstest.Post(t, p.a.QP, send)
		verbstest.Complete(t, p.a.CQ, 1)
	})
}

// What a QP was not created for leads nowhere in C: it is refused before.
func TestSendOpsNotAsked(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		a, _ := verbstest.PairWith(t, target, ibverbs.QPInitAttr{Cap: wideCap, SendOps: ibverbs.SendOpSend | ibverbs.SendOpRDMARead}, nil)
		for op := ibverbs.WRRDMAWrite; op <= ibverbs.WRTSO; op++ {
			if op == ibverbs.WRSend || op == ibverbs.WRRDMARead {
				continue
			}
			n, err := a.QP.PostSend([]ibverbs.SendWR{{Opcode: op}})
			if n != 0 {
				t.Errorf("%v was accepted", op)
			}
			refused(t, op.String(), err, syscall.EINVAL, op.String())
		}
	}, verbstest.SendOps)
}

// Where there is no ibv_wr_*, that is what creation says.
func TestNoSendOps(t *testing.T) {
	verbstest.EachLacking(t, verbstest.SendOps, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		_, err := pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap, SendOps: ibverbs.SendOpSend})
		refused(t, "SendOps", err, errors.ErrUnsupported, "SendOps SEND")
		verbstest.Refused(t, target.Dev, "posting by ibv_wr_*")
	})
}

// Posting through ibv_wr_* allocates nothing either, lists included.
func TestSendOpsNoAllocation(t *testing.T) {
	eachWay(t, 111, func(t *testing.T, p *pipe) {
		list, _ := pieces(p.src, 0)
		batch := []ibverbs.SendWR{
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: list}),
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: list[:1]}),
			p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, Inline: []byte("inline")}),
		}
		wcs := make([]ibverbs.WC, 8)
		allocs := testing.AllocsPerRun(20, func() {
			if n, err := p.a.QP.PostSend(batch); n != len(batch) {
				t.Fatal(err)
			}
			for left := len(batch); left > 0; {
				n, err := p.a.CQ.Spin(wcs, verbstest.Limit)
				if err != nil || wcs[0].Status != ibverbs.WCStatusSuccess {
					t.Fatal(wcs[0], err)
				}
				left -= n
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations a batch, want 0", allocs)
		}
	})
}
