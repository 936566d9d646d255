package ibverbs

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ExportFD gives a file by which another process can share this open device:
// send it over a Unix socket (SCM_RIGHTS), and let it call ImportDevice there.
// The caller closes it. Whoever has it can do to the device's objects whatever
// this process can.
func (d *Device) ExportFD() (*os.File, error) {
	var f *os.File
	err := d.call("dup", func() error {
		fd, err := unix.FcntlInt(uintptr(cmdFD(d.ctx)), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			f = os.NewFile(uintptr(fd), "/dev/infiniband/"+d.info.UverbsName)
		}
		return err
	})
	return f, err
}

// ImportDevice shares a device that another process has open:
// ibv_import_device(3). fd is what its Device.ExportFD gave, and remains the
// caller's to close. Import its PDs and MRs with ImportPD and ImportMR.
//
// All processes that share a device see one set of objects: one must not close
// what another still uses. Few drivers can share: the others give an error that
// satisfies errors.ErrUnsupported. A file that is no RDMA device gives EINVAL.
func ImportDevice(fd *os.File) (*Device, error) {
	const op = "ibv_import_device"
	conn, err := fd.SyscallConn()
	if err != nil {
		return nil, wrap(op, "", err)
	}
	dup := -1
	if conn.Control(func(fd uintptr) {
		dup, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	}) != nil {
		err = os.ErrClosed // all that Control fails for
	}
	if err != nil {
		return nil, wrap(op, fd.Name(), err)
	}
	return importDup(dup)
}

// importDup takes dup over.
func importDup(dup int) (*Device, error) {
	const op = "ibv_import_device"
	ctx, info, err := importDevice(dup)
	if err != nil {
		unix.Close(dup)
		return nil, wrap(op, fmt.Sprintf("fd %d", dup), err)
	}
	return newDevice(ctx, info), nil
}

// Number is the kernel's number of the PD, by which a process that shares the
// device names it in ImportPD; 0 after Close.
func (pd *PD) Number() uint32 {
	if pd.acquire() != nil {
		return 0
	}
	defer pd.release()
	return pdNumber(pd.pd)
}

// ImportPD makes use of a PD that another process has allocated on a device
// that this one shares: ibv_import_pd(3). number is its PD.Number. Close undoes
// the import (ibv_unimport_pd(3)); the PD is its maker's to free.
func (d *Device) ImportPD(number uint32) (*PD, error) {
	pd, err := d.newPD("ibv_import_pd", nil, []*handle{&d.handle}, func() (*cPD, error) { return importPD(d.ctx, number) })
	if err == nil {
		pd.imported = true
	}
	return pd, err
}

// Number is the kernel's number of the region, by which a process that shares
// the device names it in ImportMR; 0 after Close.
func (mr *MR) Number() uint32 {
	if mr.acquire() != nil {
		return 0
	}
	defer mr.release()
	_, _, number := mrKeys(mr.mr)
	return number
}

// ImportMR makes use of a region that another process has registered on a
// device that this one shares: ibv_import_mr(3). number is its MR.Number, and
// addr its MR.Addr, by which work requests name it; this process has none of
// its memory, so Bytes is nil. Close undoes the import (ibv_unimport_mr(3)); the
// region is its maker's to deregister.
func (pd *PD) ImportMR(number uint32, addr uint64) (*MR, error) {
	var length int
	r := region{pd: pd, addr: addr}
	mr, err := newMR("ibv_import_mr", r, func() (*cMR, error) {
		c, err := importMR(pd.pd, number)
		if err == nil {
			length = mrLength(c)
		}
		return c, err
	}, &pd.handle)
	if err != nil {
		return nil, err
	}
	mr.imported = true
	imported := *mr.at.Load()
	imported.length = length
	mr.at.Store(&imported)
	return mr, nil
}
