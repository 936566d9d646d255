package ibverbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"strings"
)

// Access says what may be done to a memory region, or through a QP (enum
// ibv_access_flags). Reading locally is always allowed.
type Access uint32

// Access flags. Remote write and atomics need local write too.
const (
	AccessLocalWrite      Access = C.IBV_ACCESS_LOCAL_WRITE
	AccessRemoteWrite     Access = C.IBV_ACCESS_REMOTE_WRITE
	AccessRemoteRead      Access = C.IBV_ACCESS_REMOTE_READ
	AccessRemoteAtomic    Access = C.IBV_ACCESS_REMOTE_ATOMIC
	AccessMWBind          Access = C.IBV_ACCESS_MW_BIND
	AccessZeroBased       Access = C.IBV_ACCESS_ZERO_BASED
	AccessOnDemand        Access = C.IBV_ACCESS_ON_DEMAND
	AccessHugeTLB         Access = C.IBV_ACCESS_HUGETLB
	AccessFlushGlobal     Access = 1 << 8 // IBV_ACCESS_FLUSH_GLOBAL, of rdma-core 45 and later
	AccessFlushPersistent Access = 1 << 9 // IBV_ACCESS_FLUSH_PERSISTENT, likewise
	AccessRelaxedOrdering Access = C.IBV_ACCESS_RELAXED_ORDERING
)

var accessNames = []flagName{
	{uint64(AccessLocalWrite), "LOCAL_WRITE"},
	{uint64(AccessRemoteWrite), "REMOTE_WRITE"},
	{uint64(AccessRemoteRead), "REMOTE_READ"},
	{uint64(AccessRemoteAtomic), "REMOTE_ATOMIC"},
	{uint64(AccessMWBind), "MW_BIND"},
	{uint64(AccessZeroBased), "ZERO_BASED"},
	{uint64(AccessOnDemand), "ON_DEMAND"},
	{uint64(AccessHugeTLB), "HUGETLB"},
	{uint64(AccessFlushGlobal), "FLUSH_GLOBAL"},
	{uint64(AccessFlushPersistent), "FLUSH_PERSISTENT"},
	{uint64(AccessRelaxedOrdering), "RELAXED_ORDERING"},
}

// String joins the names: "LOCAL_WRITE|REMOTE_READ".
func (a Access) String() string { return joinFlags(uint64(a), accessNames) }

// SendFlags modify a send work request (enum ibv_send_flags).
type SendFlags uint32

// Send flags.
const (
	SendFence     SendFlags = C.IBV_SEND_FENCE     // wait for earlier READs and atomics
	SendSignaled  SendFlags = C.IBV_SEND_SIGNALED  // report success with a completion
	SendSolicited SendFlags = C.IBV_SEND_SOLICITED // raise a solicited event at the receiver
	SendInline    SendFlags = C.IBV_SEND_INLINE    // copy the data now
	SendIPCsum    SendFlags = C.IBV_SEND_IP_CSUM   // compute IP and TCP/UDP checksums
)

var sendNames = []flagName{
	{uint64(SendFence), "FENCE"},
	{uint64(SendSignaled), "SIGNALED"},
	{uint64(SendSolicited), "SOLICITED"},
	{uint64(SendInline), "INLINE"},
	{uint64(SendIPCsum), "IP_CSUM"},
}

// String joins the names: "SIGNALED|INLINE".
func (f SendFlags) String() string { return joinFlags(uint64(f), sendNames) }

// WCFlags say which fields of a completion hold something (enum ibv_wc_flags).
type WCFlags uint32

// Completion flags.
const (
	WCGRH         WCFlags = C.IBV_WC_GRH      // the first 40 bytes of a UD receive are the GRH
	WCWithImm     WCFlags = C.IBV_WC_WITH_IMM // ImmData is valid
	WCIPCsumOK    WCFlags = C.IBV_WC_IP_CSUM_OK
	WCWithInv     WCFlags = C.IBV_WC_WITH_INV // InvalidatedRKey is valid
	WCTMSyncReq   WCFlags = C.IBV_WC_TM_SYNC_REQ
	WCTMMatch     WCFlags = C.IBV_WC_TM_MATCH
	WCTMDataValid WCFlags = C.IBV_WC_TM_DATA_VALID
)

var wcNames = []flagName{
	{uint64(WCGRH), "GRH"},
	{uint64(WCWithImm), "WITH_IMM"},
	{uint64(WCIPCsumOK), "IP_CSUM_OK"},
	{uint64(WCWithInv), "WITH_INV"},
	{uint64(WCTMSyncReq), "TM_SYNC_REQ"},
	{uint64(WCTMMatch), "TM_MATCH"},
	{uint64(WCTMDataValid), "TM_DATA_VALID"},
}

// String joins the names: "GRH|WITH_IMM".
func (f WCFlags) String() string { return joinFlags(uint64(f), wcNames) }

// QPAttrMask names fields of a QPAttr (enum ibv_qp_attr_mask).
type QPAttrMask uint32

// QP attributes.
const (
	QPAttrState            QPAttrMask = C.IBV_QP_STATE
	QPAttrCurState         QPAttrMask = C.IBV_QP_CUR_STATE
	QPAttrEnSQDAsyncNotify QPAttrMask = C.IBV_QP_EN_SQD_ASYNC_NOTIFY
	QPAttrAccessFlags      QPAttrMask = C.IBV_QP_ACCESS_FLAGS
	QPAttrPKeyIndex        QPAttrMask = C.IBV_QP_PKEY_INDEX
	QPAttrPort             QPAttrMask = C.IBV_QP_PORT
	QPAttrQKey             QPAttrMask = C.IBV_QP_QKEY
	QPAttrAV               QPAttrMask = C.IBV_QP_AV
	QPAttrPathMTU          QPAttrMask = C.IBV_QP_PATH_MTU
	QPAttrTimeout          QPAttrMask = C.IBV_QP_TIMEOUT
	QPAttrRetryCnt         QPAttrMask = C.IBV_QP_RETRY_CNT
	QPAttrRNRRetry         QPAttrMask = C.IBV_QP_RNR_RETRY
	QPAttrRQPSN            QPAttrMask = C.IBV_QP_RQ_PSN
	QPAttrMaxQPRDAtomic    QPAttrMask = C.IBV_QP_MAX_QP_RD_ATOMIC
	QPAttrAltPath          QPAttrMask = C.IBV_QP_ALT_PATH
	QPAttrMinRNRTimer      QPAttrMask = C.IBV_QP_MIN_RNR_TIMER
	QPAttrSQPSN            QPAttrMask = C.IBV_QP_SQ_PSN
	QPAttrMaxDestRDAtomic  QPAttrMask = C.IBV_QP_MAX_DEST_RD_ATOMIC
	QPAttrPathMigState     QPAttrMask = C.IBV_QP_PATH_MIG_STATE
	QPAttrCap              QPAttrMask = C.IBV_QP_CAP
	QPAttrDestQPN          QPAttrMask = C.IBV_QP_DEST_QPN
	QPAttrRateLimit        QPAttrMask = C.IBV_QP_RATE_LIMIT
	qpAttrAll                         = QPAttrMask(1<<21-1) &^ QPAttrCurState // what ibv_query_qp knows
)

var qpAttrNames = []flagName{
	{uint64(QPAttrState), "STATE"},
	{uint64(QPAttrCurState), "CUR_STATE"},
	{uint64(QPAttrEnSQDAsyncNotify), "EN_SQD_ASYNC_NOTIFY"},
	{uint64(QPAttrAccessFlags), "ACCESS_FLAGS"},
	{uint64(QPAttrPKeyIndex), "PKEY_INDEX"},
	{uint64(QPAttrPort), "PORT"},
	{uint64(QPAttrQKey), "QKEY"},
	{uint64(QPAttrAV), "AV"},
	{uint64(QPAttrPathMTU), "PATH_MTU"},
	{uint64(QPAttrTimeout), "TIMEOUT"},
	{uint64(QPAttrRetryCnt), "RETRY_CNT"},
	{uint64(QPAttrRNRRetry), "RNR_RETRY"},
	{uint64(QPAttrRQPSN), "RQ_PSN"},
	{uint64(QPAttrMaxQPRDAtomic), "MAX_QP_RD_ATOMIC"},
	{uint64(QPAttrAltPath), "ALT_PATH"},
	{uint64(QPAttrMinRNRTimer), "MIN_RNR_TIMER"},
	{uint64(QPAttrSQPSN), "SQ_PSN"},
	{uint64(QPAttrMaxDestRDAtomic), "MAX_DEST_RD_ATOMIC"},
	{uint64(QPAttrPathMigState), "PATH_MIG_STATE"},
	{uint64(QPAttrCap), "CAP"},
	{uint64(QPAttrDestQPN), "DEST_QPN"},
	{uint64(QPAttrRateLimit), "RATE_LIMIT"},
}

// String joins the names: "STATE|PKEY_INDEX|PORT|ACCESS_FLAGS".
func (m QPAttrMask) String() string { return joinFlags(uint64(m), qpAttrNames) }

// DeviceCapFlags are features of a device (enum ibv_device_cap_flags).
type DeviceCapFlags uint64

// Device capabilities.
const (
	DeviceResizeMaxWR         DeviceCapFlags = C.IBV_DEVICE_RESIZE_MAX_WR
	DeviceBadPKeyCntr         DeviceCapFlags = C.IBV_DEVICE_BAD_PKEY_CNTR
	DeviceBadQKeyCntr         DeviceCapFlags = C.IBV_DEVICE_BAD_QKEY_CNTR
	DeviceRawMulti            DeviceCapFlags = C.IBV_DEVICE_RAW_MULTI
	DeviceAutoPathMig         DeviceCapFlags = C.IBV_DEVICE_AUTO_PATH_MIG
	DeviceChangePhyPort       DeviceCapFlags = C.IBV_DEVICE_CHANGE_PHY_PORT
	DeviceUDAVPortEnforce     DeviceCapFlags = C.IBV_DEVICE_UD_AV_PORT_ENFORCE
	DeviceCurrQPStateMod      DeviceCapFlags = C.IBV_DEVICE_CURR_QP_STATE_MOD
	DeviceShutdownPort        DeviceCapFlags = C.IBV_DEVICE_SHUTDOWN_PORT
	DeviceInitType            DeviceCapFlags = C.IBV_DEVICE_INIT_TYPE
	DevicePortActiveEvent     DeviceCapFlags = C.IBV_DEVICE_PORT_ACTIVE_EVENT
	DeviceSysImageGUID        DeviceCapFlags = C.IBV_DEVICE_SYS_IMAGE_GUID
	DeviceRCRNRNAKGen         DeviceCapFlags = C.IBV_DEVICE_RC_RNR_NAK_GEN
	DeviceSRQResize           DeviceCapFlags = C.IBV_DEVICE_SRQ_RESIZE
	DeviceNNotifyCQ           DeviceCapFlags = C.IBV_DEVICE_N_NOTIFY_CQ
	DeviceMemWindow           DeviceCapFlags = C.IBV_DEVICE_MEM_WINDOW
	DeviceUDIPCsum            DeviceCapFlags = C.IBV_DEVICE_UD_IP_CSUM
	DeviceXRC                 DeviceCapFlags = C.IBV_DEVICE_XRC
	DeviceMemMgtExtensions    DeviceCapFlags = C.IBV_DEVICE_MEM_MGT_EXTENSIONS
	DeviceMemWindowType2A     DeviceCapFlags = C.IBV_DEVICE_MEM_WINDOW_TYPE_2A
	DeviceMemWindowType2B     DeviceCapFlags = C.IBV_DEVICE_MEM_WINDOW_TYPE_2B
	DeviceRCIPCsum            DeviceCapFlags = C.IBV_DEVICE_RC_IP_CSUM
	DeviceRawIPCsum           DeviceCapFlags = C.IBV_DEVICE_RAW_IP_CSUM
	DeviceManagedFlowSteering DeviceCapFlags = C.IBV_DEVICE_MANAGED_FLOW_STEERING

	// Only in DeviceAttrEx.CapFlagsEx.
	DeviceRawScatterFCS      DeviceCapFlags = C.IBV_DEVICE_RAW_SCATTER_FCS
	DevicePCIWriteEndPadding DeviceCapFlags = C.IBV_DEVICE_PCI_WRITE_END_PADDING
	DeviceFlushGlobal        DeviceCapFlags = 1 << 38 // IB_UVERBS_DEVICE_FLUSH_GLOBAL
	DeviceFlushPersistent    DeviceCapFlags = 1 << 39 // IB_UVERBS_DEVICE_FLUSH_PERSISTENT
	DeviceAtomicWrite        DeviceCapFlags = 1 << 40 // IB_UVERBS_DEVICE_ATOMIC_WRITE
	DeviceCCDMABounce        DeviceCapFlags = 1 << 41 // IBV_DEVICE_CC_DMA_BOUNCE
)

var deviceCapNames = []flagName{
	{uint64(DeviceResizeMaxWR), "RESIZE_MAX_WR"},
	{uint64(DeviceBadPKeyCntr), "BAD_PKEY_CNTR"},
	{uint64(DeviceBadQKeyCntr), "BAD_QKEY_CNTR"},
	{uint64(DeviceRawMulti), "RAW_MULTI"},
	{uint64(DeviceAutoPathMig), "AUTO_PATH_MIG"},
	{uint64(DeviceChangePhyPort), "CHANGE_PHY_PORT"},
	{uint64(DeviceUDAVPortEnforce), "UD_AV_PORT_ENFORCE"},
	{uint64(DeviceCurrQPStateMod), "CURR_QP_STATE_MOD"},
	{uint64(DeviceShutdownPort), "SHUTDOWN_PORT"},
	{uint64(DeviceInitType), "INIT_TYPE"},
	{uint64(DevicePortActiveEvent), "PORT_ACTIVE_EVENT"},
	{uint64(DeviceSysImageGUID), "SYS_IMAGE_GUID"},
	{uint64(DeviceRCRNRNAKGen), "RC_RNR_NAK_GEN"},
	{uint64(DeviceSRQResize), "SRQ_RESIZE"},
	{uint64(DeviceNNotifyCQ), "N_NOTIFY_CQ"},
	{uint64(DeviceMemWindow), "MEM_WINDOW"},
	{uint64(DeviceUDIPCsum), "UD_IP_CSUM"},
	{uint64(DeviceXRC), "XRC"},
	{uint64(DeviceMemMgtExtensions), "MEM_MGT_EXTENSIONS"},
	{uint64(DeviceMemWindowType2A), "MEM_WINDOW_TYPE_2A"},
	{uint64(DeviceMemWindowType2B), "MEM_WINDOW_TYPE_2B"},
	{uint64(DeviceRCIPCsum), "RC_IP_CSUM"},
	{uint64(DeviceRawIPCsum), "RAW_IP_CSUM"},
	{uint64(DeviceManagedFlowSteering), "MANAGED_FLOW_STEERING"},
	{uint64(DeviceRawScatterFCS), "RAW_SCATTER_FCS"},
	{uint64(DevicePCIWriteEndPadding), "PCI_WRITE_END_PADDING"},
	{uint64(DeviceFlushGlobal), "FLUSH_GLOBAL"},
	{uint64(DeviceFlushPersistent), "FLUSH_PERSISTENT"},
	{uint64(DeviceAtomicWrite), "ATOMIC_WRITE"},
	{uint64(DeviceCCDMABounce), "CC_DMA_BOUNCE"},
}

// String joins the names.
func (f DeviceCapFlags) String() string { return joinFlags(uint64(f), deviceCapNames) }

// flagName is the name of one bit of a flag set.
type flagName struct {
	bit  uint64
	name string
}

// joinFlags names the bits that are set, and gives bits without a name in hex:
// "SIGNALED|0x100"; 0 is "0".
func joinFlags(flags uint64, names []flagName) string {
	var parts []string
	for _, n := range names {
		if flags&n.bit != 0 {
			parts = append(parts, n.name)
			flags &^= n.bit
		}
	}
	if flags != 0 || parts == nil {
		if flags == 0 {
			return "0"
		}
		parts = append(parts, fmt.Sprintf("%#x", flags))
	}
	return strings.Join(parts, "|")
}
