package verbstest

import (
	"net/netip"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
)

// QKey is the Q_Key of tests' UD QPs.
const QKey = 0x11223344

// GID gives the RoCE v2 GID of an address of target.
func GID(t testing.TB, target *Target, addr netip.Addr) ibverbs.GIDEntry {
	t.Helper()
	table := Must[[]ibverbs.GIDEntry](t)(target.Dev.GIDTable())
	return Must[ibverbs.GIDEntry](t)(ibverbs.ChooseGID(table, target.Port, ibverbs.GIDTypeRoCEv2, addr, 0))
}

// AHAttr is the path from an address of target to itself.
func AHAttr(t testing.TB, target *Target, addr netip.Addr) ibverbs.AHAttr {
	t.Helper()
	gid := GID(t, target, addr)
	return ibverbs.AHAttr{
		DGID: gid.GID, SGIDIndex: uint8(gid.Index), HopLimit: 64, IsGlobal: true, Port: uint8(target.Port),
	}
}

// AH gives an address handle that the test's end closes.
func AH(t testing.TB, pd *ibverbs.PD, attr ibverbs.AHAttr) *ibverbs.AH {
	t.Helper()
	ah := Must[*ibverbs.AH](t)(pd.CreateAH(attr))
	Close(t, ah)
	return ah
}

// UD gives a UD QP in state RTS with QKey, on a CQ and a PD of its own.
func UD(t testing.TB, target *Target, cap ibverbs.QPCap) *End {
	t.Helper()
	e := NewEnd(t, target, cap)
	e.CreateUD(t, target, ibverbs.QPInitAttr{Cap: cap})
	return e
}

// CreateUD gives an end its UD QP, in state RTS. attr's type and CQs are the
// end's to say.
func (e *End) CreateUD(t testing.TB, target *Target, attr ibverbs.QPInitAttr) {
	t.Helper()
	attr.Type, attr.SendCQ, attr.RecvCQ, attr.SRQ = ibverbs.QPTypeUD, e.CQ, e.CQ, e.SRQ
	e.QP = Must[*ibverbs.QP](t)(e.PD.CreateQP(attr))
	Close(t, e.QP)
	for _, err := range []error{
		e.QP.ToInit(ibverbs.QPAttr{Port: uint8(target.Port), QKey: QKey}), e.QP.ToRTR(ibverbs.QPAttr{}), e.QP.ToRTS(ibverbs.QPAttr{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// UCPair gives two UC QPs of one device, connected to each other.
func UCPair(t testing.TB, target *Target, cap ibverbs.QPCap) (first, second *End) {
	t.Helper()
	first, second = NewEnd(t, target, cap), NewEnd(t, target, cap)
	for _, e := range []*End{first, second} {
		e.QP = Must[*ibverbs.QP](t)(e.PD.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeUC, SendCQ: e.CQ, RecvCQ: e.CQ, Cap: cap}))
		Close(t, e.QP)
		if err := e.QP.ToInit(ibverbs.QPAttr{Port: uint8(target.Port), AccessFlags: ibverbs.AccessRemoteWrite}); err != nil {
			t.Fatal(err)
		}
	}
	ToRTS(t, target, first.QP, second.QP.QPN())
	ToRTS(t, target, second.QP, first.QP.QPN())
	return first, second
}
