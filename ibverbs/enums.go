package ibverbs

//go:generate go tool -modfile=../ci/tools/go.mod stringer -linecomment -output=enums_string.go -type=NodeType,Transport,LinkLayer,PortState,PhysState,MTU,GIDType,AtomicCap,QPType,QPState,MigState,WROpcode,WCStatus,WCOpcode,EventType,FlushSelectivity,CompCntrType,MWType,ReregMRErrCode,MRAdvice,TPHMemType,SRQType,OpsOpcode,WQType,WQState,FlowType,FlowSpecType,ESPKeymat,ESPIVAlgo,ESPReplayType,CounterDescription,ForkStatus,Rate

// #include "shim.h"
import "C"

// NodeType says what kind of node a device is (enum ibv_node_type).
type NodeType int32

// Node types.
const (
	NodeUnknown     NodeType = C.IBV_NODE_UNKNOWN     // unknown
	NodeCA          NodeType = C.IBV_NODE_CA          // CA
	NodeSwitch      NodeType = C.IBV_NODE_SWITCH      // switch
	NodeRouter      NodeType = C.IBV_NODE_ROUTER      // router
	NodeRNIC        NodeType = C.IBV_NODE_RNIC        // RNIC
	NodeUsNIC       NodeType = C.IBV_NODE_USNIC       // usNIC
	NodeUsNICUDP    NodeType = C.IBV_NODE_USNIC_UDP   // usNIC UDP
	NodeUnspecified NodeType = C.IBV_NODE_UNSPECIFIED // unspecified
)

// Transport is a device's wire protocol family (enum ibv_transport_type).
// RoCE devices are TransportIB; their ports have LinkLayerEthernet.
type Transport int32

// Transports.
const (
	TransportUnknown     Transport = C.IBV_TRANSPORT_UNKNOWN     // unknown
	TransportIB          Transport = C.IBV_TRANSPORT_IB          // InfiniBand
	TransportIWARP       Transport = C.IBV_TRANSPORT_IWARP       // iWARP
	TransportUsNIC       Transport = C.IBV_TRANSPORT_USNIC       // usNIC
	TransportUsNICUDP    Transport = C.IBV_TRANSPORT_USNIC_UDP   // usNIC UDP
	TransportUnspecified Transport = C.IBV_TRANSPORT_UNSPECIFIED // unspecified
)

// LinkLayer is what a port's packets travel over.
type LinkLayer uint8

// Link layers. iWARP drivers report LinkLayerEthernet, or
// LinkLayerUnspecified.
const (
	LinkLayerUnspecified LinkLayer = C.IBV_LINK_LAYER_UNSPECIFIED // unspecified
	LinkLayerInfiniBand  LinkLayer = C.IBV_LINK_LAYER_INFINIBAND  // InfiniBand
	LinkLayerEthernet    LinkLayer = C.IBV_LINK_LAYER_ETHERNET    // Ethernet
)

// PortState is a port's logical state (enum ibv_port_state).
type PortState uint32

// Port states. Traffic needs PortActive.
const (
	PortNop         PortState = C.IBV_PORT_NOP          // NOP
	PortDown        PortState = C.IBV_PORT_DOWN         // DOWN
	PortInit        PortState = C.IBV_PORT_INIT         // INIT
	PortArmed       PortState = C.IBV_PORT_ARMED        // ARMED
	PortActive      PortState = C.IBV_PORT_ACTIVE       // ACTIVE
	PortActiveDefer PortState = C.IBV_PORT_ACTIVE_DEFER // ACTIVE_DEFER
)

// PhysState is the state of a port's physical link. The numbers are the
// InfiniBand specification's; verbs.h has no names for them.
type PhysState uint8

// Physical states.
const (
	PhysSleep                     PhysState = 1 // SLEEP
	PhysPolling                   PhysState = 2 // POLLING
	PhysDisabled                  PhysState = 3 // DISABLED
	PhysPortConfigurationTraining PhysState = 4 // PORT_CONFIGURATION_TRAINING
	PhysLinkUp                    PhysState = 5 // LINK_UP
	PhysLinkErrorRecovery         PhysState = 6 // LINK_ERROR_RECOVERY
	PhysPhyTest                   PhysState = 7 // PHY_TEST
)

// MTU is a path or port MTU (enum ibv_mtu). It is a code; Bytes converts it.
type MTU uint32

// MTUs.
const (
	MTU256  MTU = C.IBV_MTU_256  // 256
	MTU512  MTU = C.IBV_MTU_512  // 512
	MTU1024 MTU = C.IBV_MTU_1024 // 1024
	MTU2048 MTU = C.IBV_MTU_2048 // 2048
	MTU4096 MTU = C.IBV_MTU_4096 // 4096
)

// Bytes is the MTU in bytes, 0 for an unknown code.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

// GIDType says which protocol a GID stands for (enum ibv_gid_type).
type GIDType uint32

// GID types. A RoCE port has one GID of each RoCE type per address.
const (
	GIDTypeIB     GIDType = C.IBV_GID_TYPE_IB      // IB
	GIDTypeRoCEv1 GIDType = C.IBV_GID_TYPE_ROCE_V1 // RoCE v1
	GIDTypeRoCEv2 GIDType = C.IBV_GID_TYPE_ROCE_V2 // RoCE v2
)

// AtomicCap is the scope of a device's atomic operations (enum
// ibv_atomic_cap).
type AtomicCap uint32

// Atomic scopes: none, against other operations of the same device, or
// against the CPU and everything else too.
const (
	AtomicNone AtomicCap = C.IBV_ATOMIC_NONE // NONE
	AtomicHCA  AtomicCap = C.IBV_ATOMIC_HCA  // HCA
	AtomicGlob AtomicCap = C.IBV_ATOMIC_GLOB // GLOB
)

// QPType is a QP's transport service (enum ibv_qp_type).
type QPType uint32

// QP types. iWARP has RC only.
const (
	QPTypeRC        QPType = C.IBV_QPT_RC         // RC
	QPTypeUC        QPType = C.IBV_QPT_UC         // UC
	QPTypeUD        QPType = C.IBV_QPT_UD         // UD
	QPTypeRawPacket QPType = C.IBV_QPT_RAW_PACKET // RAW_PACKET
	QPTypeXRCSend   QPType = C.IBV_QPT_XRC_SEND   // XRC_SEND
	QPTypeXRCRecv   QPType = C.IBV_QPT_XRC_RECV   // XRC_RECV
	QPTypeDriver    QPType = C.IBV_QPT_DRIVER     // DRIVER
)

// QPState is a QP's state (enum ibv_qp_state).
type QPState uint32

// QP states.
const (
	QPStateReset   QPState = C.IBV_QPS_RESET   // RESET
	QPStateInit    QPState = C.IBV_QPS_INIT    // INIT
	QPStateRTR     QPState = C.IBV_QPS_RTR     // RTR
	QPStateRTS     QPState = C.IBV_QPS_RTS     // RTS
	QPStateSQD     QPState = C.IBV_QPS_SQD     // SQD
	QPStateSQE     QPState = C.IBV_QPS_SQE     // SQE
	QPStateErr     QPState = C.IBV_QPS_ERR     // ERR
	QPStateUnknown QPState = C.IBV_QPS_UNKNOWN // UNKNOWN
)

// MigState is a QP's path migration state (enum ibv_mig_state).
type MigState uint32

// Path migration states.
const (
	MigMigrated MigState = C.IBV_MIG_MIGRATED // MIGRATED
	MigRearm    MigState = C.IBV_MIG_REARM    // REARM
	MigArmed    MigState = C.IBV_MIG_ARMED    // ARMED
)

// WROpcode says what a send work request does (enum ibv_wr_opcode).
type WROpcode uint32

// Send opcodes.
const (
	WRRDMAWrite        WROpcode = C.IBV_WR_RDMA_WRITE           // RDMA_WRITE
	WRRDMAWriteWithImm WROpcode = C.IBV_WR_RDMA_WRITE_WITH_IMM  // RDMA_WRITE_WITH_IMM
	WRSend             WROpcode = C.IBV_WR_SEND                 // SEND
	WRSendWithImm      WROpcode = C.IBV_WR_SEND_WITH_IMM        // SEND_WITH_IMM
	WRRDMARead         WROpcode = C.IBV_WR_RDMA_READ            // RDMA_READ
	WRAtomicCmpAndSwp  WROpcode = C.IBV_WR_ATOMIC_CMP_AND_SWP   // ATOMIC_CMP_AND_SWP
	WRAtomicFetchAdd   WROpcode = C.IBV_WR_ATOMIC_FETCH_AND_ADD // ATOMIC_FETCH_AND_ADD
	WRLocalInv         WROpcode = C.IBV_WR_LOCAL_INV            // LOCAL_INV
	WRBindMW           WROpcode = C.IBV_WR_BIND_MW              // BIND_MW
	WRSendWithInv      WROpcode = C.IBV_WR_SEND_WITH_INV        // SEND_WITH_INV
	WRTSO              WROpcode = C.IBV_WR_TSO                  // TSO
)

// WCStatus is how a work request ended (enum ibv_wc_status).
type WCStatus uint32

// Completion statuses.
const (
	WCStatusSuccess        WCStatus = C.IBV_WC_SUCCESS            // SUCCESS
	WCStatusLocLenErr      WCStatus = C.IBV_WC_LOC_LEN_ERR        // LOC_LEN_ERR
	WCStatusLocQPOpErr     WCStatus = C.IBV_WC_LOC_QP_OP_ERR      // LOC_QP_OP_ERR
	WCStatusLocEECOpErr    WCStatus = C.IBV_WC_LOC_EEC_OP_ERR     // LOC_EEC_OP_ERR
	WCStatusLocProtErr     WCStatus = C.IBV_WC_LOC_PROT_ERR       // LOC_PROT_ERR
	WCStatusWRFlushErr     WCStatus = C.IBV_WC_WR_FLUSH_ERR       // WR_FLUSH_ERR
	WCStatusMWBindErr      WCStatus = C.IBV_WC_MW_BIND_ERR        // MW_BIND_ERR
	WCStatusBadRespErr     WCStatus = C.IBV_WC_BAD_RESP_ERR       // BAD_RESP_ERR
	WCStatusLocAccessErr   WCStatus = C.IBV_WC_LOC_ACCESS_ERR     // LOC_ACCESS_ERR
	WCStatusRemInvReqErr   WCStatus = C.IBV_WC_REM_INV_REQ_ERR    // REM_INV_REQ_ERR
	WCStatusRemAccessErr   WCStatus = C.IBV_WC_REM_ACCESS_ERR     // REM_ACCESS_ERR
	WCStatusRemOpErr       WCStatus = C.IBV_WC_REM_OP_ERR         // REM_OP_ERR
	WCStatusRetryExcErr    WCStatus = C.IBV_WC_RETRY_EXC_ERR      // RETRY_EXC_ERR
	WCStatusRNRRetryExcErr WCStatus = C.IBV_WC_RNR_RETRY_EXC_ERR  // RNR_RETRY_EXC_ERR
	WCStatusLocRDDViolErr  WCStatus = C.IBV_WC_LOC_RDD_VIOL_ERR   // LOC_RDD_VIOL_ERR
	WCStatusRemInvRDReqErr WCStatus = C.IBV_WC_REM_INV_RD_REQ_ERR // REM_INV_RD_REQ_ERR
	WCStatusRemAbortErr    WCStatus = C.IBV_WC_REM_ABORT_ERR      // REM_ABORT_ERR
	WCStatusInvEECNErr     WCStatus = C.IBV_WC_INV_EECN_ERR       // INV_EECN_ERR
	WCStatusInvEECStateErr WCStatus = C.IBV_WC_INV_EEC_STATE_ERR  // INV_EEC_STATE_ERR
	WCStatusFatalErr       WCStatus = C.IBV_WC_FATAL_ERR          // FATAL_ERR
	WCStatusRespTimeoutErr WCStatus = C.IBV_WC_RESP_TIMEOUT_ERR   // RESP_TIMEOUT_ERR
	WCStatusGeneralErr     WCStatus = C.IBV_WC_GENERAL_ERR        // GENERAL_ERR
	WCStatusTMErr          WCStatus = C.IBV_WC_TM_ERR             // TM_ERR
	WCStatusTMRndvIncompl  WCStatus = C.IBV_WC_TM_RNDV_INCOMPLETE // TM_RNDV_INCOMPLETE
)

// WCOpcode says what a completed work request did (enum ibv_wc_opcode).
type WCOpcode uint32

// Completion opcodes.
const (
	WCSend            WCOpcode = C.IBV_WC_SEND               // SEND
	WCRDMAWrite       WCOpcode = C.IBV_WC_RDMA_WRITE         // RDMA_WRITE
	WCRDMARead        WCOpcode = C.IBV_WC_RDMA_READ          // RDMA_READ
	WCCompSwap        WCOpcode = C.IBV_WC_COMP_SWAP          // COMP_SWAP
	WCFetchAdd        WCOpcode = C.IBV_WC_FETCH_ADD          // FETCH_ADD
	WCBindMW          WCOpcode = C.IBV_WC_BIND_MW            // BIND_MW
	WCLocalInv        WCOpcode = C.IBV_WC_LOCAL_INV          // LOCAL_INV
	WCTSO             WCOpcode = C.IBV_WC_TSO                // TSO
	WCTMAdd           WCOpcode = C.IBV_WC_TM_ADD             // TM_ADD
	WCTMDel           WCOpcode = C.IBV_WC_TM_DEL             // TM_DEL
	WCTMSync          WCOpcode = C.IBV_WC_TM_SYNC            // TM_SYNC
	WCTMRecv          WCOpcode = C.IBV_WC_TM_RECV            // TM_RECV
	WCTMNoTag         WCOpcode = C.IBV_WC_TM_NO_TAG          // TM_NO_TAG
	WCRecv            WCOpcode = C.IBV_WC_RECV               // RECV
	WCRecvRDMAWithImm WCOpcode = C.IBV_WC_RECV_RDMA_WITH_IMM // RECV_RDMA_WITH_IMM
)
