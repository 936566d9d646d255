package ibverbs

// Memory windows.

// #include "shim.h"
import "C"

import "unsafe"

type cMW = C.struct_ibv_mw

// bind_mw's part of the work request is as C has it, or this does not compile.
// The union has no name that cgo could ask for.
const (
	bindAt = C.sizeof_struct_ibv_send_wr - 2*unsafe.Sizeof(uintptr(0)) - C.sizeof_struct_ibv_mw_bind_info

	_ = -(unsafe.Offsetof(cSendWR{}.mw) ^ bindAt)
	_ = -(unsafe.Offsetof(cSendWR{}.mwRKey) ^ (bindAt + unsafe.Sizeof(uintptr(0))))
	_ = -(unsafe.Offsetof(cSendWR{}.mr) ^ (bindAt + 2*unsafe.Sizeof(uintptr(0)) + unsafe.Offsetof(C.struct_ibv_mw_bind_info{}.mr)))
	_ = -(unsafe.Offsetof(cSendWR{}.mwAddr) ^ (bindAt + 2*unsafe.Sizeof(uintptr(0)) + unsafe.Offsetof(C.struct_ibv_mw_bind_info{}.addr)))
	_ = -(unsafe.Offsetof(cSendWR{}.mwLength) ^ (bindAt + 2*unsafe.Sizeof(uintptr(0)) + unsafe.Offsetof(C.struct_ibv_mw_bind_info{}.length)))
	_ = -(unsafe.Offsetof(cSendWR{}.mwAccess) ^ (bindAt + 2*unsafe.Sizeof(uintptr(0)) + unsafe.Offsetof(C.struct_ibv_mw_bind_info{}.mw_access_flags)))
)

func allocMW(pd *cPD, typ MWType) (*cMW, error) {
	mw, errno := C.ibv_alloc_mw(pd, uint32(typ))
	return mw, nullErr(mw == nil, errno)
}

func mwRKey(mw *cMW) uint32 { return uint32(mw.rkey) }

// setMWRKey tells the provider which key a type 2 window has: it does not note
// it itself.
func setMWRKey(mw *cMW, rkey uint32) { mw.rkey = C.uint32_t(rkey) }

func mwNumber(mw *cMW) uint32 { return uint32(mw.handle) }

func deallocMW(mw *cMW) error {
	ret, errno := C.ibv_dealloc_mw(mw)
	return retErr(int(ret), errno)
}

func mwBindInfoToC(mr *cMR, b *MWBind) C.struct_ibv_mw_bind_info {
	return C.struct_ibv_mw_bind_info{
		mr:              mr,
		addr:            C.uint64_t(b.Addr),
		length:          C.uint64_t(b.Length),
		mw_access_flags: C.uint(b.Access),
	}
}

func bindMW(qp *cQP, mw *cMW, wrID uint64, flags SendFlags, mr *cMR, b *MWBind) error {
	bind := C.struct_ibv_mw_bind{
		wr_id:      C.uint64_t(wrID),
		send_flags: C.uint(flags),
		bind_info:  mwBindInfoToC(mr, b),
	}
	ret, errno := C.ibv_bind_mw(qp, mw, &bind)
	return retErr(int(ret), errno)
}

// putBind lays out a work request that binds a window.
func (q *sendQueue) putBind(wr *SendWR, mw *cMW, mr *cMR, key uint32) {
	q.put([]SendWR{{WRID: wr.WRID, Opcode: WRBindMW, Flags: wr.Flags}})
	c := &q.wrs[0]
	c.mw = uint64(uintptr(unsafe.Pointer(mw)))
	c.mwRKey = key
	c.mr = uint64(uintptr(unsafe.Pointer(mr)))
	c.mwAddr = wr.Bind.Addr
	c.mwLength = wr.Bind.Length
	c.mwAccess = uint32(wr.Bind.Access)
}
