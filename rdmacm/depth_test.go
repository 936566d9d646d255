package rdmacm_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// Where no READ may be in flight, none can be posted: it would wait for ever.
func TestReadDepthZero(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		none := rdmacm.Config{InitiatorDepth: -1, Prepare: prepare}
		l := listen(t, target, rdmacm.ListenConfig{Config: none})
		client, server := connect(t, l, rdmacm.Dialer{Config: none})
		mustEcho(t, client, server)
		for name, c := range map[string]*rdmacm.Conn{"dialing": client, "accepting": server} {
			e := c.UserData().(*end)
			_, err := c.QP().PostSend([]ibverbs.SendWR{{
				Opcode: ibverbs.WRRDMARead, SGList: []ibverbs.SGE{e.send.SGE(0, 8)}, RemoteAddr: e.recv.Addr(), RKey: e.recv.RKey(),
			}})
			if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "InitiatorDepth") {
				t.Errorf("a READ on the %s side: %v", name, err)
			}
		}
	})
}

// What is posted while the peer ends the connection, and after it has ended,
// comes back, each work request once.
func TestNothingLost(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		cfg := rdmacm.Config{RecvDepth: 128, SendDepth: 128, Prepare: prepare}
		l := listen(t, target, rdmacm.ListenConfig{Config: cfg})
		client, server := connect(t, l, rdmacm.Dialer{Config: cfg})
		mustEcho(t, client, server)
		qp, e := client.QP(), client.UserData().(*end)

		closed := make(chan error, 1)
		go func() { closed <- server.Close() }()
		recvs := 1 // prepare's, or echo's
		post := func(n int) {
			t.Helper()
			for range n {
				if _, err := qp.PostRecv([]ibverbs.RecvWR{{WRID: uint64(recvs), SGList: []ibverbs.SGE{e.recv.SGE(0, 8)}}}); err != nil {
					t.Fatal(err)
				}
				recvs++
			}
		}
		post(40)
		ended(t, client)
		post(20)
		const sends = 20
		for i := range sends {
			wr := ibverbs.SendWR{WRID: uint64(i), Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{e.send.SGE(0, 8)}}
			if _, err := qp.PostSend([]ibverbs.SendWR{wr}); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		allFlushed(t, client.RecvCQ(), recvs)
		allFlushed(t, client.SendCQ(), sends)
	})
}

func allFlushed(t *testing.T, cq *ibverbs.CQ, n int) {
	t.Helper()
	seen := make(map[uint64]bool)
	for _, wc := range verbstest.Poll(t, cq, n) {
		if wc.Status != ibverbs.WCStatusWRFlushErr || seen[wc.WRID] || wc.WRID >= uint64(n) {
			t.Errorf("%+v; want each of %d work requests once, flushed", wc, n)
		}
		seen[wc.WRID] = true
	}
	if extra, err := cq.Poll(make([]ibverbs.WC, 1)); extra != 0 || err != nil {
		t.Errorf("%d completions more, %v", extra, err)
	}
}
