package ibverbs

// #include "shim.h"
import "C"

// PortCapFlags are management abilities of an InfiniBand port (enum ibv_port_cap_flags).
type PortCapFlags uint32

// Port capabilities.
const (
	PortCapSM                PortCapFlags = C.IBV_PORT_SM
	PortCapNotice            PortCapFlags = C.IBV_PORT_NOTICE_SUP
	PortCapTrap              PortCapFlags = C.IBV_PORT_TRAP_SUP
	PortCapOptIPD            PortCapFlags = C.IBV_PORT_OPT_IPD_SUP
	PortCapAutoMigr          PortCapFlags = C.IBV_PORT_AUTO_MIGR_SUP
	PortCapSLMap             PortCapFlags = C.IBV_PORT_SL_MAP_SUP
	PortCapMKeyNVRAM         PortCapFlags = C.IBV_PORT_MKEY_NVRAM
	PortCapPKeyNVRAM         PortCapFlags = C.IBV_PORT_PKEY_NVRAM
	PortCapLEDInfo           PortCapFlags = C.IBV_PORT_LED_INFO_SUP
	PortCapSysImageGUID      PortCapFlags = C.IBV_PORT_SYS_IMAGE_GUID_SUP
	PortCapPKeySWExtPortTrap PortCapFlags = C.IBV_PORT_PKEY_SW_EXT_PORT_TRAP_SUP
	PortCapExtendedSpeeds    PortCapFlags = C.IBV_PORT_EXTENDED_SPEEDS_SUP
	PortCapCapMask2          PortCapFlags = C.IBV_PORT_CAP_MASK2_SUP
	PortCapCM                PortCapFlags = C.IBV_PORT_CM_SUP
	PortCapSNMPTunnel        PortCapFlags = C.IBV_PORT_SNMP_TUNNEL_SUP
	PortCapReinit            PortCapFlags = C.IBV_PORT_REINIT_SUP
	PortCapDeviceMgmt        PortCapFlags = C.IBV_PORT_DEVICE_MGMT_SUP
	PortCapVendorClass       PortCapFlags = C.IBV_PORT_VENDOR_CLASS_SUP
	PortCapDRNotice          PortCapFlags = C.IBV_PORT_DR_NOTICE_SUP
	PortCapCapMaskNotice     PortCapFlags = C.IBV_PORT_CAP_MASK_NOTICE_SUP
	PortCapBootMgmt          PortCapFlags = C.IBV_PORT_BOOT_MGMT_SUP
	PortCapLinkLatency       PortCapFlags = C.IBV_PORT_LINK_LATENCY_SUP
	PortCapClientReg         PortCapFlags = C.IBV_PORT_CLIENT_REG_SUP
	PortCapIPBasedGIDs       PortCapFlags = C.IBV_PORT_IP_BASED_GIDS
)

var portCapNames = []flagName{
	{uint64(PortCapSM), "SM"},
	{uint64(PortCapNotice), "NOTICE"},
	{uint64(PortCapTrap), "TRAP"},
	{uint64(PortCapOptIPD), "OPT_IPD"},
	{uint64(PortCapAutoMigr), "AUTO_MIGR"},
	{uint64(PortCapSLMap), "SL_MAP"},
	{uint64(PortCapMKeyNVRAM), "MKEY_NVRAM"},
	{uint64(PortCapPKeyNVRAM), "PKEY_NVRAM"},
	{uint64(PortCapLEDInfo), "LED_INFO"},
	{uint64(PortCapSysImageGUID), "SYS_IMAGE_GUID"},
	{uint64(PortCapPKeySWExtPortTrap), "PKEY_SW_EXT_PORT_TRAP"},
	{uint64(PortCapExtendedSpeeds), "EXTENDED_SPEEDS"},
	{uint64(PortCapCapMask2), "CAP_MASK2"},
	{uint64(PortCapCM), "CM"},
	{uint64(PortCapSNMPTunnel), "SNMP_TUNNEL"},
	{uint64(PortCapReinit), "REINIT"},
	{uint64(PortCapDeviceMgmt), "DEVICE_MGMT"},
	{uint64(PortCapVendorClass), "VENDOR_CLASS"},
	{uint64(PortCapDRNotice), "DR_NOTICE"},
	{uint64(PortCapCapMaskNotice), "CAP_MASK_NOTICE"},
	{uint64(PortCapBootMgmt), "BOOT_MGMT"},
	{uint64(PortCapLinkLatency), "LINK_LATENCY"},
	{uint64(PortCapClientReg), "CLIENT_REG"},
	{uint64(PortCapIPBasedGIDs), "IP_BASED_GIDS"},
}

// String joins the names.
func (f PortCapFlags) String() string { return joinFlags(uint64(f), portCapNames) }

// PortCapFlags2 are more of them (enum ibv_port_cap_flags2).
type PortCapFlags2 uint16

// Port capabilities.
const (
	PortCap2SetNodeDesc          PortCapFlags2 = C.IBV_PORT_SET_NODE_DESC_SUP
	PortCap2InfoExt              PortCapFlags2 = C.IBV_PORT_INFO_EXT_SUP
	PortCap2Virt                 PortCapFlags2 = C.IBV_PORT_VIRT_SUP
	PortCap2SwitchPortStateTable PortCapFlags2 = C.IBV_PORT_SWITCH_PORT_STATE_TABLE_SUP
	PortCap2LinkWidth2X          PortCapFlags2 = C.IBV_PORT_LINK_WIDTH_2X_SUP
	PortCap2LinkSpeedHDR         PortCapFlags2 = C.IBV_PORT_LINK_SPEED_HDR_SUP
	PortCap2LinkSpeedNDR         PortCapFlags2 = C.IBV_PORT_LINK_SPEED_NDR_SUP
	PortCap2LinkSpeedXDR         PortCapFlags2 = 1 << 12 // IBV_PORT_LINK_SPEED_XDR_SUP
)

var portCap2Names = []flagName{
	{uint64(PortCap2SetNodeDesc), "SET_NODE_DESC"},
	{uint64(PortCap2InfoExt), "INFO_EXT"},
	{uint64(PortCap2Virt), "VIRT"},
	{uint64(PortCap2SwitchPortStateTable), "SWITCH_PORT_STATE_TABLE"},
	{uint64(PortCap2LinkWidth2X), "LINK_WIDTH_2X"},
	{uint64(PortCap2LinkSpeedHDR), "LINK_SPEED_HDR"},
	{uint64(PortCap2LinkSpeedNDR), "LINK_SPEED_NDR"},
	{uint64(PortCap2LinkSpeedXDR), "LINK_SPEED_XDR"},
}

// String joins the names.
func (f PortCapFlags2) String() string { return joinFlags(uint64(f), portCap2Names) }

// PortGRHRequired is the flag of a port whose paths all need a GRH, as on
// InfiniBand with more than one subnet.
const PortGRHRequired = C.IBV_QPF_GRH_REQUIRED
