package ibverbs

// Thread domains and parent domains.

// #include "shim.h"
import "C"

type cTD = C.struct_ibv_td

func allocTD(ctx *cContext) (*cTD, error) {
	var attr C.struct_ibv_td_init_attr
	td, errno := C.ibv_alloc_td(ctx, &attr)
	return td, nullErr(td == nil, errno)
}

func deallocTD(td *cTD) error {
	ret, errno := C.ibv_dealloc_td(td)
	return retErr(int(ret), errno)
}

func parentDomainAttrToC(pd *cPD, td *cTD) C.struct_ibv_parent_domain_init_attr {
	return C.struct_ibv_parent_domain_init_attr{pd: pd, td: td}
}

func allocParentDomain(ctx *cContext, pd *cPD, td *cTD) (*cPD, error) {
	attr := parentDomainAttrToC(pd, td)
	parent, errno := C.ibv_alloc_parent_domain(ctx, &attr)
	return parent, nullErr(parent == nil, errno)
}
