package ibverbs

import (
	"errors"
	"testing"
)

func TestTransitionAttrs(t *testing.T) {
	for _, tc := range []struct {
		typ      QPType
		from, to QPState
		required string
		optional string
		ok       bool
	}{
		{QPTypeRC, QPStateReset, QPStateInit, "ACCESS_FLAGS|PKEY_INDEX|PORT", "0", true},
		{QPTypeRC, QPStateInit, QPStateRTR, "AV|PATH_MTU|RQ_PSN|MIN_RNR_TIMER|MAX_DEST_RD_ATOMIC|DEST_QPN", "ACCESS_FLAGS|PKEY_INDEX|ALT_PATH", true},
		{QPTypeRC, QPStateRTR, QPStateRTS, "TIMEOUT|RETRY_CNT|RNR_RETRY|MAX_QP_RD_ATOMIC|SQ_PSN", "CUR_STATE|ACCESS_FLAGS|ALT_PATH|MIN_RNR_TIMER|PATH_MIG_STATE", true},
		{QPTypeUC, QPStateInit, QPStateRTR, "AV|PATH_MTU|RQ_PSN|DEST_QPN", "ACCESS_FLAGS|PKEY_INDEX|ALT_PATH", true},
		{QPTypeUC, QPStateRTR, QPStateRTS, "SQ_PSN", "CUR_STATE|ACCESS_FLAGS|ALT_PATH|PATH_MIG_STATE", true},
		{QPTypeUD, QPStateReset, QPStateInit, "PKEY_INDEX|PORT|QKEY", "0", true},
		{QPTypeUD, QPStateInit, QPStateRTR, "0", "PKEY_INDEX|QKEY", true},
		{QPTypeUD, QPStateRTR, QPStateRTS, "SQ_PSN", "CUR_STATE|QKEY", true},
		{QPTypeXRCRecv, QPStateRTR, QPStateRTS, "TIMEOUT|SQ_PSN", "CUR_STATE|ACCESS_FLAGS|ALT_PATH|MIN_RNR_TIMER|PATH_MIG_STATE", true},
		{QPTypeRawPacket, QPStateReset, QPStateInit, "PORT", "0", true},
		{QPTypeRC, QPStateRTS, QPStateErr, "0", "0", true},
		{QPTypeRC, QPStateErr, QPStateReset, "0", "0", true},
		{QPTypeRC, QPStateReset, QPStateRTS, "0", "0", false},
		{QPTypeRC, QPStateErr, QPStateRTS, "0", "0", false},
		{QPTypeRC, QPStateSQE, QPStateRTS, "0", "0", false}, // RC has no SQE
		{QPType(77), QPStateReset, QPStateInit, "0", "0", false},
	} {
		required, optional, ok := TransitionAttrs(tc.typ, tc.from, tc.to)
		if required.String() != tc.required || optional.String() != tc.optional || ok != tc.ok {
			t.Errorf("%v %v to %v: %v, %v, %v; want %v, %v, %v", tc.typ, tc.from, tc.to,
				required, optional, ok, tc.required, tc.optional, tc.ok)
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
	} {
		if got := explainTransition(QPTypeRC, tc.from, tc.to, tc.mask); got != tc.want {
			t.Errorf("%v to %v with %v: %q, want %q", tc.from, tc.to, tc.mask, got, tc.want)
		}
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
