package ibverbs

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// kernelTransitions is what Linux has (ib_modify_qp_is_ok): from, to, types,
// required, optional. Not in it: to RESET, and to ERR from all but RESET, which
// want nothing; and SQE, which reliable QPs have not.
const kernelTransitions = `
RESET INIT RC,UC,XRC_SEND,XRC_RECV PKEY_INDEX|PORT|ACCESS_FLAGS 0
RESET INIT UD PKEY_INDEX|PORT|QKEY 0
RESET INIT RAW_PACKET PORT 0
INIT INIT RC,UC,XRC_SEND,XRC_RECV 0 PKEY_INDEX|PORT|ACCESS_FLAGS
INIT INIT UD 0 PKEY_INDEX|PORT|QKEY
INIT INIT RAW_PACKET 0 0
INIT RTR RC,XRC_RECV AV|PATH_MTU|DEST_QPN|RQ_PSN|MAX_DEST_RD_ATOMIC|MIN_RNR_TIMER ALT_PATH|ACCESS_FLAGS|PKEY_INDEX
INIT RTR UC,XRC_SEND AV|PATH_MTU|DEST_QPN|RQ_PSN ALT_PATH|ACCESS_FLAGS|PKEY_INDEX
INIT RTR UD 0 PKEY_INDEX|QKEY
INIT RTR RAW_PACKET 0 0
RTR RTS RC TIMEOUT|RETRY_CNT|RNR_RETRY|SQ_PSN|MAX_QP_RD_ATOMIC CUR_STATE|ALT_PATH|ACCESS_FLAGS|MIN_RNR_TIMER|PATH_MIG_STATE
RTR RTS XRC_SEND TIMEOUT|RETRY_CNT|RNR_RETRY|SQ_PSN|MAX_QP_RD_ATOMIC CUR_STATE|ALT_PATH|ACCESS_FLAGS|PATH_MIG_STATE
RTR RTS XRC_RECV TIMEOUT|SQ_PSN CUR_STATE|ALT_PATH|ACCESS_FLAGS|MIN_RNR_TIMER|PATH_MIG_STATE
RTR RTS UC SQ_PSN CUR_STATE|ALT_PATH|ACCESS_FLAGS|PATH_MIG_STATE
RTR RTS UD SQ_PSN CUR_STATE|QKEY
RTR RTS RAW_PACKET 0 RATE_LIMIT
RTS RTS RC,XRC_RECV 0 CUR_STATE|ACCESS_FLAGS|ALT_PATH|PATH_MIG_STATE|MIN_RNR_TIMER
RTS RTS UC,XRC_SEND 0 CUR_STATE|ACCESS_FLAGS|ALT_PATH|PATH_MIG_STATE
RTS RTS UD 0 CUR_STATE|QKEY
RTS RTS RAW_PACKET 0 RATE_LIMIT
RTS SQD RC,UC,UD,XRC_SEND,XRC_RECV 0 EN_SQD_ASYNC_NOTIFY
RTS SQD RAW_PACKET 0 0
SQD RTS RC,XRC_RECV 0 CUR_STATE|ALT_PATH|ACCESS_FLAGS|MIN_RNR_TIMER|PATH_MIG_STATE
SQD RTS UC,XRC_SEND 0 CUR_STATE|ALT_PATH|ACCESS_FLAGS|PATH_MIG_STATE
SQD RTS UD 0 CUR_STATE|QKEY
SQD RTS RAW_PACKET 0 0
SQD SQD RC 0 PORT|AV|TIMEOUT|RETRY_CNT|RNR_RETRY|MAX_QP_RD_ATOMIC|MAX_DEST_RD_ATOMIC|ALT_PATH|ACCESS_FLAGS|PKEY_INDEX|MIN_RNR_TIMER|PATH_MIG_STATE
SQD SQD UC 0 AV|ALT_PATH|ACCESS_FLAGS|PKEY_INDEX|PATH_MIG_STATE
SQD SQD UD 0 PKEY_INDEX|QKEY
SQD SQD XRC_SEND 0 PORT|AV|TIMEOUT|RETRY_CNT|RNR_RETRY|MAX_QP_RD_ATOMIC|ALT_PATH|ACCESS_FLAGS|PKEY_INDEX|PATH_MIG_STATE
SQD SQD XRC_RECV 0 PORT|AV|TIMEOUT|MAX_DEST_RD_ATOMIC|ALT_PATH|ACCESS_FLAGS|PKEY_INDEX|MIN_RNR_TIMER|PATH_MIG_STATE
SQD SQD RAW_PACKET 0 0
SQE RTS UC 0 CUR_STATE|ACCESS_FLAGS
SQE RTS UD 0 CUR_STATE|QKEY
SQE RTS RAW_PACKET 0 0
`

// attrMask reads what QPAttrMask.String writes.
func attrMask(t *testing.T, s string) (mask QPAttrMask) {
	t.Helper()
	for name := range strings.SplitSeq(s, "|") {
		i := slices.IndexFunc(qpAttrNames, func(n flagName) bool { return n.name == name })
		switch {
		case i >= 0:
			mask |= QPAttrMask(qpAttrNames[i].bit)
		case name != "0":
			t.Fatalf("no attribute is called %q", name)
		}
	}
	return mask
}

func TestTransitionAttrs(t *testing.T) {
	type cell struct{ typ, from, to string }
	want := make(map[cell]string)
	for line := range strings.Lines(strings.TrimSpace(kernelTransitions)) {
		f := strings.Fields(line)
		for typ := range strings.SplitSeq(f[2], ",") {
			want[cell{typ, f[0], f[1]}] = attrMask(t, f[3]).String() + " " + attrMask(t, f[4]).String()
		}
	}
	types := []QPType{QPTypeRC, QPTypeUC, QPTypeUD, QPTypeRawPacket, QPTypeXRCSend, QPTypeXRCRecv}
	found := 0
	for _, typ := range types {
		for from := QPStateReset; from <= QPStateErr; from++ {
			for to := QPStateReset; to <= QPStateErr; to++ {
				sets, ok := want[cell{typ.String(), from.String(), to.String()}]
				if ok {
					found++
				} else if to == QPStateReset || to == QPStateErr && from != QPStateReset {
					sets, ok = "0 0", true
				}
				required, optional, gotOK := TransitionAttrs(typ, from, to)
				if got := required.String() + " " + optional.String(); gotOK != ok || ok && got != sets {
					t.Errorf("%v %v to %v: %v, %v; want %v, %v", typ, from, to, got, gotOK, sets, ok)
				}
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d cells of the table are for no type or state that there is", len(want)-found)
	}
	for _, tc := range []struct {
		typ      QPType
		from, to QPState
	}{{QPType(77), QPStateReset, QPStateInit}, {QPTypeDriver, QPStateReset, QPStateInit}, {QPTypeRC, QPStateUnknown, QPStateReset}} {
		if _, _, ok := TransitionAttrs(tc.typ, tc.from, tc.to); ok {
			t.Errorf("%v %v to %v is in the table", tc.typ, tc.from, tc.to)
		}
	}
}

func TestExplainTransition(t *testing.T) {
	for _, tc := range []struct {
		from, to QPState
		mask     QPAttrMask
		want     string
	}{
		{QPStateReset, QPStateInit, QPAttrState | connInit, ""},
		{QPStateReset, QPStateInit, QPAttrState | QPAttrPort, "RC RESET to INIT: missing ACCESS_FLAGS|PKEY_INDEX"},
		{QPStateReset, QPStateInit, QPAttrState | connInit | QPAttrQKey, "RC RESET to INIT: superfluous QKEY"},
		{QPStateInit, QPStateRTR, QPAttrState | QPAttrAV | QPAttrTimeout,
			"RC INIT to RTR: missing PATH_MTU|RQ_PSN|MIN_RNR_TIMER|MAX_DEST_RD_ATOMIC|DEST_QPN, superfluous TIMEOUT"},
		{QPStateReset, QPStateRTS, QPAttrState, "RC QPs have no transition RESET to RTS"},
		{QPStateReset, QPStateErr, QPAttrState, "RC QPs have no transition RESET to ERR"},
		{QPStateReset, QPStateInit, QPAttrState | connInit | QPAttrCurState, "RC RESET to INIT: superfluous CUR_STATE"},
	} {
		if got := explainTransition(QPTypeRC, tc.from, tc.to, tc.mask); got != tc.want {
			t.Errorf("%v to %v with %v: %q, want %q", tc.from, tc.to, tc.mask, got, tc.want)
		}
	}
}

// A driver's own QPs follow a table that is not known here.
func TestExplainDriverTransition(t *testing.T) {
	if got := explainTransition(QPTypeDriver, QPStateReset, QPStateInit, QPAttrState); got != "" {
		t.Errorf("%q", got)
	}
}

func TestMoveWithoutTransition(t *testing.T) {
	// No C object behind it: the table must refuse before C is called.
	qp := &QP{typ: QPType(77)}
	var op *OpError
	if err := qp.ToInit(QPAttr{Port: 1}); !errors.As(err, &op) || op.Op != "ibv_modify_qp" {
		t.Errorf("ToInit of an unknown type: %v", err)
	}
}
