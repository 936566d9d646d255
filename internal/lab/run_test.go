package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunRefuses gives Run what it cannot do anything with; none of it needs QEMU to be refused.
func TestRunRefuses(t *testing.T) {
	cache, _ := fakeKernel(t, "6.1")
	file := filepath.Join(cache, "kernels", "6.1", "info")
	for _, tt := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no folder to share", Config{Cache: cache, Shares: []string{filepath.Join(cache, "nowhere")}}, "make the folder first"},
		{"file to share", Config{Cache: cache, Shares: []string{file}}, "is not a folder"},
		{"unknown kernel", Config{Cache: cache, Kernel: "2.6"}, "use one of"},
		{"unprepared kernel", Config{Cache: cache, Kernel: "6.12"}, "rdmalab prepare 6.12"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if static("/proc/self/exe") != nil && !strings.Contains(tt.want, "folder") {
				tt.want = "CGO_ENABLED=0" // the race detector's test binary is linked dynamically
			}
			res, err := Run(context.Background(), tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if res.Status != StatusLab {
				t.Errorf("status %d, want %d", res.Status, StatusLab)
			}
		})
	}
}

func TestStatic(t *testing.T) {
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := static(sh); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("for %s: error %v, want how to build it statically", sh, err)
	}
	if err := static(os.DevNull); err == nil {
		t.Errorf("%s passes for a program", os.DevNull)
	}
}
