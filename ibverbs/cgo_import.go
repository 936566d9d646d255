package ibverbs

// #include "shim.h"
import "C"

func cmdFD(ctx *cContext) int { return int(ctx.cmd_fd) }

// importDevice takes fd over where it succeeds.
func importDevice(fd int) (*cContext, DeviceInfo, error) {
	ctx, errno := C.ibv_import_device(C.int(fd))
	if err := nullErr(ctx == nil, errno); err != nil {
		return nil, DeviceInfo{}, err
	}
	return ctx, deviceInfoFromC(ctx.device), nil
}

func importPD(ctx *cContext, number uint32) (*cPD, error) {
	pd, errno := C.ibv_import_pd(ctx, C.uint32_t(number))
	return pd, nullErr(pd == nil, errno)
}

func unimportPD(pd *cPD) { C.ibv_unimport_pd(pd) }

func importMR(pd *cPD, number uint32) (*cMR, error) {
	mr, errno := C.ibv_import_mr(pd, C.uint32_t(number))
	return mr, nullErr(mr == nil, errno)
}

func mrLength(mr *cMR) int { return int(mr.length) }

func unimportMR(mr *cMR) { C.ibv_unimport_mr(mr) }
