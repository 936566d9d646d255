package ibverbs

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
)

// MR is a memory region: memory that a device may read and write.
//
// Its memory is the device's from the moment a work request that names it is
// posted until that work request's completion has been polled, and at any time
// where a peer has its RKey. It is safe for concurrent use; the memory is as
// safe as any shared memory.
type MR struct {
	handle
	mr *cMR
	at atomic.Pointer[region] // Rereg puts another one here

	imported bool // another process's

	changing sync.Mutex // one Rereg at a time
	spare    []*buffer  // what the device may still use after a Rereg that failed; under changing
}

// region is what an MR covers, and the keys for it.
type region struct {
	pd         *PD
	buf        *buffer // nil where the region has no memory of this process
	addr       uint64  // as work requests and peers give it
	length     int
	access     Access
	lkey, rkey uint32
	lost       bool // by a Rereg that failed: not to be used
}

// AllocMR allocates and registers size bytes: mmap(2) and ibv_reg_mr(3). The
// memory is zeroed, page-aligned and outside of Go's heap. Close frees it: no
// slice of it may be used after that.
//
// ENOMEM means RLIMIT_MEMLOCK more often than memory: the error shows it.
func (pd *PD) AllocMR(size int, access Access, opts BufferOptions) (*MR, error) {
	buf, err := mapBuffer(size, opts)
	if err != nil {
		return nil, wrap("mmap", pd.object, err)
	}
	if err := buf.bind(opts.NUMANodes); err != nil {
		buf.free()
		return nil, wrap("mbind", pd.object, err)
	}
	return pd.regBuffer(buf, opts.IOVA, access)
}

// RegMR registers a caller's slice: ibv_reg_mr(3). The slice is pinned until
// Close: it neither moves nor is collected. It may be Go memory or mapped
// memory, which must stay mapped.
//
// Registration covers whole pages, and Go's heap shares its pages with other
// objects: prefer AllocMR, above all for memory that a peer may write.
func (pd *PD) RegMR(buf []byte, access Access) (*MR, error) {
	return pd.RegMRIOVA(buf, 0, access)
}

// RegMRIOVA is RegMR with an address of the caller's choice, by which work
// requests and peers name the memory: ibv_reg_mr_iova(3). iova must have the
// same offset within a page as the slice has, or registration fails with
// EINVAL. 0 stands for the slice's own address; for a region that begins at 0,
// set AccessZeroBased.
//
// Soft-iWARP would take an iova and not heed it: there the error satisfies
// errors.ErrUnsupported.
func (pd *PD) RegMRIOVA(buf []byte, iova uint64, access Access) (*MR, error) {
	b, err := pinBuffer(buf)
	if err != nil {
		return nil, wrap("ibv_reg_mr", pd.object, err)
	}
	return pd.regBuffer(b, iova, access)
}

// regBuffer takes over buf: it frees it where registration fails.
func (pd *PD) regBuffer(buf *buffer, iova uint64, access Access) (*MR, error) {
	r := region{pd: pd, buf: buf, length: len(buf.data), access: access}
	op, err := "ibv_reg_mr", error(nil)
	if r.addr, err = pd.iova(buf, iova, access); r.addr != uint64(buf.addr()) {
		op = "ibv_reg_mr_iova"
	}
	if err != nil {
		buf.free()
		return nil, wrap(op, pd.object, err)
	}
	return newMR(op, r, func() (*cMR, error) {
		c, err := regMR(pd.pd, buf.addr(), uint64(r.length), r.addr, access)
		return c, regHint(err, &r)
	}, &pd.handle)
}

// iova is the address at which to register a buffer, which Soft-iWARP does not
// let one choose.
func (pd *PD) iova(buf *buffer, chosen uint64, access Access) (uint64, error) {
	addr, err := buf.iova(chosen, access)
	if err == nil && addr != uint64(buf.addr()) && pd.dev.isSIW() {
		err = hint(syscall.EOPNOTSUPP, "Soft-iWARP knows memory by its own address only")
	}
	return addr, err
}

// newMR registers what r says, and takes over its buffer: it frees it where
// that fails.
func newMR(op string, r region, register func() (*cMR, error), parents ...*handle) (*MR, error) {
	mr := &MR{}
	err := mr.adopt("MR", parents...)
	if err == nil {
		if mr.mr, err = register(); err != nil {
			mr.disown()
		}
	}
	if err != nil {
		r.buf.free()
		return nil, wrap(op, r.pd.object, err)
	}
	var number uint32
	r.lkey, r.rkey, number = mrKeys(mr.mr)
	mr.at.Store(&r)
	mr.named("%s/mr%d", r.pd.object, number)
	watch(mr, &mr.handle)
	return mr, nil
}

// Bytes is the memory; nil after Close, and where the region has no memory of
// this process.
func (mr *MR) Bytes() []byte {
	if mr.acquire() != nil {
		return nil
	}
	defer mr.release()
	if buf := mr.at.Load().buf; buf != nil {
		return buf.data
	}
	return nil
}

// Addr is the address of the first byte, which a peer names as RemoteAddr.
func (mr *MR) Addr() uint64 { return mr.at.Load().addr }

// Len is the region's length in bytes.
func (mr *MR) Len() int { return mr.at.Load().length }

// Access is what may be done to the region.
func (mr *MR) Access() Access { return mr.at.Load().access }

// LKey is the key of local work requests.
func (mr *MR) LKey() uint32 { return mr.at.Load().lkey }

// RKey is the key that a peer needs for READ, WRITE and atomics. It is secret
// only in so far as 32 bits are.
func (mr *MR) RKey() uint32 { return mr.at.Load().rkey }

// PD is the PD that the region belongs to.
func (mr *MR) PD() *PD { return mr.at.Load().pd }

// SGE names length bytes from off on in a work request. Bytes that are not
// within the region make an SGE that no work request can be posted with:
// PostSend and PostRecv say so.
func (mr *MR) SGE(off, length int) SGE {
	r := mr.at.Load()
	if r.lost || off < 0 || length < 0 || off > r.length || length > r.length-off || uint64(length) > math.MaxUint32 {
		return outside
	}
	return SGE{Addr: r.addr + uint64(off), Length: uint32(length), LKey: r.lkey}
}

// SGEOf names a part of the region's memory, which b is a slice of. It is as
// SGE is for bytes that are not within the region.
func (mr *MR) SGEOf(b []byte) SGE {
	r := mr.at.Load()
	start := r.addr // no memory of this process: b's own address counts
	if r.buf != nil {
		start = uint64(r.buf.addr())
	}
	at := uint64(addrOf(b))
	if at < start || at-start > math.MaxInt {
		return outside
	}
	return mr.SGE(int(at-start), len(b))
}

// outsideAddr is outside's address, which no memory has.
const outsideAddr = math.MaxUint64

// outside is the SGE for memory that its region does not have.
var outside = SGE{Addr: outsideAddr, Length: math.MaxUint32, LKey: math.MaxUint32}

// checkSGEs finds SGEs that MR.SGE made for memory that is not there.
func checkSGEs(list []SGE) error {
	for i := range list {
		if list[i] == outside {
			return hint(syscall.EINVAL, "SGE %d is outside of its memory region", i)
		}
	}
	return nil
}

// Close deregisters the memory, and frees or unpins it: ibv_dereg_mr(3). It
// fails with EBUSY while a memory window is bound to it, and is nil when
// called again. Close QPs whose work requests name the region, or poll those
// work requests' completions, first.
func (mr *MR) Close() error {
	return mr.close("ibv_dereg_mr", nil, func() error {
		if mr.imported {
			unimportMR(mr.mr)
			return nil
		}
		if err := deregMR(mr.mr); err != nil {
			return mr.deregHint(err)
		}
		return mr.free()
	})
}

// free gives back all memory that the device has had.
func (mr *MR) free() error {
	err := mr.at.Load().buf.free()
	for _, buf := range mr.spare {
		err = errors.Join(err, buf.free())
	}
	return err
}

// deregHint makes EBUSY of EINVAL, with which rxe says that a window is bound.
func (mr *MR) deregHint(err error) error {
	if errors.Is(err, syscall.EINVAL) && mr.Access()&AccessMWBind != 0 {
		return fmt.Errorf("%w (%w): is a memory window bound to it? Invalidate or close that first", syscall.EBUSY, err)
	}
	return err
}
