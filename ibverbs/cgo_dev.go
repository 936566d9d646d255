package ibverbs

// #include "shim_dev.h"
// #include <stdlib.h>
import "C"

import (
	"time"
	"unsafe"

	"github.com/goverbs/goverbs/internal/gate"
)

// Named for files without cgo.
type (
	cDeviceAttrEx = C.struct_ibv_device_attr_ex
	cValuesEx     = C.struct_ibv_values_ex
)

// The place of active_speed_ex in rdma-core 56 and later: behind all that 44
// has.
const _ = uint(52 - unsafe.Offsetof(C.struct_ibv_port_attr{}.port_cap_flags2) - 2)

func queryDeviceEx(ctx *cContext) (DeviceAttrEx, error) {
	var attr C.struct_ibv_device_attr_ex
	ret, errno := C.gv_query_device_ex(ctx, &attr)
	if err := retErr(int(ret), errno); err != nil {
		return DeviceAttrEx{}, err
	}
	return deviceAttrExFromC(&attr), nil
}

func deviceAttrExFromC(a *C.struct_ibv_device_attr_ex) DeviceAttrEx {
	return DeviceAttrEx{
		DeviceAttr: deviceAttrFromC(&a.orig_attr),
		ODP: ODPCaps{
			General: ODPGeneral(a.odp_caps.general_caps),
			RC:      ODPTransport(a.odp_caps.per_transport_caps.rc_odp_caps),
			UC:      ODPTransport(a.odp_caps.per_transport_caps.uc_odp_caps),
			UD:      ODPTransport(a.odp_caps.per_transport_caps.ud_odp_caps),
			XRC:     ODPTransport(a.xrc_odp_caps),
		},
		CompletionTimestampMask: uint64(a.completion_timestamp_mask),
		HCACoreClock:            uint64(a.hca_core_clock),
		CapFlagsEx:              DeviceCapFlags(a.device_cap_flags_ex),
		TSO: TSOCaps{
			MaxTSO:        uint32(a.tso_caps.max_tso),
			SupportedQPTs: QPTypes(a.tso_caps.supported_qpts),
		},
		RSS: RSSCaps{
			SupportedQPTs:     QPTypes(a.rss_caps.supported_qpts),
			MaxRWQIndTables:   uint32(a.rss_caps.max_rwq_indirection_tables),
			MaxRWQIndTableLen: uint32(a.rss_caps.max_rwq_indirection_table_size),
			RXHashFields:      RXHashFields(a.rss_caps.rx_hash_fields_mask),
			RXHashFunctions:   RXHashFunc(a.rss_caps.rx_hash_function),
		},
		MaxWQTypeRQ: uint32(a.max_wq_type_rq),
		PacketPacing: PacketPacingCaps{
			RateLimitMin:  uint32(a.packet_pacing_caps.qp_rate_limit_min),
			RateLimitMax:  uint32(a.packet_pacing_caps.qp_rate_limit_max),
			SupportedQPTs: QPTypes(a.packet_pacing_caps.supported_qpts),
		},
		RawPacket: RawPacketCaps(a.raw_packet_caps),
		TM: TMCaps{
			MaxRndvHdrSize: uint32(a.tm_caps.max_rndv_hdr_size),
			MaxNumTags:     uint32(a.tm_caps.max_num_tags),
			RC:             a.tm_caps.flags&C.IBV_TM_CAP_RC != 0,
			MaxOps:         uint32(a.tm_caps.max_ops),
			MaxSGE:         uint32(a.tm_caps.max_sge),
		},
		CQModeration: CQModerationCaps{
			MaxCount:  uint16(a.cq_mod_caps.max_cq_count),
			MaxPeriod: time.Duration(a.cq_mod_caps.max_cq_period) * time.Microsecond,
		},
		MaxDMSize: uint64(a.max_dm_size),
		PCIAtomic: PCIAtomicCaps{
			FetchAdd:    PCIAtomicSizes(a.pci_atomic_caps.fetch_add),
			Swap:        PCIAtomicSizes(a.pci_atomic_caps.swap),
			CompareSwap: PCIAtomicSizes(a.pci_atomic_caps.compare_swap),
		},
		PhysPortCountEx: uint32(a.phys_port_cnt_ex),
	}
}

func queryPort(ctx *cContext, port uint8) (PortAttr, error) {
	defer gate.Control.Enter()()
	var attr C.struct_ibv_port_attr
	var speed C.uint32_t
	ret, errno := C.gv_query_port(ctx, C.uint8_t(port), &attr, &speed)
	if err := retErr(int(ret), errno); err != nil {
		return PortAttr{}, err
	}
	p := portAttrFromC(&attr)
	if speed != 0 {
		p.ActiveSpeed = PortSpeed(speed)
	}
	return p, nil
}

func queryPortSpeed(ctx *cContext, port uint8) (hundredMbps uint64, err error) {
	var speed C.uint64_t
	ret, errno := C.gv_query_port_speed(ctx, C.uint32_t(port), &speed)
	return uint64(speed), retErr(int(ret), errno)
}

func queryRawClock(ctx *cContext) (time.Duration, error) {
	values := C.struct_ibv_values_ex{comp_mask: C.IBV_VALUES_MASK_RAW_CLOCK}
	ret, errno := C.gv_query_rt_values(ctx, &values)
	return rawClockFromC(&values), retErr(int(ret), errno)
}

func rawClockFromC(v *C.struct_ibv_values_ex) time.Duration {
	return time.Duration(v.raw_clock.tv_sec)*time.Second + time.Duration(v.raw_clock.tv_nsec)
}

func queryGIDEx(ctx *cContext, port uint8, index int) (GIDEntry, error) {
	var entry C.struct_ibv_gid_entry
	ret, errno := C.gv_query_gid_ex(ctx, C.uint32_t(port), C.uint32_t(index), &entry)
	if err := retErr(int(ret), errno); err != nil {
		return GIDEntry{}, err
	}
	return gidEntryFromC(&entry), nil
}

// pkeyIndex takes the key in network order.
func pkeyIndex(ctx *cContext, port uint8, pkey [2]byte) (int, error) {
	index, errno := C.ibv_get_pkey_index(ctx, C.uint8_t(port), *(*C.__be16)(unsafe.Pointer(&pkey)))
	if index < 0 {
		return 0, retErr(int(index), errno)
	}
	return int(index), nil
}

func deviceIndex(ctx *cContext) int { return int(C.ibv_get_device_index(ctx.device)) }

func qpTypeSupported(caps uint32, typ QPType) bool {
	return C.gv_is_qpt_supported(C.uint32_t(caps), C.int(typ)) != 0
}

// libibverbs' own texts.
func nodeTypeText(t NodeType) string { return C.GoString(C.ibv_node_type_str(int32(t))) }

func portStateText(s PortState) string { return C.GoString(C.ibv_port_state_str(uint32(s))) }

func wcStatusText(s WCStatus) string { return C.GoString(C.ibv_wc_status_str(uint32(s))) }

func rateMult(r Rate) int { return int(C.ibv_rate_to_mult(uint32(r))) }

func rateMbps(r Rate) int { return int(C.ibv_rate_to_mbps(uint32(r))) }

func rateFromMult(mult int) Rate { return Rate(C.mult_to_ibv_rate(C.int(mult))) }

func rateFromMbps(mbps int) Rate { return Rate(C.mbps_to_ibv_rate(C.int(mbps))) }

func forkInit() error {
	ret, errno := C.ibv_fork_init()
	return retErr(int(ret), errno)
}

func forkStatus() ForkStatus { return ForkStatus(C.ibv_is_fork_initialized()) }
