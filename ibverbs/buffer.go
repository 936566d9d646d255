package ibverbs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BufferOptions say which memory AllocMR takes. The zero value is fine.
type BufferOptions struct {
	// HugePageSize backs the memory with huge pages of that many bytes
	// (2<<20, 1<<30). 0 means ordinary pages. The host must have such pages
	// free: see /sys/kernel/mm/hugepages.
	HugePageSize int
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
	mapped, err := unix.Mmap(-1, 0, (size+page-1)&^(page-1), unix.PROT_READ|unix.PROT_WRITE, flags)
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
	return b, nil
}

func (b *buffer) addr() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b.data))) }

// free gives the memory back. No device may use it any more.
func (b *buffer) free() error {
	b.pinner.Unpin()
	b.data = nil
	if b.mapped == nil {
		return nil
	}
	mapped := b.mapped
	b.mapped = nil
	return unix.Munmap(mapped)
}

// regHint explains why a registration failed.
func regHint(err error, size int, access Access) error {
	switch {
	case errors.Is(err, syscall.ENOMEM):
		return hint(err, "%s; raise it with ulimit -l, LimitMEMLOCK= (systemd) or /etc/security/limits.conf",
			memlock(size))
	case errors.Is(err, syscall.EINVAL) && access&(AccessRemoteWrite|AccessRemoteAtomic) != 0 && access&AccessLocalWrite == 0:
		return hint(err, "%v needs LOCAL_WRITE too", access)
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
