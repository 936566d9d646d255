package ibverbs_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// No software driver can share its contexts: each import is refused, and
// nothing is left of it.
func TestImportRefused(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		fd, err := target.Dev.ExportFD()
		if err != nil {
			t.Fatal(err)
		}
		defer fd.Close()
		if dev, err := ibverbs.ImportDevice(fd); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("ImportDevice: %v, %v", dev, err)
		}
		pd := verbstest.PD(t, target.Dev)
		if imported, err := target.Dev.ImportPD(pd.Number()); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("ImportPD: %v, %v", imported, err)
		}
		mr := verbstest.MR(t, pd, 4096)
		if imported, err := pd.ImportMR(mr.Number(), mr.Addr()); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("ImportMR: %v, %v", imported, err)
		}
		// The export is a device of its own: it outlives nothing, and harms nothing.
		if err := fd.Close(); err != nil {
			t.Error(err)
		}
		if _, err := target.Dev.Query(); err != nil {
			t.Errorf("after the export was closed: %v", err)
		}
		verbstest.Refused(t, target.Dev, "importing devices, PDs and regions")
	})
}

func TestImportDeviceBadFile(t *testing.T) {
	regular, err := os.CreateTemp(t.TempDir(), "file")
	if err != nil {
		t.Fatal(err)
	}
	defer regular.Close()
	if dev, err := ibverbs.ImportDevice(regular); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a regular file: %v, %v; want EINVAL", dev, err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if dev, err := ibverbs.ImportDevice(null); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("/dev/null: %v, %v; want ENODEV", dev, err)
	}
	regular.Close()
	if dev, err := ibverbs.ImportDevice(regular); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed file: %v, %v; want os.ErrClosed", dev, err)
	}
	if dev, err := ibverbs.ImportDevice(nil); err == nil {
		t.Errorf("nil: %v and no error", dev)
	}
}
