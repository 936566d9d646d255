package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// Where the root is put together, inside the initramfs.
const (
	lowerDir = "/lower" // the host's root file system, read-only
	upperDir = "/upper" // the tmpfs that takes what the guest writes
	rootDir  = "/root"  // both, overlaid
)

// 9p caches without asking the host again: the root is read-only and lives for one command. A share is written through,
// so that the host sees each write when it returns.
const (
	rootOptions  = "trans=virtio,version=9p2000.L,msize=512000,cache=loose"
	shareOptions = "trans=virtio,version=9p2000.L,msize=512000,cache=mmap"
)

type mount struct {
	fstype, target, options string
	flags                   uintptr
	optional                bool // a kernel may lack it
}

// do mounts m below prefix, making the mount point where it is missing.
func (m mount) do(prefix, source string) error {
	target := filepath.Join(prefix, m.target)
	if err := os.MkdirAll(target, 0o755); err != nil {
		if m.optional {
			return nil
		}
		return err
	}
	err := unix.Mount(source, target, m.fstype, m.flags, m.options)
	if err != nil && !m.optional {
		return fmt.Errorf("mount %s on %s: %w", m.fstype, m.target, err)
	}
	return nil
}

// mountKernel mounts what init itself works with.
func mountKernel() error {
	for _, m := range []mount{
		{fstype: "proc", target: "/proc"},
		{fstype: "sysfs", target: "/sys"},
		{fstype: "devtmpfs", target: "/dev"},
	} {
		if err := m.do("/", m.fstype); err != nil && !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return nil
}

// mountRoot puts the guest's root together in rootDir: the host's files below, a tmpfs above, the guest's own kernel file
// systems and scratch folders on top, and the shares.
func mountRoot(spec *wire.Spec) error {
	lower := mount{fstype: "9p", target: lowerDir, options: rootOptions, flags: unix.MS_RDONLY}
	if err := lower.do("/", "hostroot"); err != nil {
		return fmt.Errorf("%w: the host's root file system cannot be shared with the guest", err)
	}
	if err := (mount{fstype: "tmpfs", target: upperDir, options: "mode=755,size=80%"}).do("/", "rdmalab"); err != nil {
		return err
	}
	for _, dir := range []string{upperDir + "/files", upperDir + "/work"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	overlay := "lowerdir=" + lowerDir + ",upperdir=" + upperDir + "/files,workdir=" + upperDir + "/work,redirect_dir=on,volatile"
	if err := (mount{fstype: "overlay", target: rootDir, options: overlay}).do("/", "overlay"); err != nil {
		return err
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if err := move(dir, rootDir+dir); err != nil {
			return err
		}
	}
	if err := mountScratch(); err != nil {
		return err
	}
	for _, s := range spec.Shares {
		m := mount{fstype: "9p", target: s.Path, options: shareOptions}
		if err := m.do(rootDir, s.Tag); err != nil {
			return fmt.Errorf("share %s: %w", s.Path, err)
		}
	}
	return nil
}

func mountScratch() error {
	for _, m := range []mount{
		{fstype: "tmpfs", target: "/run", options: "mode=755"},
		{fstype: "tmpfs", target: "/dev/shm", options: "mode=1777,size=50%", flags: unix.MS_NOSUID | unix.MS_NODEV},
		{fstype: "devpts", target: "/dev/pts", options: "mode=620,ptmxmode=666"},
		{fstype: "mqueue", target: "/dev/mqueue", optional: true},
		{fstype: "hugetlbfs", target: "/dev/hugepages", options: "mode=1777", optional: true},
		{fstype: "cgroup2", target: "/sys/fs/cgroup", optional: true},
		{fstype: "debugfs", target: "/sys/kernel/debug", optional: true},
		{fstype: "tracefs", target: "/sys/kernel/tracing", optional: true},
		{fstype: "configfs", target: "/sys/kernel/config", optional: true},
	} {
		if err := m.do(rootDir, m.fstype); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(rootDir+"/run/lock", 0o755); err != nil {
		return err
	}
	// /tmp is the overlay's, so that the host's (with go test's binaries) shows; without one the guest still has its own.
	if _, err := os.Stat(rootDir + "/tmp"); err != nil {
		return os.Mkdir(rootDir+"/tmp", 0o1777)
	}
	return nil
}

// move moves a mount; the host's root need not have the folder.
func move(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move %s: %w", from, err)
	}
	return nil
}

// enterRoot makes rootDir the root. An initramfs cannot be pivoted away from: it is covered, as switch_root does.
func enterRoot() error {
	if err := unix.Chdir(rootDir); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	for name, target := range map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, name); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// mountModules shows the prepared kernel's modules where modprobe and the kernel itself look for them.
func mountModules(dir string) error {
	if dir == "" {
		return nil
	}
	release, err := kernelRelease()
	if err != nil {
		return err
	}
	target := "/lib/modules/" + release
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(dir, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", dir, target, err)
	}
	return nil
}

func kernelRelease() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}
