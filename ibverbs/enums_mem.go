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
