package ibverbs

// Memory regions: registration in all its forms.

// #include "shim_mem.h"
import "C"

func regMR(pd *cPD, addr uintptr, length int, iova uint64, access Access) (*cMR, error) {
	mr, errno := C.gv_reg_mr(pd, C.uintptr_t(addr), C.size_t(length), C.uint64_t(iova), C.uint(access))
	return mr, nullErr(mr == nil, errno)
}

func mrKeys(mr *cMR) (lkey, rkey, number uint32) {
	return uint32(mr.lkey), uint32(mr.rkey), uint32(mr.handle)
}

func deregMR(mr *cMR) error {
	ret, errno := C.ibv_dereg_mr(mr)
	return retErr(int(ret), errno)
}
