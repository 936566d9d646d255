package ibverbs

// Memory regions: registration in all its forms.

// #include "shim_mem.h"
import "C"

import (
	"syscall"
	"unsafe"

	"github.com/goverbs/goverbs/internal/gate"
)

// regMR registers memory. AccessZeroBased is in the iova already, and the flag
// itself not for memory of this process: some drivers refuse it.
func regMR(pd *cPD, addr uintptr, length uint64, iova uint64, access Access) (*cMR, error) {
	defer gate.Control.Enter()()
	mr, errno := C.gv_reg_mr(pd, C.uintptr_t(addr), C.size_t(length), C.uint64_t(iova), C.uint(access&^AccessZeroBased))
	return mr, nullErr(mr == nil, errno)
}

func regDMABufMR(pd *cPD, fd int, offset uint64, length int, iova uint64, access Access) (*cMR, error) {
	mr, errno := C.ibv_reg_dmabuf_mr(pd, C.uint64_t(offset), C.size_t(length), C.uint64_t(iova), C.int(fd), C.int(access))
	return mr, nullErr(mr == nil, errno)
}

func allocNullMR(pd *cPD) (*cMR, error) {
	mr, errno := C.ibv_alloc_null_mr(pd)
	return mr, nullErr(mr == nil, errno)
}

func mrKeys(mr *cMR) (lkey, rkey, number uint32) {
	return uint32(mr.lkey), uint32(mr.rkey), uint32(mr.handle)
}

// reregMR changes a region to next. libibverbs returns a code of its own, and
// leaves the reason in errno.
func reregMR(mr *cMR, change ReregMRFlags, next *region) (ReregMRErrCode, error) {
	access := next.access
	if change&ReregMRAccess == 0 {
		access = 0
	}
	var addr, length uint64
	if change&ReregMRTranslation != 0 {
		addr, length = next.addr, uint64(next.length)
	}
	ret, errno := C.gv_rereg_mr(mr, C.int(change), next.pd.pd, C.uintptr_t(addr), C.size_t(length), C.int(access))
	return reregCode(int(ret), errno)
}

// reregCode reads what ibv_rereg_mr(3) returned. It says ERR_CMD too where
// provider or driver have no such call, which loses no region.
func reregCode(ret int, errno error) (ReregMRErrCode, error) {
	code := ReregMRErrCode(ret)
	switch {
	case ret == 0:
		return 0, nil
	case errno == nil:
		return code, syscall.EIO
	case code == ReregMRErrCmd && (errno == syscall.EOPNOTSUPP || errno == syscall.ENOSYS):
		return ReregMRErrInput, errno
	}
	return code, errno
}

func adviseMR(pd *cPD, advice MRAdvice, flags MRAdviseFlags, parts []SGE) error {
	ret, errno := C.ibv_advise_mr(pd, uint32(advice), C.uint32_t(flags), (*C.struct_ibv_sge)(unsafe.Pointer(&parts[0])), C.uint32_t(len(parts)))
	return retErr(int(ret), errno)
}

func deregMR(mr *cMR) error {
	defer gate.Control.Enter()()
	ret, errno := C.ibv_dereg_mr(mr)
	return retErr(int(ret), errno)
}

// hasODP tells whether the device can page memory in on demand at all.
func hasODP(ctx *cContext) bool { return C.gv_has_odp(ctx) != 0 }
