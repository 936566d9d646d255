package ibverbs

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// QPAttr holds a QP's attributes (struct ibv_qp_attr). A QPAttrMask says which
// of them count.
type QPAttr struct {
	State            QPState
	CurState         QPState
	PathMTU          MTU
	PathMigState     MigState
	QKey             uint32
	RQPSN            uint32 // 24 bits
	SQPSN            uint32 // 24 bits
	DestQPN          uint32
	AccessFlags      Access
	Cap              QPCap
	AH               AHAttr
	AltAH            AHAttr
	PKeyIndex        uint16
	AltPKeyIndex     uint16
	EnSQDAsyncNotify bool
	SQDraining       bool
	MaxQPRDAtomic    uint8 // max_rd_atomic: READs and atomics in flight that this side starts
	MaxDestRDAtomic  uint8 // READs and atomics in flight that this side serves
	MinRNRTimer      uint8 // code of the wait that an RNR NAK asks for: 0 is 655.36 ms (but see ToRTR), 1 is 0.01 ms, 12 is 0.64 ms
	Port             uint8
	Timeout          uint8 // wait for an ACK: 4.096us*2^n, 0 is for ever
	RetryCnt         uint8 // 0 to 7
	RNRRetry         uint8 // 0 to 6, 7 is for ever
	AltPort          uint8
	AltTimeout       uint8
	RateLimit        uint32 // kbit/s
}

// AHAttr describes the path to a peer (struct ibv_ah_attr with its GRH).
// RoCE always needs IsGlobal.
type AHAttr struct {
	DGID         GID    // the peer's
	FlowLabel    uint32 // 20 bits
	SGIDIndex    uint8  // our own, in the port's GID table; see ChooseGID
	HopLimit     uint8  // to multicast groups, and on Infiniband; else the kernel takes its route's
	TrafficClass uint8  // DSCP and ECN bits of RoCE v2

	DLID        uint16 // InfiniBand only
	SL          uint8
	SrcPathBits uint8
	StaticRate  uint8
	IsGlobal    bool
	Port        uint8 // our own
}

// transition is a step of the QP state machine.
type transition struct{ from, to QPState }

// attrSets are the attributes that a transition must have and may have besides
// STATE, by type.
type attrSets map[QPType]struct{ required, optional QPAttrMask }

const (
	connInit    = QPAttrPKeyIndex | QPAttrPort | QPAttrAccessFlags
	connRTR     = QPAttrAV | QPAttrPathMTU | QPAttrDestQPN | QPAttrRQPSN
	respondRTR  = connRTR | QPAttrMaxDestRDAtomic | QPAttrMinRNRTimer
	optionalRTR = QPAttrAltPath | QPAttrAccessFlags | QPAttrPKeyIndex
	requestRTS  = QPAttrTimeout | QPAttrRetryCnt | QPAttrRNRRetry | QPAttrSQPSN | QPAttrMaxQPRDAtomic
	migrate     = QPAttrCurState | QPAttrAltPath | QPAttrAccessFlags | QPAttrPathMigState
	respondRTS  = migrate | QPAttrMinRNRTimer
	datagramRTS = QPAttrCurState | QPAttrQKey
	sqdUC       = QPAttrAV | QPAttrAltPath | QPAttrAccessFlags | QPAttrPKeyIndex | QPAttrPathMigState
	sqdRequest  = sqdUC | QPAttrPort | QPAttrTimeout | QPAttrRetryCnt | QPAttrRNRRetry | QPAttrMaxQPRDAtomic
	sqdRespond  = QPAttrMaxDestRDAtomic | QPAttrMinRNRTimer
)

// sqdRTS is what SQD to RTS may have. RTS to RTS may have the same, and a raw
// packet QP's rate limit.
var sqdRTS = attrSets{
	QPTypeRC:        {0, respondRTS},
	QPTypeUC:        {0, migrate},
	QPTypeUD:        {0, datagramRTS},
	QPTypeXRCSend:   {0, migrate},
	QPTypeXRCRecv:   {0, respondRTS},
	QPTypeRawPacket: {0, 0},
}

// qpTransitions is the InfiniBand specification's table of QP state
// transitions, as the kernel has it. To RESET, and from all but RESET to ERR,
// STATE alone is right.
var qpTransitions = map[transition]attrSets{
	{QPStateReset, QPStateInit}: {
		QPTypeRC:        {connInit, 0},
		QPTypeUC:        {connInit, 0},
		QPTypeUD:        {QPAttrPKeyIndex | QPAttrPort | QPAttrQKey, 0},
		QPTypeXRCSend:   {connInit, 0},
		QPTypeXRCRecv:   {connInit, 0},
		QPTypeRawPacket: {QPAttrPort, 0},
	},
	{QPStateInit, QPStateInit}: {
		QPTypeRC:        {0, connInit},
		QPTypeUC:        {0, connInit},
		QPTypeUD:        {0, QPAttrPKeyIndex | QPAttrPort | QPAttrQKey},
		QPTypeXRCSend:   {0, connInit},
		QPTypeXRCRecv:   {0, connInit},
		QPTypeRawPacket: {0, 0},
	},
	{QPStateInit, QPStateRTR}: {
		QPTypeRC:        {respondRTR, optionalRTR},
		QPTypeUC:        {connRTR, optionalRTR},
		QPTypeUD:        {0, QPAttrPKeyIndex | QPAttrQKey},
		QPTypeXRCSend:   {connRTR, optionalRTR},
		QPTypeXRCRecv:   {respondRTR, optionalRTR},
		QPTypeRawPacket: {0, 0},
	},
	{QPStateRTR, QPStateRTS}: {
		QPTypeRC:        {requestRTS, respondRTS},
		QPTypeUC:        {QPAttrSQPSN, migrate},
		QPTypeUD:        {QPAttrSQPSN, datagramRTS},
		QPTypeXRCSend:   {requestRTS, migrate},
		QPTypeXRCRecv:   {QPAttrTimeout | QPAttrSQPSN, respondRTS},
		QPTypeRawPacket: {0, QPAttrRateLimit},
	},
	{QPStateRTS, QPStateRTS}: {
		QPTypeRC:        sqdRTS[QPTypeRC],
		QPTypeUC:        sqdRTS[QPTypeUC],
		QPTypeUD:        sqdRTS[QPTypeUD],
		QPTypeXRCSend:   sqdRTS[QPTypeXRCSend],
		QPTypeXRCRecv:   sqdRTS[QPTypeXRCRecv],
		QPTypeRawPacket: {0, QPAttrRateLimit},
	},
	{QPStateSQD, QPStateRTS}: sqdRTS,
	// Reliable QPs have no SQE: an error takes them to ERR.
	{QPStateSQE, QPStateRTS}: {
		QPTypeUC:        {0, QPAttrCurState | QPAttrAccessFlags},
		QPTypeUD:        {0, datagramRTS},
		QPTypeRawPacket: {0, 0},
	},
	{QPStateRTS, QPStateSQD}: {
		QPTypeRC:        {0, QPAttrEnSQDAsyncNotify},
		QPTypeUC:        {0, QPAttrEnSQDAsyncNotify},
		QPTypeUD:        {0, QPAttrEnSQDAsyncNotify},
		QPTypeXRCSend:   {0, QPAttrEnSQDAsyncNotify},
		QPTypeXRCRecv:   {0, QPAttrEnSQDAsyncNotify},
		QPTypeRawPacket: {0, 0},
	},
	{QPStateSQD, QPStateSQD}: {
		QPTypeRC:        {0, sqdRequest | sqdRespond},
		QPTypeUC:        {0, sqdUC},
		QPTypeUD:        {0, QPAttrPKeyIndex | QPAttrQKey},
		QPTypeXRCSend:   {0, sqdRequest},
		QPTypeXRCRecv:   {0, sqdUC | QPAttrPort | QPAttrTimeout | sqdRespond},
		QPTypeRawPacket: {0, 0},
	},
}

// TransitionAttrs tells which attributes, besides STATE, a transition of a QP
// must have and which it may have; ok is false where there is no such
// transition. QPs of QPTypeDriver follow their driver's own table, which is not
// known here.
func TransitionAttrs(typ QPType, from, to QPState) (required, optional QPAttrMask, ok bool) {
	switch to {
	case QPStateReset:
		return 0, 0, from <= QPStateErr
	case QPStateErr:
		return 0, 0, from <= QPStateErr && from != QPStateReset
	}
	sets, ok := qpTransitions[transition{from, to}][typ]
	return sets.required, sets.optional, ok
}

// Modify changes the attributes that mask names: ibv_modify_qp(3). A
// transition that the state table does not have, or with other attributes than
// it wants, gives EINVAL, and the error names them.
func (qp *QP) Modify(attr QPAttr, mask QPAttrMask) error {
	return qp.call("ibv_modify_qp", func() error {
		if err := attr.check(mask); err != nil {
			return err
		}
		if err := modifyQP(qp.qp, &attr, mask); err != nil {
			return qp.modifyHint(err, &attr, mask)
		}
		qp.noteModified(&attr, mask)
		qp.modified(&attr, mask)
		return nil
	})
}

// modified notes what posts have to know.
func (qp *QP) modified(attr *QPAttr, mask QPAttrMask) {
	if mask&QPAttrMaxQPRDAtomic != 0 {
		qp.readDepth.Store(int32(attr.MaxQPRDAtomic))
	}
	if mask&QPAttrState == 0 {
		return
	}
	switch attr.State {
	case QPStateErr:
		qp.failed.Store(true)
		qp.inError()
		return
	case QPStateReset:
		qp.wasReset.Store(true)
		qp.failed.Store(false)
	}
	qp.state.Store(uint32(attr.State))
}

// Query reads the attributes that mask names, and perhaps others:
// ibv_query_qp(3). Some drivers do not know all; Linux 6.1's siw always
// reports state RESET.
func (qp *QP) Query(mask QPAttrMask) (QPAttr, error) {
	var attr QPAttr
	err := qp.call("ibv_query_qp", func() (err error) {
		attr, err = queryQP(qp.qp, mask)
		return err
	})
	return attr, err
}

// State reads the QP's state: ibv_query_qp(3).
func (qp *QP) State() (QPState, error) {
	attr, err := qp.Query(QPAttrState)
	return attr.State, err
}

// ToInit moves a QP from RESET to INIT, with the attributes that its type
// requires: PKeyIndex and Port, and AccessFlags (connected types) or QKey (UD).
func (qp *QP) ToInit(attr QPAttr) error { return qp.move(QPStateReset, QPStateInit, attr) }

// ToRTR moves a QP from INIT to RTR, with the attributes that its type
// requires: for RC that is AH, PathMTU, DestQPN, RQPSN, MaxDestRDAtomic and
// MinRNRTimer.
//
// A MinRNRTimer of 0 means DefaultRNRTimer here, since 0 itself is the longest
// wait there is: 655 ms for each message that finds no receive posted. Modify
// sets it, or code 31 (492 ms), for those who want that.
func (qp *QP) ToRTR(attr QPAttr) error {
	if attr.MinRNRTimer == 0 {
		attr.MinRNRTimer = DefaultRNRTimer
	}
	return qp.move(QPStateInit, QPStateRTR, attr)
}

// DefaultRNRTimer is the code of the wait that ToRTR asks of a peer whose
// message finds no receive: 0.64 ms.
const DefaultRNRTimer = 12

// ToRTS moves a QP from RTR to RTS, with the attributes that its type
// requires: for RC that is Timeout, RetryCnt, RNRRetry, SQPSN and
// MaxQPRDAtomic.
func (qp *QP) ToRTS(attr QPAttr) error { return qp.move(QPStateRTR, QPStateRTS, attr) }

func (qp *QP) move(from, to QPState, attr QPAttr) error {
	required, _, ok := TransitionAttrs(qp.typ, from, to)
	if !ok {
		return wrap("ibv_modify_qp", qp.object, hint(syscall.EINVAL, "%v QPs have no transition %v to %v", qp.typ, from, to))
	}
	attr.State = to
	return qp.Modify(attr, QPAttrState|required)
}

// ToError moves the QP to the error state: all outstanding work requests end
// with WCStatusWRFlushErr.
func (qp *QP) ToError() error { return qp.Modify(QPAttr{State: QPStateErr}, QPAttrState) }

// ToReset moves the QP back to RESET. Outstanding work requests vanish without
// a completion.
func (qp *QP) ToReset() error { return qp.Modify(QPAttr{State: QPStateReset}, QPAttrState) }

// modifyHint explains a refused ibv_modify_qp.
func (qp *QP) modifyHint(err error, attr *QPAttr, mask QPAttrMask) error {
	if errors.Is(err, syscall.ENODATA) && mask&QPAttrAV != 0 {
		return attr.AH.hint(err)
	}
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	from := attr.CurState
	if mask&QPAttrCurState == 0 {
		now, queryErr := queryQP(qp.qp, QPAttrState)
		if queryErr != nil {
			return err
		}
		from = now.State
	}
	to := from
	if mask&QPAttrState != 0 {
		to = attr.State
	}
	if why := explainTransition(qp.typ, from, to, mask); why != "" {
		return hint(err, "%s", why)
	}
	if mask&QPAttrAV != 0 {
		return attr.AH.hint(err)
	}
	return err
}

// explainTransition says what the state table has against a transition; ""
// where it has nothing.
func explainTransition(typ QPType, from, to QPState, mask QPAttrMask) string {
	if typ == QPTypeDriver {
		return ""
	}
	required, optional, ok := TransitionAttrs(typ, from, to)
	if !ok {
		return fmt.Sprintf("%v QPs have no transition %v to %v", typ, from, to)
	}
	var parts []string
	if missing := required &^ mask; missing != 0 {
		parts = append(parts, fmt.Sprintf("missing %v", missing))
	}
	if extra := mask &^ (required | optional | QPAttrState); extra != 0 {
		parts = append(parts, fmt.Sprintf("superfluous %v", extra))
	}
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("%v %v to %v: %s", typ, from, to, strings.Join(parts, ", "))
}
