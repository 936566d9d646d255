package ibverbs

// #include "shim.h"
import "C"

// SRQAttrMask names fields of an SRQAttr (enum ibv_srq_attr_mask).
type SRQAttrMask uint32

// SRQ attributes.
const (
	SRQAttrMaxWR SRQAttrMask = C.IBV_SRQ_MAX_WR
	SRQAttrLimit SRQAttrMask = C.IBV_SRQ_LIMIT
)

var srqAttrNames = []flagName{
	{uint64(SRQAttrMaxWR), "MAX_WR"},
	{uint64(SRQAttrLimit), "LIMIT"},
}

// String joins the names: "MAX_WR|LIMIT".
func (m SRQAttrMask) String() string { return joinFlags(uint64(m), srqAttrNames) }

// WCExFlags name fields of a WCEx (enum ibv_create_cq_wc_flags).
type WCExFlags uint64

// Fields of an extended completion. WCExStandard is what an ordinary
// completion has.
const (
	WCExByteLen               WCExFlags = C.IBV_WC_EX_WITH_BYTE_LEN
	WCExImm                   WCExFlags = C.IBV_WC_EX_WITH_IMM // ImmData and InvalidatedRKey
	WCExQPNum                 WCExFlags = C.IBV_WC_EX_WITH_QP_NUM
	WCExSrcQP                 WCExFlags = C.IBV_WC_EX_WITH_SRC_QP
	WCExSLID                  WCExFlags = C.IBV_WC_EX_WITH_SLID
	WCExSL                    WCExFlags = C.IBV_WC_EX_WITH_SL
	WCExDLIDPathBits          WCExFlags = C.IBV_WC_EX_WITH_DLID_PATH_BITS
	WCExCompletionTS          WCExFlags = C.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
	WCExCVLAN                 WCExFlags = C.IBV_WC_EX_WITH_CVLAN
	WCExFlowTag               WCExFlags = C.IBV_WC_EX_WITH_FLOW_TAG
	WCExTMInfo                WCExFlags = C.IBV_WC_EX_WITH_TM_INFO
	WCExCompletionWallclockNS WCExFlags = C.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK
	WCExStandard              WCExFlags = C.IBV_WC_STANDARD_FLAGS
)

var wcExNames = []flagName{
	{uint64(WCExByteLen), "BYTE_LEN"},
	{uint64(WCExImm), "IMM"},
	{uint64(WCExQPNum), "QP_NUM"},
	{uint64(WCExSrcQP), "SRC_QP"},
	{uint64(WCExSLID), "SLID"},
	{uint64(WCExSL), "SL"},
	{uint64(WCExDLIDPathBits), "DLID_PATH_BITS"},
	{uint64(WCExCompletionTS), "COMPLETION_TIMESTAMP"},
	{uint64(WCExCVLAN), "CVLAN"},
	{uint64(WCExFlowTag), "FLOW_TAG"},
	{uint64(WCExTMInfo), "TM_INFO"},
	{uint64(WCExCompletionWallclockNS), "COMPLETION_TIMESTAMP_WALLCLOCK"},
}

// String joins the names: "BYTE_LEN|IMM".
func (f WCExFlags) String() string { return joinFlags(uint64(f), wcExNames) }

// CQCreateFlags modify an extended CQ (enum ibv_create_cq_attr_flags).
type CQCreateFlags uint32

// Extended CQ flags. CQSingleThreaded leaves the locks out: one goroutine at a
// time may use the CQ and post to its QPs. With CQIgnoreOverrun a CQ that
// overflows goes on, and overwrites completions.
const (
	CQSingleThreaded CQCreateFlags = C.IBV_CREATE_CQ_ATTR_SINGLE_THREADED
	CQIgnoreOverrun  CQCreateFlags = C.IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN
)

var cqCreateNames = []flagName{
	{uint64(CQSingleThreaded), "SINGLE_THREADED"},
	{uint64(CQIgnoreOverrun), "IGNORE_OVERRUN"},
}

// String joins the names: "SINGLE_THREADED|IGNORE_OVERRUN".
func (f CQCreateFlags) String() string { return joinFlags(uint64(f), cqCreateNames) }

// SRQType is what an SRQ does beyond holding receives (enum ibv_srq_type).
type SRQType uint32

// SRQ types: nothing more, XRC, and matching the tags of messages.
const (
	SRQTypeBasic SRQType = C.IBV_SRQT_BASIC // BASIC
	SRQTypeXRC   SRQType = C.IBV_SRQT_XRC   // XRC
	SRQTypeTM    SRQType = C.IBV_SRQT_TM    // TM
)

// OpsOpcode says what an OpsWR does (enum ibv_ops_wr_opcode).
type OpsOpcode uint32

// Operations on tags: add one, delete one, or only tell UnexpectedCnt.
const (
	OpsTagAdd  OpsOpcode = C.IBV_WR_TAG_ADD  // TAG_ADD
	OpsTagDel  OpsOpcode = C.IBV_WR_TAG_DEL  // TAG_DEL
	OpsTagSync OpsOpcode = C.IBV_WR_TAG_SYNC // TAG_SYNC
)

// OpsFlags modify an OpsWR (enum ibv_ops_flags).
type OpsFlags uint32

// Operation flags.
const (
	OpsSignaled OpsFlags = C.IBV_OPS_SIGNALED // report success with a completion
	OpsTMSync   OpsFlags = C.IBV_OPS_TM_SYNC  // UnexpectedCnt is valid
)

var opsNames = []flagName{
	{uint64(OpsSignaled), "SIGNALED"},
	{uint64(OpsTMSync), "TM_SYNC"},
}

// String joins the names: "SIGNALED|TM_SYNC".
func (f OpsFlags) String() string { return joinFlags(uint64(f), opsNames) }
