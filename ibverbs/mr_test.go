package ibverbs_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

func TestAllocMR(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		for _, size := range []int{1, 100, os.Getpagesize(), 1 << 20} {
			mr, err := pd.AllocMR(size, verbstest.AllAccess, ibverbs.BufferOptions{})
			if err != nil {
				t.Fatal(err)
			}
			b := mr.Bytes()
			if len(b) != size || cap(b) != size || mr.Len() != size || mr.Addr()%uint64(os.Getpagesize()) != 0 {
				t.Errorf("%d bytes: len %d, cap %d, at %#x", size, len(b), cap(b), mr.Addr())
			}
			if bytes.ContainsFunc(b, func(r rune) bool { return r != 0 }) {
				t.Errorf("%d bytes: not zeroed", size)
			}
			verbstest.Pattern(b, size) // must be writable to the last byte
			if sge := mr.SGE(1, size-1); sge.Addr != mr.Addr()+1 || int(sge.Length) != size-1 || sge.LKey != mr.LKey() {
				t.Errorf("SGE %+v", sge)
			}
			for range 2 {
				if err := mr.Close(); err != nil {
					t.Error(err)
				}
			}
			if mr.Bytes() != nil {
				t.Error("Bytes of a closed region")
			}
		}
		verbstest.Works(t, target.Dev, "regions on own memory and on slices")
	})
}

func TestMRErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		page := os.Getpagesize()
		readOnly, err := unix.Mmap(-1, 0, page, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Munmap(readOnly)
		for _, tc := range []struct {
			name string
			mr   func() (*ibverbs.MR, error)
			is   error
			hint string
		}{
			{"no bytes", func() (*ibverbs.MR, error) { return pd.AllocMR(0, verbstest.AllAccess, ibverbs.BufferOptions{}) }, syscall.EINVAL, "at least one byte"},
			{"negative", func() (*ibverbs.MR, error) { return pd.AllocMR(-1, verbstest.AllAccess, ibverbs.BufferOptions{}) }, syscall.EINVAL, "at least one byte"},
			{"empty slice", func() (*ibverbs.MR, error) { return pd.RegMR(nil, verbstest.AllAccess) }, syscall.EINVAL, "at least one byte"},
			{"remote write only", func() (*ibverbs.MR, error) {
				return pd.AllocMR(page, ibverbs.AccessRemoteWrite, ibverbs.BufferOptions{})
			}, syscall.EINVAL, "LOCAL_WRITE"},
			{"read-only memory", func() (*ibverbs.MR, error) { return pd.RegMR(readOnly, ibverbs.AccessLocalWrite) }, syscall.EFAULT, "read-only"},
			{"odd huge page", func() (*ibverbs.MR, error) {
				return pd.AllocMR(page, verbstest.AllAccess, ibverbs.BufferOptions{HugePageSize: 3 << 20})
			}, syscall.EINVAL, "HugePageSize"},
		} {
			mr, err := tc.mr()
			if err == nil {
				t.Errorf("%s: got %v", tc.name, mr)
				mr.Close()
				continue
			}
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.hint) {
				t.Errorf("%s: %v; want %v and a word on %q", tc.name, err, tc.is, tc.hint)
			}
		}
	})
}

// memlockChild makes this test binary register memory as a user without
// privilege and with a small RLIMIT_MEMLOCK.
const memlockChild = "GOVERBS_TEST_MEMLOCK_DEVICE"

func TestMemlock(t *testing.T) {
	if name := os.Getenv(memlockChild); name != "" {
		registerLocked(t, name)
		return
	}
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		uverbs := "/dev/infiniband/" + target.Dev.Info().UverbsName
		if err := os.Chmod(uverbs, 0o666); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(forEverybody(t), "-test.run=^TestMemlock$", "-test.v")
		cmd.Dir = "/"
		cmd.Env = append(os.Environ(), memlockChild+"="+target.Dev.Name())
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "refused as it should") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// forEverybody copies this test binary to where a user without privilege may
// run it: the clone may be in a home that is closed to others.
func forEverybody(t *testing.T) string {
	t.Helper()
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "goverbs-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := dir + "/ibverbs.test"
	if err := os.WriteFile(path, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func registerLocked(t *testing.T, name string) {
	const limit = 64 << 10
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Fatal(err)
	}
	dev, err := ibverbs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	verbstest.Close(t, dev)
	pd := verbstest.PD(t, dev)
	mr, err := pd.AllocMR(1<<20, verbstest.AllAccess, ibverbs.BufferOptions{})
	if err == nil {
		mr.Close()
		t.Fatal("1 MiB was registered with 64 KiB to lock")
	}
	if !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), "RLIMIT_MEMLOCK is 65536 bytes") {
		t.Fatalf("%v; want ENOMEM and RLIMIT_MEMLOCK's value", err)
	}
	t.Log("refused as it should: ", err)
}
