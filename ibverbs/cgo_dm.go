package ibverbs

// Device memory.

// #include "shim_dm.h"
import "C"

import "unsafe"

type cDM = C.struct_ibv_dm

func allocDMAttrToC(length int, opts DMOptions) C.struct_ibv_alloc_dm_attr {
	return C.struct_ibv_alloc_dm_attr{length: C.size_t(length), log_align_req: C.uint32_t(opts.LogAlign)}
}

func allocDM(ctx *cContext, length int, opts DMOptions) (*cDM, error) {
	attr := allocDMAttrToC(length, opts)
	dm, errno := C.ibv_alloc_dm(ctx, &attr)
	return dm, nullErr(dm == nil, errno)
}

func importDM(ctx *cContext, number uint32) (*cDM, error) {
	dm, errno := C.ibv_import_dm(ctx, C.uint32_t(number))
	return dm, nullErr(dm == nil, errno)
}

func dmNumber(dm *cDM) uint32 { return uint32(dm.handle) }

func memcpyToDM(dm *cDM, p []byte, off uint64) error {
	ret, errno := C.ibv_memcpy_to_dm(dm, C.uint64_t(off), unsafe.Pointer(&p[0]), C.size_t(len(p)))
	return retErr(int(ret), errno)
}

func memcpyFromDM(dm *cDM, p []byte, off uint64) error {
	ret, errno := C.ibv_memcpy_from_dm(unsafe.Pointer(&p[0]), dm, C.uint64_t(off), C.size_t(len(p)))
	return retErr(int(ret), errno)
}

func regDMMR(pd *cPD, dm *cDM, off, length int, access Access) (*cMR, error) {
	mr, errno := C.ibv_reg_dm_mr(pd, dm, C.uint64_t(off), C.size_t(length), C.uint(access))
	return mr, nullErr(mr == nil, errno)
}

func dmExportDMABuf(dm *cDM) (int, error) {
	if err := newerVerb("ibv_dm_export_dmabuf_fd", 62); err != nil {
		return -1, err
	}
	fd, errno := C.gv_dm_export_dmabuf_fd(dm)
	return int(fd), nullErr(fd < 0, errno)
}

func freeDM(dm *cDM) error {
	ret, errno := C.ibv_free_dm(dm)
	return retErr(int(ret), errno)
}

func unimportDM(dm *cDM) { C.ibv_unimport_dm(dm) }
