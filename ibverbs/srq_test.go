package ibverbs_test

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// shared is a side with one SRQ and CQ, and memory for its receives, to which
// several peers are connected.
type shared struct {
	srq   *ibverbs.SRQ
	ends  []*verbstest.End // the QPs of the side
	peers []*verbstest.End
	mr    *ibverbs.MR
	size  int // of one receive
}

// newShared connects n peers to QPs that take their receives from an SRQ of wrs
// receives, of size bytes each.
func newShared(t *testing.T, target *verbstest.Target, n, wrs, size int) *shared {
	t.Helper()
	s := &shared{size: size}
	one := verbstest.NewEnd(t, target, ibverbs.QPCap{MaxSendWR: 64, MaxRecvWR: uint32(2 * wrs)})
	s.srq = verbstest.Must[*ibverbs.SRQ](t)(one.PD.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: uint32(wrs), MaxSGE: 2}))
	verbstest.Close(t, s.srq)
	s.mr = verbstest.MR(t, one.PD, wrs*size)
	for range n {
		end := &verbstest.End{PD: one.PD, CQ: one.CQ, SRQ: s.srq}
		peer := verbstest.NewEnd(t, target, verbstest.PairCap)
		verbstest.Connect(t, target, verbstest.PairCap, peer, end, nil)
		s.ends, s.peers = append(s.ends, end), append(s.peers, peer)
	}
	return s
}

// cq is where all the side's receives complete.
func (s *shared) cq() *ibverbs.CQ { return s.ends[0].CQ }

// recv is the receive number i, in two parts.
func (s *shared) recv(i int) ibverbs.RecvWR {
	return ibverbs.RecvWR{WRID: uint64(i), SGList: []ibverbs.SGE{s.mr.SGE(i*s.size, 10), s.mr.SGE(i*s.size+10, s.size-10)}}
}

func (s *shared) post(t *testing.T, from, to int) {
	t.Helper()
	var wrs []ibverbs.RecvWR
	for i := from; i < to; i++ {
		wrs = append(wrs, s.recv(i))
	}
	if n, err := s.srq.PostRecv(wrs); err != nil || n != len(wrs) {
		t.Fatalf("%d of %d accepted: %v", n, len(wrs), err)
	}
}

// send sends one message from peer number i.
func (s *shared) send(t *testing.T, i int, sge ibverbs.SGE) {
	t.Helper()
	verbstest.Post(t, s.peers[i].QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{sge}})
	verbstest.Complete(t, s.peers[i].CQ, 1)
}

// Receives serve whichever QP a message comes to, in the order in which they
// were posted, and can be posted again for ever.
func TestSRQ(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const qps, wrs, size, rounds = 3, 8, 1000, 40
		s := newShared(t, target, qps, wrs, size)
		s.post(t, 0, wrs)
		for round := range rounds {
			from := (round * 5) % qps
			src := verbstest.MR(t, s.peers[from].PD, size)
			verbstest.Pattern(src.Bytes(), round)
			s.send(t, from, src.SGE(0, size))
			wc := verbstest.Complete(t, s.cq(), 1)[0]
			if wc.WRID != uint64(round%wrs) || wc.QPN != s.ends[from].QP.QPN() || wc.ByteLen != size || wc.Opcode != ibverbs.WCRecv {
				t.Fatalf("round %d, from QP %d: %+v", round, from, wc)
			}
			i := int(wc.WRID)
			if !bytes.Equal(s.mr.Bytes()[i*size:(i+1)*size], src.Bytes()) {
				t.Fatalf("round %d: the data differs", round)
			}
			s.post(t, i, i+1)
		}
		if s.ends[0].QP.SRQ() != s.srq {
			t.Error("QP.SRQ is another")
		}
		_, err := s.ends[0].QP.PostRecv([]ibverbs.RecvWR{{}})
		refused(t, "a receive on the QP", err, syscall.EINVAL, s.srq.String())
		refused(t, "Close with QPs", s.srq.Close(), syscall.EBUSY, "3 QPs")
		verbstest.Works(t, target.Dev, "SRQs")
	})
}

// A full SRQ says so, how many it took, and takes more later. Batches may be
// longer than what crosses to C at once.
func TestSRQFull(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const wrs, size = 300, 20
		s := newShared(t, target, 1, wrs, size)
		if s.srq.MaxWR() < wrs || s.srq.MaxSGE() < 2 {
			t.Errorf("asked for %d receives of 2 SGEs, got %d of %d", wrs, s.srq.MaxWR(), s.srq.MaxSGE())
		}
		// A driver may have room for more than it says it granted.
		batch := make([]ibverbs.RecvWR, 2*wrs+64)
		for i := range batch {
			batch[i] = s.recv(i % wrs)
			batch[i].WRID = uint64(i)
		}
		n, err := s.srq.PostRecv(batch)
		if n < wrs || n == len(batch) || !errors.Is(err, ibverbs.ErrQueueFull) || !errors.Is(err, syscall.ENOMEM) {
			t.Fatalf("%d receives accepted, %v; want at least %d and ErrQueueFull", n, err, wrs)
		}
		src := verbstest.MR(t, s.peers[0].PD, size)
		s.send(t, 0, src.SGE(0, size))
		verbstest.Complete(t, s.cq(), 1)
		if n, err := s.srq.PostRecv(batch[:2]); n != 1 || !errors.Is(err, ibverbs.ErrQueueFull) {
			t.Errorf("%d receives accepted where one has become free, %v", n, err)
		}
	})
}

func TestSRQErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		for _, tc := range []struct {
			name string
			attr ibverbs.SRQInitAttr
			word string
		}{
			{"no receives", ibverbs.SRQInitAttr{MaxSGE: 1}, "receives"},
			{"too many receives", ibverbs.SRQInitAttr{MaxWR: uint32(target.Attr.MaxSRQWR) + 1, MaxSGE: 1}, "receives"},
			{"too many SGEs", ibverbs.SRQInitAttr{MaxWR: 1, MaxSGE: uint32(target.Attr.MaxSRQSGE) + 1}, "SGEs"},
		} {
			srq, err := pd.CreateSRQ(tc.attr)
			if err == nil {
				srq.Close()
			}
			refused(t, tc.name, err, syscall.EINVAL, tc.word)
		}
		srq := verbstest.Must[*ibverbs.SRQ](t)(pd.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: 16, MaxSGE: 1}))
		refused(t, "a limit above the size", srq.Arm(1<<20), syscall.EINVAL, "limit")
		one := ibverbs.RecvWR{SGList: make([]ibverbs.SGE, 1)} // siw takes none without an SGE
		n, err := srq.PostRecv([]ibverbs.RecvWR{one, {SGList: make([]ibverbs.SGE, srq.MaxSGE()+1)}, one})
		if n != 1 {
			t.Errorf("%d receives accepted, want the 1 that is right", n)
		}
		refused(t, "too many SGEs", err, syscall.EINVAL, "SGEs")

		other := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(target.Dev.Name()))
		defer other.Close()
		otherPD := verbstest.Must[*ibverbs.PD](t)(other.AllocPD())
		defer otherPD.Close()
		otherCQ := verbstest.Must[*ibverbs.CQ](t)(other.CreateCQ(4, ibverbs.CQOptions{}))
		defer otherCQ.Close()
		_, err = otherPD.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: otherCQ, RecvCQ: otherCQ, SRQ: srq})
		refused(t, "another device's SRQ", err, syscall.EINVAL, "another device")

		refused(t, "PD with an SRQ", pd.Close(), syscall.EBUSY, "1 SRQ ("+srq.String()+")")
		for range 2 {
			if err := srq.Close(); err != nil {
				t.Error(err)
			}
		}
		_, post := srq.PostRecv([]ibverbs.RecvWR{{}})
		_, query := srq.Query()
		for name, err := range map[string]error{"PostRecv": post, "Query": query, "Arm": srq.Arm(1)} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s after Close: %v, want os.ErrClosed", name, err)
			}
		}
	})
}

func TestSRQQueryAndResize(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size = 20
		s := newShared(t, target, 1, 16, size)
		s.post(t, 0, 10)
		if err := s.srq.Arm(3); err != nil {
			t.Fatal(err)
		}
		attr, err := s.srq.Query()
		if err != nil || attr.Limit != 3 || int(attr.MaxSGE) != s.srq.MaxSGE() || int(attr.MaxWR) < s.srq.MaxWR() {
			t.Errorf("%+v, %v", attr, err)
		}
		err = s.srq.Modify(ibverbs.SRQAttr{MaxWR: 2}, ibverbs.SRQAttrMaxWR)
		refused(t, "less than the limit", err, syscall.EINVAL, "")
		if err := s.srq.Arm(0); err != nil {
			t.Fatal(err)
		}
		err = s.srq.Modify(ibverbs.SRQAttr{MaxWR: uint32(target.Attr.MaxSRQWR) + 1}, ibverbs.SRQAttrMaxWR)
		refused(t, "more than the device has", err, syscall.EINVAL, "receives")
		if err := s.srq.Modify(ibverbs.SRQAttr{MaxWR: 500}, ibverbs.SRQAttrMaxWR); err != nil {
			t.Fatal(err)
		}
		if s.srq.MaxWR() < 500 {
			t.Errorf("%d receives after the resize to 500", s.srq.MaxWR())
		}
		// What was posted is still there, in order, and there is room for more.
		wrs := make([]ibverbs.RecvWR, 500-10)
		for i := range wrs {
			wrs[i] = s.recv(i % 16)
			wrs[i].WRID = uint64(10 + i)
		}
		if n, err := s.srq.PostRecv(wrs); n != len(wrs) || err != nil {
			t.Fatalf("%d of %d accepted: %v", n, len(wrs), err)
		}
		src := verbstest.MR(t, s.peers[0].PD, size)
		for i := range 20 {
			s.send(t, 0, src.SGE(0, size))
			if wc := verbstest.Complete(t, s.cq(), 1)[0]; wc.WRID != uint64(i) {
				t.Errorf("receive %d is number %d", wc.WRID, i)
			}
		}
		verbstest.Works(t, target.Dev, "querying and resizing SRQs")
	}, verbstest.SRQQuery)
}

func TestNoSRQQuery(t *testing.T) {
	verbstest.EachLacking(t, verbstest.SRQQuery, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		srq := verbstest.Must[*ibverbs.SRQ](t)(pd.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: 16, MaxSGE: 1}))
		verbstest.Close(t, srq)
		_, err := srq.Query()
		refused(t, "Query", err, errors.ErrUnsupported, "")
		refused(t, "resize", srq.Modify(ibverbs.SRQAttr{MaxWR: 32}, ibverbs.SRQAttrMaxWR), errors.ErrUnsupported, "resize")
		if srq.MaxWR() != 16 {
			t.Errorf("%d receives after a resize that was refused", srq.MaxWR())
		}
		verbstest.Refused(t, target.Dev, "querying and resizing SRQs")
	})
}
