package rnic

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Present means the file is there and is that device, not just that name.
func TestCharDevicePresent(t *testing.T) {
	h := treeOf(t, `class/infiniband/rxe0/ports /
class/infiniband_verbs/uverbs0/ibdev = rxe0
class/infiniband_verbs/uverbs0/dev = 1:3
class/infiniband_verbs/uverbs1/ibdev = rxe01
class/infiniband_verbs/uverbs1/dev = 1:3
class/infiniband_mad/umad0/ibdev = rxe0
class/infiniband_mad/umad0/dev = 231:0
class/infiniband_mad/umad0/port = 1
class/infiniband_mad/issm0/ibdev = rxe0
class/infiniband_mad/issm0/dev = 1:3
class/infiniband_mad/issm0/port = 1
class/misc/rdma_cm/dev = 10:126
`)
	dir := filepath.Join(h.Dev, "infiniband")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"uverbs0": "/dev/null", // 1:3, as sysfs says
		"umad0":   "/dev/null", // another device
		"issm0":   "/",         // no char device
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := h.Find("rxe0")
	if err != nil {
		t.Fatal(err)
	}
	want := []CharDevice{
		{Kind: "uverbs", Path: dir + "/uverbs0", Dev: DevNum{1, 3}, Present: true},
		{Kind: "umad", Path: dir + "/umad0", Dev: DevNum{231, 0}, Port: 1},
		{Kind: "issm", Path: dir + "/issm0", Dev: DevNum{1, 3}, Port: 1},
		{Kind: "rdma_cm", Path: dir + "/rdma_cm", Dev: DevNum{10, 126}},
	}
	if d := cmp.Diff(want, r.CharDevices); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestCharDeviceCannotStat(t *testing.T) {
	h := tree(t, "siw")
	if err := os.Symlink("infiniband", filepath.Join(h.Dev, "infiniband")); err != nil {
		t.Fatal(err)
	}
	r, err := h.Find("siw0")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) != 2 { // uverbs0, rdma_cm
		t.Errorf("problems %v, want one for each device file", r.Problems)
	}
}
