package ibverbs_test

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// newRing gives a ring that closes at the test's end, after its QP or SRQ.
func newRing(t *testing.T, queue ibverbs.RecvQueue, opts ibverbs.RecvRingOptions) *ibverbs.RecvRing {
	t.Helper()
	ring := verbstest.Must[*ibverbs.RecvRing](t)(ibverbs.NewRecvRing(queue, opts))
	t.Cleanup(func() {
		if err := errors.Join(queue.(interface{ Close() error }).Close(), ring.Close(), ring.Close()); err != nil {
			t.Error(err)
		}
	})
	return ring
}

// ringPair connects two ends; the second one receives in a ring.
func ringPair(t *testing.T, target *verbstest.Target, opts ibverbs.RecvRingOptions) (a, b *verbstest.End, ring *ibverbs.RecvRing) {
	t.Helper()
	a, b = verbstest.NewEnd(t, target, verbstest.PairCap), verbstest.NewEnd(t, target, verbstest.PairCap)
	verbstest.Connect(t, target, verbstest.PairCap, a, b, func(e *verbstest.End) {
		if e == b {
			ring = newRing(t, e.QP, opts)
		}
	})
	return a, b, ring
}

// Messages of all lengths come as they were sent, round after round.
func TestRecvRing(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size, rounds = 500, 60
		a, b, ring := ringPair(t, target, ibverbs.RecvRingOptions{Buffers: 8, Size: size, Batch: 3})
		src := verbstest.MR(t, a.PD, size)
		for round := range rounds {
			n := (round + 1) * size / rounds
			verbstest.Pattern(src.Bytes(), round)
			verbstest.Post(t, a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(0, n)}})
			verbstest.Complete(t, a.CQ, 1)
			wc := verbstest.Complete(t, b.CQ, 1)[0]
			got, err := ring.Bytes(&wc)
			if err != nil || !bytes.Equal(got, src.Bytes()[:n]) || !ring.Owns(&wc) {
				t.Fatalf("round %d: %d bytes, %v; want %d as they were sent", round, len(got), err, n)
			}
			_, err = ring.GRH(&wc)
			refused(t, "a GRH on RC", err, syscall.EINVAL, "no GRH")
			if err := ring.Repost(&wc); err != nil {
				t.Fatal(err)
			}
		}
		if err := ring.Flush(); err != nil {
			t.Error(err)
		}
	})
}

// An SRQ's ring serves all its QPs.
func TestRecvRingSRQ(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size, rounds, qps = 200, 24, 3
		one := verbstest.NewEnd(t, target, verbstest.PairCap)
		one.SRQ = verbstest.Must[*ibverbs.SRQ](t)(one.PD.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: 16, MaxSGE: 1}))
		ring := newRing(t, one.SRQ, ibverbs.RecvRingOptions{Buffers: 8, Size: size})
		refused(t, "Close with an open SRQ", ring.Close(), syscall.EBUSY, one.SRQ.String())
		var ends, peers []*verbstest.End
		for range qps {
			end, peer := *one, verbstest.NewEnd(t, target, verbstest.PairCap)
			verbstest.Connect(t, target, verbstest.PairCap, peer, &end, nil)
			ends, peers = append(ends, &end), append(peers, peer)
		}
		for round := range rounds {
			from := peers[round%qps]
			src := verbstest.MR(t, from.PD, size)
			verbstest.Pattern(src.Bytes(), round)
			verbstest.Post(t, from.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(0, size)}})
			verbstest.Complete(t, from.CQ, 1)
			wc := verbstest.Complete(t, one.CQ, 1)[0]
			got, err := ring.Bytes(&wc)
			if err != nil || wc.QPN != ends[round%qps].QP.QPN() || !bytes.Equal(got, src.Bytes()) {
				t.Fatalf("round %d: %v, from QP %d", round, err, wc.QPN)
			}
			if err := ring.Repost(&wc); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Datagrams come with their GRH, which leads back to their sender.
func TestRecvRingUD(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		a, b := verbstest.UD(t, target, verbstest.PairCap), verbstest.UD(t, target, verbstest.PairCap)
		rings := map[*verbstest.End]*ibverbs.RecvRing{
			a: newRing(t, a.QP, ibverbs.RecvRingOptions{Buffers: 4, Size: 1000}),
			b: newRing(t, b.QP, ibverbs.RecvRingOptions{Buffers: 4, Size: 1000}),
		}
		ah := verbstest.AH(t, a.PD, verbstest.AHAttr(t, target, target.Addr))
		payload := make([]byte, 1000)
		for round := range 20 {
			verbstest.Pattern(payload, round)
			text := payload[:1+round*50]
			mr := verbstest.MR(t, a.PD, len(text))
			copy(mr.Bytes(), text)
			verbstest.Post(t, a.QP, ibverbs.SendWR{
				Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{mr.SGE(0, len(text))},
				AH: ah, RemoteQPN: b.QP.QPN(), RemoteQKey: verbstest.QKey,
			})
			verbstest.Complete(t, a.CQ, 1)
			wc := ringMessage(t, rings[b], b, text)
			grh := verbstest.Must[[]byte](t)(rings[b].GRH(&wc))
			back := verbstest.Must[*ibverbs.AH](t)(b.PD.CreateAHFromWC(target.Port, &wc, grh))
			verbstest.Post(t, b.QP, ibverbs.SendWR{
				Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, Inline: text[:1],
				AH: back, RemoteQPN: wc.SrcQP, RemoteQKey: verbstest.QKey,
			})
			verbstest.Complete(t, b.CQ, 1)
			answer := ringMessage(t, rings[a], a, text[:1])
			if err := errors.Join(back.Close(), rings[b].Repost(&wc), rings[a].Repost(&answer)); err != nil {
				t.Fatal(err)
			}
		}
	}, verbstest.Datagrams)
}

// ringMessage sees that the next message in a ring is the one that was sent.
func ringMessage(t *testing.T, ring *ibverbs.RecvRing, e *verbstest.End, want []byte) ibverbs.WC {
	t.Helper()
	wc := verbstest.Complete(t, e.CQ, 1)[0]
	if got, err := ring.Bytes(&wc); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v; want %d as they were sent", len(got), err, len(want))
	}
	return wc
}

// Whatever is done wrong gives an error, and corrupts nothing.
func TestRecvRingMisuse(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const buffers = 4
		a, b, ring := ringPair(t, target, ibverbs.RecvRingOptions{Buffers: buffers, Size: 64, Batch: 1})
		_, _, other := ringPair(t, target, ibverbs.RecvRingOptions{Buffers: buffers, Size: 64, Batch: 1})
		send := func() ibverbs.WC {
			t.Helper()
			verbstest.Post(t, a.QP, ibverbs.SendWR{WRID: 5, Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, Inline: []byte("x")})
			sent := verbstest.Complete(t, a.CQ, 1)[0]
			refused(t, "a send's completion", ring.Repost(&sent), syscall.EINVAL, "not one of this ring's")
			return verbstest.Complete(t, b.CQ, 1)[0]
		}
		wc := send()
		refused(t, "another ring", other.Repost(&wc), syscall.EINVAL, "not one of this ring's")
		if other.Owns(&wc) {
			t.Error("another ring says that it owns the completion")
		}
		if err := ring.Repost(&wc); err != nil {
			t.Fatal(err)
		}
		refused(t, "reposting again", ring.Repost(&wc), syscall.EINVAL, "reposted")
		for range buffers { // all buffers have been used anew
			again := send()
			if err := ring.Repost(&again); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, "reposting much later", ring.Repost(&wc), syscall.EINVAL, "reposted")
		_, err := ring.Bytes(&wc)
		refused(t, "bytes of a message that has gone", err, syscall.EINVAL, "reposted")
		refused(t, "Close with an open QP", ring.Close(), syscall.EBUSY, b.QP.String())

		// A receive that fails has no bytes.
		if err := b.QP.ToError(); err != nil {
			t.Fatal(err)
		}
		for _, wc := range verbstest.Poll(t, b.CQ, buffers) {
			if _, err := ring.Bytes(&wc); !errors.Is(err, &ibverbs.WCError{Status: ibverbs.WCStatusWRFlushErr}) || !ring.Owns(&wc) {
				t.Errorf("a flushed receive: %v", err)
			}
		}
	})
}

func TestRecvRingErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		e := verbstest.NewEnd(t, target, verbstest.PairCap)
		e.QP = verbstest.Must[*ibverbs.QP](t)(e.PD.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: e.CQ, RecvCQ: e.CQ, Cap: verbstest.PairCap}))
		verbstest.Close(t, e.QP)
		room := int(e.QP.Cap().MaxRecvWR)
		for _, tc := range []struct {
			opts ibverbs.RecvRingOptions
			word string
		}{
			{ibverbs.RecvRingOptions{Size: 64}, "0 buffers"},
			{ibverbs.RecvRingOptions{Buffers: room + 1, Size: 64}, "buffers"},
			{ibverbs.RecvRingOptions{Buffers: 4}, "0 bytes"},
			{ibverbs.RecvRingOptions{Buffers: 4, Size: 1<<30 + 1}, "bytes"},
			{ibverbs.RecvRingOptions{Buffers: 4, Size: 64, Batch: 5}, "batches of 5"},
			{ibverbs.RecvRingOptions{Buffers: 4, Size: 64, Batch: -1}, "batches of -1"},
		} {
			_, err := ibverbs.NewRecvRing(e.QP, tc.opts)
			refused(t, tc.word, err, syscall.EINVAL, tc.word)
		}
		srq := verbstest.Must[*ibverbs.SRQ](t)(e.PD.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: 16, MaxSGE: 1}))
		verbstest.Close(t, srq)
		onSRQ := verbstest.Must[*ibverbs.QP](t)(e.PD.CreateQP(ibverbs.QPInitAttr{
			Type: ibverbs.QPTypeRC, SendCQ: e.CQ, RecvCQ: e.CQ, SRQ: srq, Cap: ibverbs.QPCap{MaxSendWR: 4, MaxSendSGE: 1},
		}))
		verbstest.Close(t, onSRQ)
		_, err := ibverbs.NewRecvRing(onSRQ, ibverbs.RecvRingOptions{Buffers: 4, Size: 64})
		refused(t, "a QP with an SRQ", err, syscall.EINVAL, "SRQ")

		// A ring that cannot post leaves nothing behind; after Close, all says so.
		if err := e.QP.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := ibverbs.NewRecvRing(e.QP, ibverbs.RecvRingOptions{Buffers: 4, Size: 64}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("on a closed QP: %v, want os.ErrClosed", err)
		}
		ring := verbstest.Must[*ibverbs.RecvRing](t)(ibverbs.NewRecvRing(srq, ibverbs.RecvRingOptions{Buffers: 4, Size: 64, GRH: true}))
		if n := ring.MR().Len(); n < 4*(64+ibverbs.GRHSize) {
			t.Errorf("%d bytes for 4 messages of 64 with their GRHs", n)
		}
		if err := errors.Join(onSRQ.Close(), srq.Close(), ring.Close(), ring.Close()); err != nil {
			t.Fatal(err)
		}
		wc := ibverbs.WC{Opcode: ibverbs.WCRecv}
		_, bytesErr := ring.Bytes(&wc)
		_, grhErr := ring.GRH(&wc)
		for name, err := range map[string]error{"Bytes": bytesErr, "GRH": grhErr, "Repost": ring.Repost(&wc), "Flush": ring.Flush()} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s after Close: %v, want os.ErrClosed", name, err)
			}
		}
	})
}

// A write with immediate data takes a buffer, and puts nothing there.
func TestRecvRingWriteImm(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		a, b, ring := ringPair(t, target, ibverbs.RecvRingOptions{Buffers: 2, Size: 64, Batch: 1})
		src, dst := verbstest.MR(t, a.PD, 4096), verbstest.MR(t, b.PD, 4096)
		for range 5 {
			verbstest.Post(t, a.QP, ibverbs.SendWR{
				Opcode: ibverbs.WRRDMAWriteWithImm, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(0, 4096)},
				RemoteAddr: dst.Addr(), RKey: dst.RKey(),
			})
			verbstest.Complete(t, a.CQ, 1)
			wc := ringMessage(t, ring, b, nil)
			if wc.ByteLen != 4096 {
				t.Errorf("%+v, want 4096 bytes written", wc)
			}
			if err := ring.Repost(&wc); err != nil {
				t.Fatal(err)
			}
		}
	}, verbstest.Immediates)
}

// Several goroutines share a ring, and none of its buffers is lost or given
// out twice.
func TestRecvRingConcurrent(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const messages, workers = 200, 4
		a, b, ring := ringPair(t, target, ibverbs.RecvRingOptions{Buffers: 16, Size: 64, Batch: 1})
		wcs := make(chan ibverbs.WC)
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for wc := range wcs {
					got, err := ring.Bytes(&wc)
					if err == nil && (len(got) != 1 || got[0] != 'x') {
						err = errors.New("the data differs")
					}
					if err = errors.Join(err, ring.Repost(&wc)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range messages {
			verbstest.Post(t, a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, Inline: []byte("x")})
			verbstest.Complete(t, a.CQ, 1)
			wcs <- verbstest.Complete(t, b.CQ, 1)[0]
		}
		close(wcs)
		wg.Wait()
	})
}

func TestRecvRingNoAllocation(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		a, b, ring := ringPair(t, target, ibverbs.RecvRingOptions{Buffers: 16, Size: 64})
		wrs := []ibverbs.SendWR{{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, Inline: []byte("x")}}
		wcs := make([]ibverbs.WC, 1)
		allocs := testing.AllocsPerRun(50, func() {
			if n, err := a.QP.PostSend(wrs); n != 1 {
				t.Fatal(err)
			}
			for _, cq := range []*ibverbs.CQ{a.CQ, b.CQ} {
				if n, err := cq.Spin(wcs, verbstest.Limit); n != 1 {
					t.Fatal(n, err)
				}
			}
			if got, err := ring.Bytes(&wcs[0]); err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			if err := ring.Repost(&wcs[0]); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations a message, want 0", allocs)
		}
	})
}
