package verbstest

import (
	"context"
	"net/netip"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/rdmacm"
)

// End is one side of a connection.
type End struct {
	PD  *ibverbs.PD
	CQ  *ibverbs.CQ // both queues'; it has a completion channel
	SRQ *ibverbs.SRQ
	QP  *ibverbs.QP
}

// PairCap is the size of a pair's queues where a test does not care.
var PairCap = ibverbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInlineData: 64}

// Pair gives two RC QPs of one device, connected to each other. prepare, where
// it is not nil, is called for each end before it can receive: post receives
// there. The first end may send at once, the second one when it has received
// something (which is iWARP's rule).
func Pair(t testing.TB, target *Target, cap ibverbs.QPCap, prepare func(*End)) (first, second *End) {
	t.Helper()
	first, second = NewEnd(t, target, cap), NewEnd(t, target, cap)
	Connect(t, target, cap, first, second, prepare)
	return first, second
}

// PairWith is Pair for devices that have StateMachine, with QPs that have more
// than Cap: their Type is RC, and the CQs are filled in.
func PairWith(t testing.TB, target *Target, init ibverbs.QPInitAttr, prepare func(*End)) (first, second *End) {
	t.Helper()
	first, second = NewEnd(t, target, init.Cap), NewEnd(t, target, init.Cap)
	connectByHand(t, target, init, first, second, prepare)
	return first, second
}

// NewEnd gives a side of a connection that has no QP yet. Its CQ may be
// replaced, and an SRQ be put in, before Connect.
func NewEnd(t testing.TB, target *Target, cap ibverbs.QPCap) *End {
	t.Helper()
	return &End{PD: PD(t, target.Dev), CQ: CQ(t, target.Dev, int(cap.MaxSendWR+cap.MaxRecvWR))}
}

// Connect is Pair for ends that the test has made.
func Connect(t testing.TB, target *Target, cap ibverbs.QPCap, first, second *End, prepare func(*End)) {
	t.Helper()
	if StateMachine.has(target) {
		connectByHand(t, target, ibverbs.QPInitAttr{Cap: cap}, first, second, prepare)
	} else {
		connectByCM(t, target, cap, first, second, prepare)
	}
}

func connectByHand(t testing.TB, target *Target, init ibverbs.QPInitAttr, a, b *End, prepare func(*End)) {
	t.Helper()
	for _, e := range []*End{a, b} {
		init.Type, init.SendCQ, init.RecvCQ, init.SRQ = ibverbs.QPTypeRC, e.CQ, e.CQ, e.SRQ
		e.QP = Must[*ibverbs.QP](t)(e.PD.CreateQP(init))
		Close(t, e.QP)
		ToInit(t, target, e.QP)
		if prepare != nil {
			prepare(e)
		}
	}
	ToRTS(t, target, a.QP, b.QP.QPN())
	ToRTS(t, target, b.QP, a.QP.QPN())
}

// ToInit moves an RC QP to INIT with all access that the device has.
func ToInit(t testing.TB, target *Target, qp *ibverbs.QP) {
	t.Helper()
	access := AllAccess
	if Atomics.has(target) {
		access |= ibverbs.AccessRemoteAtomic
	}
	if Flush.has(target) {
		access |= ibverbs.AccessFlushGlobal
	}
	if err := qp.ToInit(ibverbs.QPAttr{Port: uint8(target.Port), AccessFlags: access}); err != nil {
		t.Fatal(err)
	}
}

// RTRAttr connects a QP of target to another one of it.
func RTRAttr(t testing.TB, target *Target, peer uint32) ibverbs.QPAttr {
	t.Helper()
	table := Must[[]ibverbs.GIDEntry](t)(target.Dev.GIDTable())
	gid, err := ibverbs.ChooseGID(table, target.Port, ibverbs.GIDTypeRoCEv2, target.Addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	port := Must[ibverbs.PortAttr](t)(target.Dev.QueryPort(target.Port))
	return ibverbs.QPAttr{
		PathMTU:         port.ActiveMTU,
		DestQPN:         peer,
		MaxDestRDAtomic: 16,
		MinRNRTimer:     1,
		AH: ibverbs.AHAttr{
			IsGlobal: true, DGID: gid.GID, SGIDIndex: uint8(gid.Index), HopLimit: 64, Port: uint8(target.Port),
		},
	}
}

// RTSAttr is for a QP that waits long, and tries again for ever where no
// receive is posted.
var RTSAttr = ibverbs.QPAttr{Timeout: 18, RetryCnt: 7, RNRRetry: 7, MaxQPRDAtomic: 16}

// ToRTS connects a QP in state INIT to the peer's.
func ToRTS(t testing.TB, target *Target, qp *ibverbs.QP, peer uint32) {
	t.Helper()
	if err := qp.ToRTR(RTRAttr(t, target, peer)); err != nil {
		t.Fatal(err)
	}
	if err := qp.ToRTS(RTSAttr); err != nil {
		t.Fatal(err)
	}
}

// connectByCM connects two ends over rdma_cm, as iWARP must.
func connectByCM(t testing.TB, target *Target, cap ibverbs.QPCap, first, second *End, prepare func(*End)) {
	t.Helper()
	ctx := Context(t)
	config := func(e *End) rdmacm.Config {
		return rdmacm.Config{
			PD: e.PD, SendCQ: e.CQ, RecvCQ: e.CQ, SRQ: e.SRQ,
			SendDepth: int(cap.MaxSendWR), RecvDepth: int(cap.MaxRecvWR),
			SendSGE: int(cap.MaxSendSGE), RecvSGE: int(cap.MaxRecvSGE), Inline: int(cap.MaxInlineData),
			Prepare: func(c *rdmacm.Conn) error {
				e.QP = c.QP()
				if prepare != nil {
					prepare(e)
				}
				return nil
			},
		}
	}
	lc := rdmacm.ListenConfig{Config: config(second)}
	l, err := lc.Listen(ctx, netip.AddrPortFrom(target.Addr, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		c, err := l.Accept(ctx)
		if err == nil {
			Close(t, c)
		}
		accepted <- err
	}()
	if err := dial(ctx, t, l, config(first)); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
}

func dial(ctx context.Context, t testing.TB, l *rdmacm.Listener, config rdmacm.Config) error {
	d := rdmacm.Dialer{Config: config}
	c, err := d.DialContext(ctx, l.Addr().String())
	if err == nil {
		Close(t, c)
	}
	return err
}
