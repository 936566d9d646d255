package ibverbs

// #include "shim.h"
import "C"

// Send opcodes that ibv_post_send(3) does not have (IBV_WR_FLUSH, which came
// with rdma-core 45, and IBV_WR_ATOMIC_WRITE): a QP that was created with their
// SendOps posts them.
const (
	WRFlush       WROpcode = 14 // FLUSH
	WRAtomicWrite WROpcode = 15 // ATOMIC_WRITE
)

// Completion opcodes of the same (IBV_WC_FLUSH and IBV_WC_ATOMIC_WRITE).
const (
	WCFlush       WCOpcode = 8 // FLUSH
	WCAtomicWrite WCOpcode = 9 // ATOMIC_WRITE
)

// SendOps names the opcodes that a QP posts through ibv_wr_* (enum
// ibv_qp_create_send_ops_flags).
type SendOps uint64

// Send operations.
const (
	SendOpRDMAWrite        SendOps = C.IBV_QP_EX_WITH_RDMA_WRITE
	SendOpRDMAWriteWithImm SendOps = C.IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
	SendOpSend             SendOps = C.IBV_QP_EX_WITH_SEND
	SendOpSendWithImm      SendOps = C.IBV_QP_EX_WITH_SEND_WITH_IMM
	SendOpRDMARead         SendOps = C.IBV_QP_EX_WITH_RDMA_READ
	SendOpAtomicCmpAndSwp  SendOps = C.IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
	SendOpAtomicFetchAdd   SendOps = C.IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
	SendOpLocalInv         SendOps = C.IBV_QP_EX_WITH_LOCAL_INV
	SendOpBindMW           SendOps = C.IBV_QP_EX_WITH_BIND_MW
	SendOpSendWithInv      SendOps = C.IBV_QP_EX_WITH_SEND_WITH_INV
	SendOpTSO              SendOps = C.IBV_QP_EX_WITH_TSO
	SendOpFlush            SendOps = 1 << 11 // IBV_QP_EX_WITH_FLUSH
	SendOpAtomicWrite      SendOps = 1 << 12 // IBV_QP_EX_WITH_ATOMIC_WRITE
)

var sendOpNames = []flagName{
	{uint64(SendOpRDMAWrite), "RDMA_WRITE"},
	{uint64(SendOpRDMAWriteWithImm), "RDMA_WRITE_WITH_IMM"},
	{uint64(SendOpSend), "SEND"},
	{uint64(SendOpSendWithImm), "SEND_WITH_IMM"},
	{uint64(SendOpRDMARead), "RDMA_READ"},
	{uint64(SendOpAtomicCmpAndSwp), "ATOMIC_CMP_AND_SWP"},
	{uint64(SendOpAtomicFetchAdd), "ATOMIC_FETCH_AND_ADD"},
	{uint64(SendOpLocalInv), "LOCAL_INV"},
	{uint64(SendOpBindMW), "BIND_MW"},
	{uint64(SendOpSendWithInv), "SEND_WITH_INV"},
	{uint64(SendOpTSO), "TSO"},
	{uint64(SendOpFlush), "FLUSH"},
	{uint64(SendOpAtomicWrite), "ATOMIC_WRITE"},
}

// String joins the names: "SEND|RDMA_READ".
func (o SendOps) String() string { return joinFlags(uint64(o), sendOpNames) }

// QPCreateFlags ask for special QPs (enum ibv_qp_create_flags).
type QPCreateFlags uint32

// QP creation flags.
const (
	QPCreateBlockSelfMcastLB   QPCreateFlags = C.IBV_QP_CREATE_BLOCK_SELF_MCAST_LB   // do not receive one's own multicasts
	QPCreateScatterFCS         QPCreateFlags = C.IBV_QP_CREATE_SCATTER_FCS           // raw packet: keep the frame check sequence
	QPCreateCVLANStripping     QPCreateFlags = C.IBV_QP_CREATE_CVLAN_STRIPPING       // raw packet: take the VLAN tag off
	QPCreateSourceQPN          QPCreateFlags = C.IBV_QP_CREATE_SOURCE_QPN            // set by QPInitAttr.SourceQPN
	QPCreatePCIWriteEndPadding QPCreateFlags = C.IBV_QP_CREATE_PCI_WRITE_END_PADDING // pad writes to whole cache lines
)

var qpCreateNames = []flagName{
	{uint64(QPCreateBlockSelfMcastLB), "BLOCK_SELF_MCAST_LB"},
	{uint64(QPCreateScatterFCS), "SCATTER_FCS"},
	{uint64(QPCreateCVLANStripping), "CVLAN_STRIPPING"},
	{uint64(QPCreateSourceQPN), "SOURCE_QPN"},
	{uint64(QPCreatePCIWriteEndPadding), "PCI_WRITE_END_PADDING"},
}

// String joins the names: "SCATTER_FCS|SOURCE_QPN".
func (f QPCreateFlags) String() string { return joinFlags(uint64(f), qpCreateNames) }

// FlushPlacement says how far a FLUSH pushes data (enum ibv_placement_type).
type FlushPlacement uint8

// Placements; the region's access flags must allow them.
const (
	FlushGlobal     FlushPlacement = 1 << 0 // IBV_FLUSH_GLOBAL: visible to everyone
	FlushPersistent FlushPlacement = 1 << 1 // IBV_FLUSH_PERSISTENT: survives a loss of power
)

var flushPlacementNames = []flagName{
	{uint64(FlushGlobal), "GLOBAL"},
	{uint64(FlushPersistent), "PERSISTENT"},
}

// String joins the names: "GLOBAL|PERSISTENT".
func (p FlushPlacement) String() string { return joinFlags(uint64(p), flushPlacementNames) }

// FlushSelectivity says what a FLUSH covers (enum ibv_selectivity_level).
type FlushSelectivity uint8

// Selectivity levels (IBV_FLUSH_RANGE and IBV_FLUSH_MR): Flush.Length bytes from
// RemoteAddr on, or the whole region of RKey.
const (
	FlushRange FlushSelectivity = 0 // RANGE
	FlushMR    FlushSelectivity = 1 // MR
)

// DataInOrder says which data of a QP is written in order (enum
// ibv_query_qp_data_in_order_caps).
type DataInOrder uint32

// Orders.
const (
	DataInOrderWholeMsg        DataInOrder = 1 << 0 // IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG
	DataInOrderAligned128Bytes DataInOrder = 1 << 1 // IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES
)

var dataInOrderNames = []flagName{
	{uint64(DataInOrderWholeMsg), "WHOLE_MSG"},
	{uint64(DataInOrderAligned128Bytes), "ALIGNED_128_BYTES"},
}

// String joins the names: "WHOLE_MSG|ALIGNED_128_BYTES".
func (o DataInOrder) String() string { return joinFlags(uint64(o), dataInOrderNames) }

// DataInOrderFlags choose what QP.DataInOrder asks (enum
// ibv_query_qp_data_in_order_flags).
type DataInOrderFlags uint32

// Query flags.
const (
	DataInOrderReturnCaps DataInOrderFlags = 1 << 0 // IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS: ask for each order
	DataInOrderDeviceOnly DataInOrderFlags = 1 << 1 // IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY: leave the CPU out of it
)

var dataInOrderFlagNames = []flagName{
	{uint64(DataInOrderReturnCaps), "RETURN_CAPS"},
	{uint64(DataInOrderDeviceOnly), "DEVICE_ONLY"},
}

// String joins the names: "RETURN_CAPS|DEVICE_ONLY".
func (f DataInOrderFlags) String() string { return joinFlags(uint64(f), dataInOrderFlagNames) }

// CompCntrOps name what a completion counter counts on a QP (enum
// ibv_qp_attach_comp_cntr_op).
type CompCntrOps uint32

// Operations: the QP's own, and its peer's on its memory.
const (
	CompCntrSend            CompCntrOps = 1 << 0 // IBV_QP_ATTACH_COMP_CNTR_OP_SEND
	CompCntrRecv            CompCntrOps = 1 << 1 // IBV_QP_ATTACH_COMP_CNTR_OP_RECV
	CompCntrRDMARead        CompCntrOps = 1 << 2 // IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ
	CompCntrRemoteRDMARead  CompCntrOps = 1 << 3 // IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ
	CompCntrRDMAWrite       CompCntrOps = 1 << 4 // IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE
	CompCntrRemoteRDMAWrite CompCntrOps = 1 << 5 // IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE
)

var compCntrOpNames = []flagName{
	{uint64(CompCntrSend), "SEND"},
	{uint64(CompCntrRecv), "RECV"},
	{uint64(CompCntrRDMARead), "RDMA_READ"},
	{uint64(CompCntrRemoteRDMARead), "REMOTE_RDMA_READ"},
	{uint64(CompCntrRDMAWrite), "RDMA_WRITE"},
	{uint64(CompCntrRemoteRDMAWrite), "REMOTE_RDMA_WRITE"},
}

// String joins the names: "SEND|RDMA_READ".
func (o CompCntrOps) String() string { return joinFlags(uint64(o), compCntrOpNames) }

// CompCntrType says what a completion counter counts (enum
// ibv_comp_cntr_type).
type CompCntrType uint32

// Counter types: completed work requests (IBV_COMP_CNTR_TYPE_WRS), or their
// bytes (IBV_COMP_CNTR_TYPE_BYTES).
const (
	CompCntrWRs   CompCntrType = 0 // WRS
	CompCntrBytes CompCntrType = 1 // BYTES
)
