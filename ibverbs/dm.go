package ibverbs

import (
	"io"
	"os"
	"syscall"
)

// DM is device memory: memory on the device itself, which work requests reach
// without crossing the bus. DeviceAttrEx tells how much there is. It is safe for
// concurrent use, and an io.ReaderAt and io.WriterAt.
type DM struct {
	handle
	dev      *Device
	dm       *cDM
	length   int
	imported bool
}

// DMOptions are what AllocDM may be told. The zero value is fine.
type DMOptions struct {
	// LogAlign is the alignment of the memory's address within the device, as
	// a power of two; 0 is none.
	LogAlign uint32
}

// AllocDM allocates length bytes of device memory: ibv_alloc_dm(3). The caller
// closes it, after its regions. A device that has none gives an error that
// satisfies errors.ErrUnsupported.
func (d *Device) AllocDM(length int, opts DMOptions) (*DM, error) {
	const op = "ibv_alloc_dm"
	if length <= 0 {
		return nil, wrap(op, d.object, hint(syscall.EINVAL, "length %d: device memory has at least one byte", length))
	}
	return d.newDM(op, &DM{dev: d, length: length}, func() (*cDM, error) { return allocDM(d.ctx, length, opts) })
}

// ImportDM makes use of device memory that another process has allocated:
// ibv_import_dm(3). The device must have been opened by importing that
// process's one; number is its DM.Number, and length as it was there. Close
// undoes the import; the memory is its maker's to free.
func (d *Device) ImportDM(number uint32, length int) (*DM, error) {
	const op = "ibv_import_dm"
	if length <= 0 {
		return nil, wrap(op, d.object, hint(syscall.EINVAL, "length %d: device memory has at least one byte", length))
	}
	return d.newDM(op, &DM{dev: d, length: length, imported: true}, func() (*cDM, error) { return importDM(d.ctx, number) })
}

func (d *Device) newDM(op string, dm *DM, create func() (*cDM, error)) (*DM, error) {
	err := dm.adopt("DM", &d.handle)
	if err == nil {
		if dm.dm, err = create(); err != nil {
			dm.disown()
		}
	}
	if err != nil {
		return nil, wrap(op, d.object, err)
	}
	dm.named("%s/dm%d", d.object, dmNumber(dm.dm))
	watch(dm, &dm.handle)
	return dm, nil
}

// Number is what another process names the memory by in ImportDM; 0 after
// Close.
func (dm *DM) Number() uint32 {
	if dm.acquire() != nil {
		return 0
	}
	defer dm.release()
	return dmNumber(dm.dm)
}

// Len is the memory's length in bytes.
func (dm *DM) Len() int { return dm.length }

// Device is the device that the memory belongs to.
func (dm *DM) Device() *Device { return dm.dev }

// ReadAt copies from device memory: ibv_memcpy_from_dm(3). It is slow: the
// processor reads it across the bus. It ends with io.EOF behind the last byte.
func (dm *DM) ReadAt(p []byte, off int64) (int, error) {
	const op = "ibv_memcpy_from_dm"
	n, err := dm.within(len(p), off)
	if err != nil {
		return 0, wrap(op, dm.object, err)
	}
	if n > 0 {
		if err := dm.call(op, func() error { return memcpyFromDM(dm.dm, p[:n], uint64(off)) }); err != nil {
			return 0, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt copies to device memory: ibv_memcpy_to_dm(3). Bytes that do not fit
// make it write nothing, and fail with EINVAL.
func (dm *DM) WriteAt(p []byte, off int64) (int, error) {
	const op = "ibv_memcpy_to_dm"
	n, err := dm.within(len(p), off)
	if err == nil && n < len(p) {
		err = hint(syscall.EINVAL, "%d bytes at offset %d: there are %d in all", len(p), off, dm.length)
	}
	if err != nil {
		return 0, wrap(op, dm.object, err)
	}
	if n == 0 {
		return 0, nil
	}
	if err := dm.call(op, func() error { return memcpyToDM(dm.dm, p, uint64(off)) }); err != nil {
		return 0, err
	}
	return n, nil
}

// within tells how many of n bytes from off on there are.
func (dm *DM) within(n int, off int64) (int, error) {
	if off < 0 {
		return 0, hint(syscall.EINVAL, "offset %d", off)
	}
	return int(min(int64(n), max(int64(dm.length)-off, 0))), nil
}

// ExportDMABuf gives the memory to others as a dma-buf, which the caller
// closes: ibv_dm_export_dmabuf_fd(3), from rdma-core 62 on.
func (dm *DM) ExportDMABuf() (*os.File, error) {
	const op = "ibv_dm_export_dmabuf_fd"
	var f *os.File
	err := dm.call(op, func() error {
		fd, err := dmExportDMABuf(dm.dm)
		if err == nil {
			f = os.NewFile(uintptr(fd), dm.object)
		}
		return err
	})
	return f, err
}

// RegDMMR registers length bytes of device memory, from off on:
// ibv_reg_dm_mr(3). access needs AccessZeroBased on most devices: offsets into
// the region are its addresses, and Addr is 0. Bytes is nil.
func (pd *PD) RegDMMR(dm *DM, off, length int, access Access) (*MR, error) {
	const op = "ibv_reg_dm_mr"
	if err := pd.checkDM(dm, off, length); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	r := region{pd: pd, length: length, access: access}
	return newMR(op, r, func() (*cMR, error) {
		c, err := regDMMR(pd.pd, dm.dm, off, length, access)
		return c, regHint(err, &r)
	}, &pd.handle, &dm.handle)
}

func (pd *PD) checkDM(dm *DM, off, length int) error {
	switch {
	case dm == nil:
		return hint(syscall.EINVAL, "no device memory")
	case dm.dev != pd.dev:
		return hint(syscall.EINVAL, "%v is another device's", dm)
	case off < 0 || length <= 0 || off > dm.length || length > dm.length-off:
		return hint(syscall.EINVAL, "%d bytes from %d on: %v has %d", length, off, dm, dm.length)
	}
	return nil
}

// Close frees the memory, or undoes the import: ibv_free_dm(3),
// ibv_unimport_dm(3). It fails with EBUSY while regions of it are open, and is
// nil when called again.
func (dm *DM) Close() error {
	if dm.imported {
		return dm.close("ibv_unimport_dm", nil, func() error {
			unimportDM(dm.dm)
			return nil
		})
	}
	return dm.close("ibv_free_dm", nil, func() error { return freeDM(dm.dm) })
}
