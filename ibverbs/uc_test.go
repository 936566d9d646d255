package ibverbs_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// UC carries messages of any length, and writes, and nothing that needs an
// answer.
func TestUC(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size = 10_000
		a, b := verbstest.UCPair(t, target, verbstest.PairCap)
		src, dst := verbstest.MR(t, a.PD, size), verbstest.MR(t, b.PD, size)
		for i, tc := range []struct {
			op      ibverbs.WROpcode
			receive ibverbs.WCOpcode
			imm     bool
		}{
			{ibverbs.WRSend, ibverbs.WCRecv, false},
			{ibverbs.WRSendWithImm, ibverbs.WCRecv, true},
			{ibverbs.WRRDMAWriteWithImm, ibverbs.WCRecvRDMAWithImm, true},
		} {
			verbstest.Pattern(src.Bytes(), i)
			verbstest.Receive(t, b.QP, ibverbs.RecvWR{WRID: uint64(i), SGList: []ibverbs.SGE{dst.SGE(0, size)}})
			verbstest.Post(t, a.QP, ibverbs.SendWR{
				Opcode: tc.op, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(0, size)}, ImmData: 0xabcdef00 + uint32(i),
				RemoteAddr: dst.Addr(), RKey: dst.RKey(),
			})
			verbstest.Complete(t, a.CQ, 1)
			wc := verbstest.Complete(t, b.CQ, 1)[0]
			if wc.Opcode != tc.receive || wc.WRID != uint64(i) || wc.ByteLen != size || wc.Flags&ibverbs.WCWithImm != 0 != tc.imm {
				t.Errorf("%v: %+v", tc.op, wc)
			}
			if tc.imm && wc.ImmData() != 0xabcdef00+uint32(i) {
				t.Errorf("%v: immediate %#x", tc.op, wc.ImmData())
			}
			if !bytes.Equal(src.Bytes(), dst.Bytes()) {
				t.Errorf("%v: the data differs", tc.op)
			}
		}
		// A WRITE is placed when a message that was sent after it has come.
		verbstest.Pattern(src.Bytes(), 9)
		verbstest.Receive(t, b.QP, ibverbs.RecvWR{})
		verbstest.Post(t, a.QP,
			ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{src.SGE(0, size)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()},
			ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled})
		verbstest.Complete(t, a.CQ, 1)
		verbstest.Complete(t, b.CQ, 1)
		if !bytes.Equal(src.Bytes(), dst.Bytes()) {
			t.Error("WRITE: the data differs")
		}
		for _, op := range []ibverbs.WROpcode{ibverbs.WRRDMARead, ibverbs.WRAtomicFetchAdd, ibverbs.WRAtomicCmpAndSwp} {
			_, err := a.QP.PostSend([]ibverbs.SendWR{{Opcode: op, SGList: []ibverbs.SGE{src.SGE(0, 8)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()}})
			refused(t, op.String(), err, syscall.EINVAL, "UC QPs have no")
		}
		verbstest.Works(t, target.Dev, "UC QPs")
	}, verbstest.Datagrams)
}

// No software driver sends raw packets.
func TestRawPacket(t *testing.T) {
	verbstest.EachLacking(t, verbstest.RawPackets, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		_, err := pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRawPacket, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap})
		refused(t, "raw packet QP", err, errors.ErrUnsupported, "RAW_PACKET")
		verbstest.Refused(t, target.Dev, "raw packet QPs")
	})
}
