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
