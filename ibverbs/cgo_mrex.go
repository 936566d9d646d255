package ibverbs

// DMA handles, extended registration and buffers of the provider's.

// #include "shim_dm.h"
import "C"

import "unsafe"

// C objects that the oldest rdma-core has no types for.
type (
	cDMAH unsafe.Pointer // struct ibv_dmah *
	cBuf  unsafe.Pointer // struct ibv_buf *
)

func dmahInitAttrToC(a *DMAHInitAttr) C.struct_gv_dmah_init_attr {
	return C.struct_gv_dmah_init_attr{
		comp_mask:    C.uint32_t(a.Mask),
		cpu_id:       C.uint32_t(a.CPUID),
		ph:           C.uint8_t(a.PH),
		tph_mem_type: C.uint8_t(a.MemType),
	}
}

func allocDMAH(ctx *cContext, attr *DMAHInitAttr) (cDMAH, error) {
	if err := newerVerb("ibv_alloc_dmah", 59); err != nil {
		return nil, err
	}
	c := dmahInitAttrToC(attr)
	h, errno := C.gv_alloc_dmah(ctx, &c)
	return cDMAH(h), nullErr(h == nil, errno)
}

func deallocDMAH(h cDMAH) error {
	ret, errno := C.gv_dealloc_dmah(unsafe.Pointer(h))
	return retErr(int(ret), errno)
}

// mrInitMask names fields of struct ibv_mr_init_attr (enum ibv_mr_init_attr_mask,
// of rdma-core 59 and later).
type mrInitMask uint32

const (
	mrInitIOVA     mrInitMask = 1 << 0 // IBV_REG_MR_MASK_IOVA
	mrInitAddr     mrInitMask = 1 << 1 // IBV_REG_MR_MASK_ADDR
	mrInitFD       mrInitMask = 1 << 2 // IBV_REG_MR_MASK_FD
	mrInitFDOffset mrInitMask = 1 << 3 // IBV_REG_MR_MASK_FD_OFFSET
	mrInitDMAH     mrInitMask = 1 << 4 // IBV_REG_MR_MASK_DMAH
)

// mrInitAttrToC tells what to register of r, whose buffer is pinned.
func mrInitAttrToC(r *region, attr *MRInitAttr) C.struct_gv_mr_init_attr {
	mask := mrInitIOVA
	c := C.struct_gv_mr_init_attr{
		length: C.size_t(r.length),
		access: C.int(r.access &^ AccessZeroBased), // in iova, as for regMR
		iova:   C.uint64_t(r.addr),
	}
	if d := attr.DMABuf; d != nil {
		mask |= mrInitFD | mrInitFDOffset
		c.fd, c.fd_offset = C.int(d.FD), C.uint64_t(d.Offset)
	} else {
		mask |= mrInitAddr
		c.addr = C.uintptr_t(r.buf.addr())
	}
	if attr.DMAH != nil {
		mask |= mrInitDMAH
		c.dmah = unsafe.Pointer(attr.DMAH.dmah)
	}
	c.comp_mask = C.uint64_t(mask)
	return c
}

func regMREx(pd *cPD, r *region, attr *MRInitAttr) (*cMR, error) {
	if err := newerVerb("ibv_reg_mr_ex", 59); err != nil {
		return nil, err
	}
	c := mrInitAttrToC(r, attr)
	mr, errno := C.gv_reg_mr_ex(pd, &c)
	return mr, nullErr(mr == nil, errno)
}

func allocBuf(pd *cPD, size int) (cBuf, []byte, error) {
	if err := newerVerb("ibv_alloc_buf", 64); err != nil {
		return nil, nil, err
	}
	var buf unsafe.Pointer
	mem, errno := C.gv_alloc_buf(pd, C.size_t(size), &buf)
	if mem == nil {
		return nil, nil, nullErr(true, errno)
	}
	return cBuf(buf), unsafe.Slice((*byte)(mem), size), nil
}

func freeBuf(buf cBuf) { C.gv_free_buf(unsafe.Pointer(buf)) }

func exportBuf(buf cBuf) (int, error) {
	if err := newerVerb("ibv_export_buf_dmabuf_fd", 65); err != nil {
		return -1, err
	}
	fd, errno := C.gv_export_buf_dmabuf_fd(unsafe.Pointer(buf))
	return int(fd), nullErr(fd < 0, errno)
}

func regBufMR(pd *cPD, buf cBuf, part []byte, access Access) (*cMR, error) {
	if err := newerVerb("ibv_reg_buf_mr", 64); err != nil {
		return nil, err
	}
	mr, errno := C.gv_reg_buf_mr(pd, unsafe.Pointer(buf), unsafe.Pointer(&part[0]), C.size_t(len(part)), C.int(access))
	return mr, nullErr(mr == nil, errno)
}
