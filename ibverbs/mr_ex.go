package ibverbs

import (
	"os"
	"syscall"
)

// DMAH is a DMA handle: hints on how the bus should carry a region's data
// (PCIe TPH), such as into which processor's cache. It is safe for concurrent
// use.
type DMAH struct {
	handle
	dev  *Device
	dmah cDMAH
}

// DMAHInitAttr says what to hint at (struct ibv_dmah_init_attr).
type DMAHInitAttr struct {
	Mask    DMAHMask   // which of the others are set
	CPUID   uint32     // the processor that will look at the data
	PH      uint8      // PCIe processing hints: 0 to 3
	MemType TPHMemType // what kind of memory it is
}

// AllocDMAH allocates a DMA handle: ibv_alloc_dmah(3), from rdma-core 59 on.
// The caller closes it, after its regions. A device or an rdma-core without
// them gives an error that satisfies errors.ErrUnsupported.
func (d *Device) AllocDMAH(attr DMAHInitAttr) (*DMAH, error) {
	const op = "ibv_alloc_dmah"
	h := &DMAH{dev: d}
	err := h.adopt("DMAH", &d.handle)
	if err == nil {
		if h.dmah, err = allocDMAH(d.ctx, &attr); err != nil {
			h.disown()
		}
	}
	if err != nil {
		return nil, wrap(op, d.object, err)
	}
	h.named("%s/dmah%d", d.object, d.serial.Add(1))
	watch(h, &h.handle)
	return h, nil
}

// Device is the device that the handle belongs to.
func (h *DMAH) Device() *Device { return h.dev }

// Close frees the handle: ibv_dealloc_dmah(3). It fails with EBUSY while
// regions that were registered with it are open, and is nil when called again.
func (h *DMAH) Close() error {
	return h.close("ibv_dealloc_dmah", nil, func() error { return deallocDMAH(h.dmah) })
}

// DMABuf is a part of a dma-buf: see PD.RegDMABufMR.
type DMABuf struct {
	FD     int
	Offset uint64
	Length int
}

// MRInitAttr says what to register, and how (struct ibv_mr_init_attr). One of
// Buf and DMABuf is set.
type MRInitAttr struct {
	Buf    []byte  // memory of this process, pinned as RegMR pins it
	DMABuf *DMABuf // or memory of somebody else's
	Access Access
	IOVA   uint64 // as for RegMRIOVA and RegDMABufMR
	DMAH   *DMAH  // nil means none
}

// RegMREx registers memory in any of the other ways, and with a DMA handle:
// ibv_reg_mr_ex(3), from rdma-core 59 on. What device or rdma-core lack gives
// an error that satisfies errors.ErrUnsupported.
func (pd *PD) RegMREx(attr MRInitAttr) (*MR, error) {
	const op = "ibv_reg_mr_ex"
	r := region{pd: pd, access: attr.Access}
	parents := []*handle{&pd.handle}
	err := attr.fill(&r)
	if err == nil && attr.DMAH != nil {
		if attr.DMAH.dev != pd.dev {
			err = hint(syscall.EINVAL, "%v is another device's", attr.DMAH)
		}
		parents = append(parents, &attr.DMAH.handle)
	}
	if err != nil {
		r.buf.free()
		return nil, wrap(op, pd.object, err)
	}
	return newMR(op, r, func() (*cMR, error) {
		c, err := regMREx(pd.pd, &r, &attr)
		return c, regHint(err, &r)
	}, parents...)
}

// fill checks what is to be registered, and pins it.
func (attr *MRInitAttr) fill(r *region) (err error) {
	switch d := attr.DMABuf; {
	case (d == nil) == (attr.Buf == nil):
		return hint(syscall.EINVAL, "set one of Buf and DMABuf")
	case d != nil:
		r.addr, r.length = attr.IOVA, d.Length
		return checkDMABuf(d.FD, d.Offset, d.Length, attr.IOVA)
	}
	if r.buf, err = pinBuffer(attr.Buf); err != nil {
		return err
	}
	r.length = len(attr.Buf)
	r.addr, err = r.pd.iova(r.buf, attr.IOVA, attr.Access)
	return err
}

// Buf is memory that a provider has allocated as suits its device, or as a
// confidential virtual machine's devices can reach it. It is safe for concurrent
// use; the memory is as safe as any shared memory.
type Buf struct {
	handle
	pd   *PD
	buf  cBuf
	data []byte
}

// AllocBuf allocates size bytes, page-aligned and not zeroed: ibv_alloc_buf(3),
// from rdma-core 64 on; an older one gives an error that satisfies
// errors.ErrUnsupported. The caller closes it, after its regions.
func (pd *PD) AllocBuf(size int) (*Buf, error) {
	const op = "ibv_alloc_buf"
	if size <= 0 {
		return nil, wrap(op, pd.object, hint(syscall.EINVAL, "size %d: a buffer has at least one byte", size))
	}
	b := &Buf{pd: pd}
	err := b.adopt("buffer", &pd.handle)
	if err == nil {
		if b.buf, b.data, err = allocBuf(pd.pd, size); err != nil {
			b.disown()
		}
	}
	if err != nil {
		return nil, wrap(op, pd.object, err)
	}
	b.named("%s/buf%d", pd.object, pd.dev.serial.Add(1))
	watch(b, &b.handle)
	return b, nil
}

// Bytes is the memory; nil after Close, when no slice of it may be used.
func (b *Buf) Bytes() []byte {
	if b.acquire() != nil {
		return nil
	}
	defer b.release()
	return b.data
}

// ExportDMABuf gives the memory to others as a dma-buf, which the caller
// closes: ibv_export_buf_dmabuf_fd(3), from rdma-core 65 on. ENODATA means that
// it is ordinary memory.
func (b *Buf) ExportDMABuf() (*os.File, error) {
	const op = "ibv_export_buf_dmabuf_fd"
	var f *os.File
	err := b.call(op, func() error {
		fd, err := exportBuf(b.buf)
		if err == nil {
			f = os.NewFile(uintptr(fd), b.object)
		}
		return err
	})
	return f, err
}

// RegBufMR registers length bytes of a buffer of this PD, from off on:
// ibv_reg_buf_mr(3). The buffer closes after the region.
func (pd *PD) RegBufMR(b *Buf, off, length int, access Access) (*MR, error) {
	const op = "ibv_reg_buf_mr"
	var err error
	switch {
	case b == nil:
		err = hint(syscall.EINVAL, "no buffer")
	case b.pd != pd:
		err = hint(syscall.EINVAL, "%v is another PD's", b)
	case off < 0 || length <= 0 || off > len(b.data) || length > len(b.data)-off:
		err = hint(syscall.EINVAL, "%d bytes from %d on: %v has %d", length, off, b, len(b.data))
	}
	if err != nil {
		return nil, wrap(op, pd.object, err)
	}
	part := b.data[off : off+length : off+length]
	r := region{pd: pd, buf: &buffer{data: part}, addr: uint64(addrOf(part)), length: length, access: access}
	return newMR(op, r, func() (*cMR, error) {
		c, err := regBufMR(pd.pd, b.buf, part, access)
		return c, regHint(err, &r)
	}, &pd.handle, &b.handle)
}

// Close frees the memory: ibv_free_buf(3). It fails with EBUSY while regions of
// it are open, and is nil when called again.
func (b *Buf) Close() error {
	return b.close("ibv_free_buf", nil, func() error {
		freeBuf(b.buf)
		return nil
	})
}
