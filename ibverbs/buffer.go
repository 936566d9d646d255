package ibverbs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/gate"
)

// BufferOptions say which memory AllocMR takes. The zero value is fine.
type BufferOptions struct {
	// HugePageSize backs the memory with huge pages of that many bytes
	// (2<<20, 1<<30). 0 means ordinary pages. The host must have such pages
	// free: see /sys/kernel/mm/hugepages.
	HugePageSize int
	// NUMANodes has the memory taken from these NUMA nodes only, such as the
	// device's own: /sys/class/infiniband/DEVICE/device/numa_node. None means
	// wherever the kernel likes. A container may need CAP_SYS_NICE for it.
	NUMANodes []int
	// IOVA is the address by which work requests and peers name the memory.
	// It must be a multiple of the page size. 0 means the memory's own
	// address; for a region that begins at 0, set AccessZeroBased. See
	// PD.RegMRIOVA.
	IOVA uint64
}

// buffer is memory of a region: mapped by us, or the caller's and pinned.
type buffer struct {
	data   []byte
	mapped []byte // whole mapping, nil for a caller's slice
	pinner runtime.Pinner
}

// mapBuffer maps size bytes of zeroed anonymous memory, rounded up to pages.
func mapBuffer(size int, opts BufferOptions) (*buffer, error) {
	page := os.Getpagesize()
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if huge := opts.HugePageSize; huge != 0 {
		if huge < page || huge&(huge-1) != 0 {
			return nil, hint(syscall.EINVAL, "HugePageSize %d is no page size", huge)
		}
		page = huge
		flags |= unix.MAP_HUGETLB | log2(huge)<<unix.MAP_HUGE_SHIFT
	}
	if size <= 0 || size > math.MaxInt-page {
		return nil, hint(syscall.EINVAL, "size %d: a memory region has at least one byte", size)
	}
	leave := gate.Control.Enter()
	mapped, err := unix.Mmap(-1, 0, (size+page-1)&^(page-1), unix.PROT_READ|unix.PROT_WRITE, flags)
	leave()
	if err == syscall.ENOMEM && opts.HugePageSize != 0 {
		err = hint(err, "no %d KiB pages free: raise /sys/kernel/mm/hugepages/hugepages-%[1]dkB/nr_hugepages",
			opts.HugePageSize>>10)
	}
	if err != nil {
		return nil, err
	}
	return &buffer{data: mapped[:size:size], mapped: mapped}, nil
}

func log2(n int) int {
	bits := 0
	for n > 1 {
		n >>= 1
		bits++
	}
	return bits
}

// pinBuffer keeps a caller's slice where it is.
func pinBuffer(data []byte) (*buffer, error) {
	if len(data) == 0 {
		return nil, hint(syscall.EINVAL, "an empty slice: a memory region has at least one byte")
	}
	b := &buffer{data: data}
	b.pinner.Pin(unsafe.SliceData(data))
	pinned.Store(b, nil)
	return b, nil
}

// pinned holds on to pinned buffers. The runtime panics when it finds a pinner
// that was forgotten with its pins, and an MR that was forgotten is a leak, no
// reason to die; nor may its memory be used for anything else.
var pinned sync.Map

// bind has the memory taken from some NUMA nodes. Nothing must have touched it.
func (b *buffer) bind(nodes []int) error {
	if len(nodes) == 0 {
		return nil
	}
	const bits, maxNodes = 8 * unsafe.Sizeof(uintptr(0)), 1024
	var mask [maxNodes / bits]uintptr
	for _, node := range nodes {
		if node < 0 || node >= maxNodes {
			return hint(syscall.EINVAL, "there is no NUMA node %d", node)
		}
		mask[uintptr(node)/bits] |= 1 << (uintptr(node) % bits)
	}
	const mpolBind = 2 // MPOL_BIND
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, b.addr(), uintptr(len(b.mapped)), mpolBind,
		uintptr(unsafe.Pointer(&mask)), maxNodes+1, 0)
	switch errno {
	case 0:
		return nil
	case syscall.EINVAL:
		return hint(errno, "are there NUMA nodes %v with memory? See /sys/devices/system/node", nodes)
	case syscall.EPERM:
		return hint(errno, "a container needs CAP_SYS_NICE to choose NUMA nodes")
	}
	return errno
}

func (b *buffer) addr() uintptr { return addrOf(b.data) }

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// iova is the address at which to register the buffer: the chosen one, 0 in its
// page, or its own.
func (b *buffer) iova(chosen uint64, access Access) (uint64, error) {
	own := uint64(b.addr())
	inPage := own % uint64(os.Getpagesize())
	switch {
	case access&AccessZeroBased != 0 && chosen != 0:
		return 0, hint(syscall.EINVAL, "%v begins at 0: choose no iova", AccessZeroBased)
	case access&AccessZeroBased != 0:
		return inPage, nil
	case chosen == 0:
		return own, nil
	case chosen%uint64(os.Getpagesize()) != inPage:
		return 0, hint(syscall.EINVAL, "iova %#x: its offset within a page must be %#x, as the memory's", chosen, inPage)
	case chosen > math.MaxUint64-uint64(len(b.data)):
		return 0, hint(syscall.EINVAL, "iova %#x: %d bytes do not fit behind it", chosen, len(b.data))
	}
	return chosen, nil
}

// free gives the memory back. No device may use it any more.
func (b *buffer) free() error {
	if b == nil {
		return nil
	}
	b.pinner.Unpin()
	pinned.Delete(b)
	b.data = nil
	if b.mapped == nil {
		return nil
	}
	mapped := b.mapped
	b.mapped = nil
	defer gate.Control.Enter()()
	return unix.Munmap(mapped)
}

// regHint explains why a registration failed.
func regHint(err error, r *region) error {
	switch size, access := r.length, r.access; {
	case errors.Is(err, syscall.ENOMEM):
		return hint(err, "%s; raise it with ulimit -l, LimitMEMLOCK= (systemd) or /etc/security/limits.conf",
			memlock(size))
	case errors.Is(err, syscall.EINVAL) && access&(AccessRemoteWrite|AccessRemoteAtomic) != 0 && access&AccessLocalWrite == 0:
		return hint(err, "%v needs LOCAL_WRITE too", access)
	case errors.Is(err, syscall.EINVAL) && access&AccessOnDemand != 0 && !hasODP(r.pd.dev.ctx):
		return fmt.Errorf("%w (%w): the device has no on-demand paging", syscall.EOPNOTSUPP, err)
	case errors.Is(err, syscall.EFAULT):
		return hint(err, "the memory is not mapped, or it is read-only and %v writes to it", access)
	}
	return err
}

// memlock tells how much memory may be locked.
func memlock(size int) string {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim); err != nil {
		return fmt.Sprintf("%d bytes to lock, and RLIMIT_MEMLOCK cannot be read: %v", size, err)
	}
	if lim.Cur == unix.RLIM_INFINITY {
		return fmt.Sprintf("%d bytes to lock, RLIMIT_MEMLOCK is unlimited", size)
	}
	return fmt.Sprintf("%d bytes to lock, RLIMIT_MEMLOCK is %d bytes", size, lim.Cur)
}
