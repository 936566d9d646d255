package ibverbs

// #include "shim.h"
import "C"

// Description is what libibverbs says of the type: ibv_node_type_str(3).
func (t NodeType) Description() string { return nodeTypeText(t) }

// Description is what libibverbs says of the state: ibv_port_state_str(3).
func (s PortState) Description() string { return portStateText(s) }

// Description is what libibverbs says of the status: ibv_wc_status_str(3).
func (s WCStatus) Description() string { return wcStatusText(s) }

// ODPGeneral says whether a device has on-demand paging at all (enum
// ibv_odp_general_caps).
type ODPGeneral uint64

// General abilities of on-demand paging.
const (
	ODPSupport         ODPGeneral = C.IBV_ODP_SUPPORT
	ODPSupportImplicit ODPGeneral = C.IBV_ODP_SUPPORT_IMPLICIT // of the whole address space
)

var odpGeneralNames = []flagName{
	{uint64(ODPSupport), "SUPPORT"},
	{uint64(ODPSupportImplicit), "SUPPORT_IMPLICIT"},
}

// String joins the names.
func (f ODPGeneral) String() string { return joinFlags(uint64(f), odpGeneralNames) }

// ODPTransport says which work requests of a transport service may name
// on-demand memory (enum ibv_odp_transport_cap_bits).
type ODPTransport uint32

// Work requests that may name on-demand memory.
const (
	ODPSend        ODPTransport = C.IBV_ODP_SUPPORT_SEND
	ODPRecv        ODPTransport = C.IBV_ODP_SUPPORT_RECV
	ODPWrite       ODPTransport = C.IBV_ODP_SUPPORT_WRITE
	ODPRead        ODPTransport = C.IBV_ODP_SUPPORT_READ
	ODPAtomic      ODPTransport = C.IBV_ODP_SUPPORT_ATOMIC
	ODPSRQRecv     ODPTransport = C.IBV_ODP_SUPPORT_SRQ_RECV
	ODPFlush       ODPTransport = 1 << 6 // IBV_ODP_SUPPORT_FLUSH
	ODPAtomicWrite ODPTransport = 1 << 7 // IBV_ODP_SUPPORT_ATOMIC_WRITE
)

var odpTransportNames = []flagName{
	{uint64(ODPSend), "SEND"},
	{uint64(ODPRecv), "RECV"},
	{uint64(ODPWrite), "WRITE"},
	{uint64(ODPRead), "READ"},
	{uint64(ODPAtomic), "ATOMIC"},
	{uint64(ODPSRQRecv), "SRQ_RECV"},
	{uint64(ODPFlush), "FLUSH"},
	{uint64(ODPAtomicWrite), "ATOMIC_WRITE"},
}

// String joins the names.
func (f ODPTransport) String() string { return joinFlags(uint64(f), odpTransportNames) }

// RawPacketCaps are what a device does for raw packet QPs (enum
// ibv_raw_packet_caps).
type RawPacketCaps uint32

// Raw packet features.
const (
	RawPacketCVLANStripping RawPacketCaps = C.IBV_RAW_PACKET_CAP_CVLAN_STRIPPING
	RawPacketScatterFCS     RawPacketCaps = C.IBV_RAW_PACKET_CAP_SCATTER_FCS
	RawPacketIPCsum         RawPacketCaps = C.IBV_RAW_PACKET_CAP_IP_CSUM
	RawPacketDelayDrop      RawPacketCaps = C.IBV_RAW_PACKET_CAP_DELAY_DROP
)

var rawPacketNames = []flagName{
	{uint64(RawPacketCVLANStripping), "CVLAN_STRIPPING"},
	{uint64(RawPacketScatterFCS), "SCATTER_FCS"},
	{uint64(RawPacketIPCsum), "IP_CSUM"},
	{uint64(RawPacketDelayDrop), "DELAY_DROP"},
}

// String joins the names.
func (f RawPacketCaps) String() string { return joinFlags(uint64(f), rawPacketNames) }

// PCIAtomicSizes are operand sizes (enum ibv_pci_atomic_op_size).
type PCIAtomicSizes uint16

// Operand sizes.
const (
	PCIAtomic4Bytes  PCIAtomicSizes = C.IBV_PCI_ATOMIC_OPERATION_4_BYTE_SIZE_SUP
	PCIAtomic8Bytes  PCIAtomicSizes = C.IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP
	PCIAtomic16Bytes PCIAtomicSizes = C.IBV_PCI_ATOMIC_OPERATION_16_BYTE_SIZE_SUP
)

var pciAtomicNames = []flagName{
	{uint64(PCIAtomic4Bytes), "4_BYTES"},
	{uint64(PCIAtomic8Bytes), "8_BYTES"},
	{uint64(PCIAtomic16Bytes), "16_BYTES"},
}

// String joins the names.
func (f PCIAtomicSizes) String() string { return joinFlags(uint64(f), pciAtomicNames) }

// ForkStatus is IsForkInitialized's answer (enum ibv_fork_status).
type ForkStatus uint32

// Fork support: not asked for, asked for, or not needed since the kernel copies
// pinned pages when a process forks.
const (
	ForkDisabled ForkStatus = C.IBV_FORK_DISABLED // DISABLED
	ForkEnabled  ForkStatus = C.IBV_FORK_ENABLED  // ENABLED
	ForkUnneeded ForkStatus = C.IBV_FORK_UNNEEDED // UNNEEDED
)

// Rate is a code for a path's rate (enum ibv_rate), as AHAttr.StaticRate has
// it.
type Rate uint8

// Rates, in Gbit/s. RateMax is that of the port.
const (
	RateMax  Rate = C.IBV_RATE_MAX       // max
	Rate2_5  Rate = C.IBV_RATE_2_5_GBPS  // 2.5 Gbit/s
	Rate5    Rate = C.IBV_RATE_5_GBPS    // 5 Gbit/s
	Rate10   Rate = C.IBV_RATE_10_GBPS   // 10 Gbit/s
	Rate14   Rate = C.IBV_RATE_14_GBPS   // 14 Gbit/s
	Rate20   Rate = C.IBV_RATE_20_GBPS   // 20 Gbit/s
	Rate25   Rate = C.IBV_RATE_25_GBPS   // 25 Gbit/s
	Rate28   Rate = C.IBV_RATE_28_GBPS   // 28 Gbit/s
	Rate30   Rate = C.IBV_RATE_30_GBPS   // 30 Gbit/s
	Rate40   Rate = C.IBV_RATE_40_GBPS   // 40 Gbit/s
	Rate50   Rate = C.IBV_RATE_50_GBPS   // 50 Gbit/s
	Rate56   Rate = C.IBV_RATE_56_GBPS   // 56 Gbit/s
	Rate60   Rate = C.IBV_RATE_60_GBPS   // 60 Gbit/s
	Rate80   Rate = C.IBV_RATE_80_GBPS   // 80 Gbit/s
	Rate100  Rate = C.IBV_RATE_100_GBPS  // 100 Gbit/s
	Rate112  Rate = C.IBV_RATE_112_GBPS  // 112 Gbit/s
	Rate120  Rate = C.IBV_RATE_120_GBPS  // 120 Gbit/s
	Rate168  Rate = C.IBV_RATE_168_GBPS  // 168 Gbit/s
	Rate200  Rate = C.IBV_RATE_200_GBPS  // 200 Gbit/s
	Rate300  Rate = C.IBV_RATE_300_GBPS  // 300 Gbit/s
	Rate400  Rate = C.IBV_RATE_400_GBPS  // 400 Gbit/s
	Rate600  Rate = C.IBV_RATE_600_GBPS  // 600 Gbit/s
	Rate800  Rate = C.IBV_RATE_800_GBPS  // 800 Gbit/s
	Rate1200 Rate = C.IBV_RATE_1200_GBPS // 1200 Gbit/s
)

// Mbps is the rate in Mbit/s, of the encoded data, -1 for an unknown one:
// ibv_rate_to_mbps(3).
func (r Rate) Mbps() int { return rateMbps(r) }

// Mult is the rate as a multiple of 2.5 Gbit/s, -1 where it is none:
// ibv_rate_to_mult(3).
func (r Rate) Mult() int { return rateMult(r) }

// RateFromMbps is the rate of so many Mbit/s, RateMax where there is none:
// mbps_to_ibv_rate(3).
func RateFromMbps(mbps int) Rate { return rateFromMbps(mbps) }

// RateFromMult is the rate of so many times 2.5 Gbit/s, RateMax where there is
// none: mult_to_ibv_rate(3).
func RateFromMult(mult int) Rate { return rateFromMult(mult) }
