package ibverbs

// #include "shim.h"
import "C"

// WQType says what a work queue is for (enum ibv_wq_type).
type WQType uint32

// WQTypeRQ is a receive queue. There are no others.
const WQTypeRQ WQType = C.IBV_WQT_RQ // RQ

// WQState is a work queue's state (enum ibv_wq_state).
type WQState uint32

// WQ states: it takes receives and messages in state RDY.
const (
	WQStateReset   WQState = C.IBV_WQS_RESET   // RESET
	WQStateRdy     WQState = C.IBV_WQS_RDY     // RDY
	WQStateErr     WQState = C.IBV_WQS_ERR     // ERR
	WQStateUnknown WQState = C.IBV_WQS_UNKNOWN // UNKNOWN
)

// WQFlags ask for special work queues (enum ibv_wq_flags).
type WQFlags uint32

// Work queue flags.
const (
	WQCVLANStripping     WQFlags = C.IBV_WQ_FLAGS_CVLAN_STRIPPING       // take the VLAN tag off
	WQScatterFCS         WQFlags = C.IBV_WQ_FLAGS_SCATTER_FCS           // keep the frame check sequence
	WQDelayDrop          WQFlags = C.IBV_WQ_FLAGS_DELAY_DROP            // wait a while for a receive before a packet is dropped
	WQPCIWriteEndPadding WQFlags = C.IBV_WQ_FLAGS_PCI_WRITE_END_PADDING // pad writes to whole cache lines
)

var wqFlagNames = []flagName{
	{uint64(WQCVLANStripping), "CVLAN_STRIPPING"},
	{uint64(WQScatterFCS), "SCATTER_FCS"},
	{uint64(WQDelayDrop), "DELAY_DROP"},
	{uint64(WQPCIWriteEndPadding), "PCI_WRITE_END_PADDING"},
}

// String joins the names: "SCATTER_FCS|DELAY_DROP".
func (f WQFlags) String() string { return joinFlags(uint64(f), wqFlagNames) }

// WQAttrMask names fields of a WQAttr (enum ibv_wq_attr_mask).
type WQAttrMask uint32

// WQ attributes. WQAttrFlags stands for Flags and FlagsMask.
const (
	WQAttrState    WQAttrMask = C.IBV_WQ_ATTR_STATE
	WQAttrCurState WQAttrMask = C.IBV_WQ_ATTR_CURR_STATE
	WQAttrFlags    WQAttrMask = C.IBV_WQ_ATTR_FLAGS
)

var wqAttrNames = []flagName{
	{uint64(WQAttrState), "STATE"},
	{uint64(WQAttrCurState), "CURR_STATE"},
	{uint64(WQAttrFlags), "FLAGS"},
}

// String joins the names: "STATE|CURR_STATE".
func (m WQAttrMask) String() string { return joinFlags(uint64(m), wqAttrNames) }

// RXHashFunc names hash functions (enum ibv_rx_hash_function_flags).
type RXHashFunc uint8

// RXHashToeplitz is Microsoft's Toeplitz hash, whose keys have 40 bytes.
const RXHashToeplitz RXHashFunc = C.IBV_RX_HASH_FUNC_TOEPLITZ

var rxHashFuncNames = []flagName{{uint64(RXHashToeplitz), "TOEPLITZ"}}

// String joins the names.
func (f RXHashFunc) String() string { return joinFlags(uint64(f), rxHashFuncNames) }

// RXHashFields name parts of a packet that a hash is made of (enum
// ibv_rx_hash_fields).
type RXHashFields uint64

// Parts of a packet. With RXHashInner they are those of the packet within a
// tunnel.
const (
	RXHashSrcIPv4    RXHashFields = C.IBV_RX_HASH_SRC_IPV4
	RXHashDstIPv4    RXHashFields = C.IBV_RX_HASH_DST_IPV4
	RXHashSrcIPv6    RXHashFields = C.IBV_RX_HASH_SRC_IPV6
	RXHashDstIPv6    RXHashFields = C.IBV_RX_HASH_DST_IPV6
	RXHashSrcPortTCP RXHashFields = C.IBV_RX_HASH_SRC_PORT_TCP
	RXHashDstPortTCP RXHashFields = C.IBV_RX_HASH_DST_PORT_TCP
	RXHashSrcPortUDP RXHashFields = C.IBV_RX_HASH_SRC_PORT_UDP
	RXHashDstPortUDP RXHashFields = C.IBV_RX_HASH_DST_PORT_UDP
	RXHashIPsecSPI   RXHashFields = C.IBV_RX_HASH_IPSEC_SPI
	RXHashInner      RXHashFields = C.IBV_RX_HASH_INNER
)

var rxHashFieldNames = []flagName{
	{uint64(RXHashSrcIPv4), "SRC_IPV4"},
	{uint64(RXHashDstIPv4), "DST_IPV4"},
	{uint64(RXHashSrcIPv6), "SRC_IPV6"},
	{uint64(RXHashDstIPv6), "DST_IPV6"},
	{uint64(RXHashSrcPortTCP), "SRC_PORT_TCP"},
	{uint64(RXHashDstPortTCP), "DST_PORT_TCP"},
	{uint64(RXHashSrcPortUDP), "SRC_PORT_UDP"},
	{uint64(RXHashDstPortUDP), "DST_PORT_UDP"},
	{uint64(RXHashIPsecSPI), "IPSEC_SPI"},
	{uint64(RXHashInner), "INNER"},
}

// String joins the names: "SRC_IPV4|DST_IPV4".
func (f RXHashFields) String() string { return joinFlags(uint64(f), rxHashFieldNames) }
