package ibverbs

// #include "shim.h"
import "C"

// MWType is the type of a memory window (enum ibv_mw_type).
type MWType uint32

// Memory window types: see MW.
const (
	MWType1 MWType = C.IBV_MW_TYPE_1 // TYPE_1
	MWType2 MWType = C.IBV_MW_TYPE_2 // TYPE_2
)

// ReregMRErrCode says in what state a Rereg that failed has left the region
// (enum ibv_rereg_mr_err_code).
type ReregMRErrCode int32

// States of a region.
const (
	ReregMRErrInput           ReregMRErrCode = C.IBV_REREG_MR_ERR_INPUT               // ERR_INPUT
	ReregMRErrDontForkNew     ReregMRErrCode = C.IBV_REREG_MR_ERR_DONT_FORK_NEW       // ERR_DONT_FORK_NEW
	ReregMRErrDoForkOld       ReregMRErrCode = C.IBV_REREG_MR_ERR_DO_FORK_OLD         // ERR_DO_FORK_OLD
	ReregMRErrCmd             ReregMRErrCode = C.IBV_REREG_MR_ERR_CMD                 // ERR_CMD
	ReregMRErrCmdAndDoForkNew ReregMRErrCode = C.IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW // ERR_CMD_AND_DO_FORK_NEW
)

// ReregMRFlags say what Rereg changes (enum ibv_rereg_mr_flags).
type ReregMRFlags uint32

// What Rereg can change.
const (
	ReregMRTranslation ReregMRFlags = C.IBV_REREG_MR_CHANGE_TRANSLATION // memory and address
	ReregMRPD          ReregMRFlags = C.IBV_REREG_MR_CHANGE_PD
	ReregMRAccess      ReregMRFlags = C.IBV_REREG_MR_CHANGE_ACCESS
)

var reregNames = []flagName{
	{uint64(ReregMRTranslation), "CHANGE_TRANSLATION"},
	{uint64(ReregMRPD), "CHANGE_PD"},
	{uint64(ReregMRAccess), "CHANGE_ACCESS"},
}

// String joins the names: "CHANGE_TRANSLATION|CHANGE_PD".
func (f ReregMRFlags) String() string { return joinFlags(uint64(f), reregNames) }

// MRAdvice is what AdviseMR says of memory (enum ibv_advise_mr_advice).
type MRAdvice uint32

// Advice.
const (
	MRAdvicePrefetch        MRAdvice = C.IBV_ADVISE_MR_ADVICE_PREFETCH          // PREFETCH
	MRAdvicePrefetchWrite   MRAdvice = C.IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE    // PREFETCH_WRITE
	MRAdvicePrefetchNoFault MRAdvice = C.IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT // PREFETCH_NO_FAULT
)

// MRAdviseFlags modify AdviseMR (enum ib_uverbs_advise_mr_flag).
type MRAdviseFlags uint32

// MRAdviseFlush has AdviseMR wait until it is done.
const MRAdviseFlush MRAdviseFlags = C.IBV_ADVISE_MR_FLAG_FLUSH

var mrAdviseNames = []flagName{{uint64(MRAdviseFlush), "FLUSH"}}

// String joins the names.
func (f MRAdviseFlags) String() string { return joinFlags(uint64(f), mrAdviseNames) }

// DMAHMask names fields of a DMAHInitAttr (enum ibv_dmah_init_attr_mask, of
// rdma-core 59 and later).
type DMAHMask uint32

// DMA handle attributes.
const (
	DMAHCPUID   DMAHMask = 1 << 0 // IBV_DMAH_INIT_ATTR_MASK_CPU_ID
	DMAHPH      DMAHMask = 1 << 1 // IBV_DMAH_INIT_ATTR_MASK_PH
	DMAHMemType DMAHMask = 1 << 2 // IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE
)

var dmahNames = []flagName{
	{uint64(DMAHCPUID), "CPU_ID"},
	{uint64(DMAHPH), "PH"},
	{uint64(DMAHMemType), "TPH_MEM_TYPE"},
}

// String joins the names.
func (m DMAHMask) String() string { return joinFlags(uint64(m), dmahNames) }

// TPHMemType is a kind of memory (enum ibv_tph_mem_type, of rdma-core 59 and
// later).
type TPHMemType uint8

// Kinds of memory: IBV_TPH_MEM_TYPE_VM and IBV_TPH_MEM_TYPE_PM.
const (
	TPHVolatile   TPHMemType = 0 // VM
	TPHPersistent TPHMemType = 1 // PM
)
