package ibverbs

import (
	"math"
	"syscall"
)

// AllocNullMR makes a region that swallows what is written to it, and reads as
// zeroes: ibv_alloc_null_mr(3). It is for SGEs of local work requests that
// stand for data that nobody wants, and any address in it is good: SGE takes
// any offset and length. A device without it gives an error that satisfies
// errors.ErrUnsupported.
func (pd *PD) AllocNullMR() (*MR, error) {
	r := region{pd: pd, length: math.MaxInt, access: AccessLocalWrite}
	return newMR("ibv_alloc_null_mr", r, func() (*cMR, error) { return allocNullMR(pd.pd) }, &pd.handle)
}

// RegDMABufMR registers length bytes of a dma-buf, from offset on:
// ibv_reg_dmabuf_mr(3). That is memory of another device, such as a GPU's, or
// memory that was allocated to be shared. iova is the address by which work
// requests and peers name it; its offset within a page must be offset's.
//
// The kernel keeps the dma-buf until Close: fd may be closed at once. Bytes is
// nil: map the fd to look into it. A device without it gives an error that
// satisfies errors.ErrUnsupported.
func (pd *PD) RegDMABufMR(fd int, offset uint64, length int, iova uint64, access Access) (*MR, error) {
	const op = "ibv_reg_dmabuf_mr"
	r := region{pd: pd, addr: iova, length: length, access: access}
	if err := checkDMABuf(fd, offset, length, iova); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	return newMR(op, r, func() (*cMR, error) {
		c, err := regDMABufMR(pd.pd, fd, offset, length, iova, access)
		return c, regHint(err, &r)
	}, &pd.handle)
}

func checkDMABuf(fd int, offset uint64, length int, iova uint64) error {
	switch {
	case fd < 0 || fd > math.MaxInt32:
		return hint(syscall.EBADF, "%d is no file descriptor", fd)
	case length <= 0:
		return hint(syscall.EINVAL, "length %d: a memory region has at least one byte", length)
	case offset > math.MaxUint64-uint64(length):
		return hint(syscall.EINVAL, "offset %#x: %d bytes do not fit behind it", offset, length)
	case iova > math.MaxUint64-uint64(length):
		return hint(syscall.EINVAL, "iova %#x: %d bytes do not fit behind it", iova, length)
	}
	return nil
}

// RegImplicitODP registers all of the process's memory, now and to come, to be
// paged in as the device needs it: ibv_reg_mr(3) of address 0 and length
// SIZE_MAX. access gets AccessOnDemand. Addresses in it are the process's own:
// SGEOf makes an SGE of any slice. The caller sees to it that the memory stays
// where it is for as long as a work request names it: use mapped memory, or a
// runtime.Pinner.
//
// DeviceAttrEx's ODP capabilities tell whether the device has it. If not, the
// error satisfies errors.ErrUnsupported.
func (pd *PD) RegImplicitODP(access Access) (*MR, error) {
	r := region{pd: pd, length: math.MaxInt, access: access | AccessOnDemand}
	return newMR("ibv_reg_mr", r, func() (*cMR, error) {
		c, err := regMR(pd.pd, 0, math.MaxUint64, 0, r.access)
		return c, regHint(err, &r)
	}, &pd.handle)
}

// AdviseMR tells what is going to happen to parts of regions with
// AccessOnDemand: ibv_advise_mr(3). With MRAdviseFlush it is done when AdviseMR
// returns; else the kernel does it some time. All regions are of this PD.
//
// Where a part is not mapped, or its region does not allow writing, the error
// is EFAULT or EPERM. A device without it gives one that satisfies
// errors.ErrUnsupported.
func (pd *PD) AdviseMR(advice MRAdvice, flags MRAdviseFlags, parts []SGE) error {
	const op = "ibv_advise_mr"
	return pd.call(op, func() error {
		if len(parts) == 0 {
			return hint(syscall.EINVAL, "no parts of regions")
		}
		if err := checkSGEs(parts); err != nil {
			return err
		}
		return adviseMR(pd.pd, advice, flags, parts)
	})
}
