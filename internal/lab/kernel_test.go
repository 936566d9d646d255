package lab

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/google/go-cmp/cmp"
)

// fakeKernel makes a prepared kernel of empty modules in a cache. Its modules depend on each other like those of 6.1.
func fakeKernel(t *testing.T, version string) (cache string, k Kernel) {
	t.Helper()
	cache = t.TempDir()
	k = Kernel{Version: version, Release: version + ".0-1-amd64", Package: version + ".1-1", Dir: filepath.Join(cache, "kernels", version)}
	write(t, filepath.Join(k.Dir, "vmlinuz"), "image")
	write(t, filepath.Join(k.Dir, "info"), "format=3\nversion="+version+"\nrelease="+k.Release+"\npackage="+k.Package+"\n")
	dep := `kernel/drivers/virtio/virtio.ko:
kernel/drivers/virtio/virtio_ring.ko: kernel/drivers/virtio/virtio.ko
kernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
kernel/drivers/char/virtio_console.ko: kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
kernel/net/9p/9pnet.ko:
kernel/net/9p/9pnet_virtio.ko: kernel/net/9p/9pnet.ko kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko
kernel/fs/overlayfs/overlay.ko:
kernel/drivers/net/dummy.ko:
kernel/crypto/crc32c_generic.ko:
kernel/drivers/infiniband/core/ib_core.ko:
kernel/drivers/infiniband/core/rdma_ucm.ko: kernel/drivers/infiniband/core/ib_core.ko
kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko: kernel/drivers/infiniband/core/ib_core.ko
updates/siw.ko: kernel/drivers/infiniband/core/ib_core.ko
`
	for line := range strings.Lines(dep) {
		file, _, _ := strings.Cut(line, ":")
		write(t, filepath.Join(k.ModulesDir(), file), "module "+moduleName(file))
	}
	write(t, filepath.Join(k.ModulesDir(), "modules.dep"), dep)
	write(t, filepath.Join(k.ModulesDir(), "modules.builtin"), "kernel/crypto/crc32-generic.ko\n")
	return cache, k
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFindKernel(t *testing.T) {
	cache, want := fakeKernel(t, "6.1")
	got, err := FindKernel(cache, "6.1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kernel (-want +got):\n%s", diff)
	}
	if got.Image() != filepath.Join(want.Dir, "vmlinuz") {
		t.Errorf("image %s, want vmlinuz", got.Image())
	}
	write(t, filepath.Join(want.Dir, "vmlinux"), "ELF")
	if got.Image() != filepath.Join(want.Dir, "vmlinux") {
		t.Errorf("image %s, want vmlinux where there is one", got.Image())
	}
	all, err := Kernels(cache)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Kernel{want}, all); diff != "" {
		t.Errorf("kernels (-want +got):\n%s", diff)
	}
}

// TestFindKernelErrors checks that each error is one line and says what to do.
func TestFindKernelErrors(t *testing.T) {
	for _, tt := range []struct {
		name, version, want string
		spoil               func(k Kernel)
	}{
		{"unknown", "5.4", `kernel "5.4" is not known: use one of 6.1, 6.12, 7.3`, nil},
		{"path", "../6.1", `kernel "../6.1" is not known`, nil},
		{"not prepared", "6.12", "kernel 6.12 is not prepared: run `rdmalab prepare 6.12`", nil},
		{"other format", "6.1", "was prepared by another version of goverbs: run `rdmalab prepare 6.1`", func(k Kernel) {
			os.WriteFile(filepath.Join(k.Dir, "info"), []byte("format=0\nversion=6.1\nrelease=r\n"), 0o644)
		}},
		{"no image", "6.1", "is incomplete, remove that folder", func(k Kernel) { os.Remove(k.Image()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cache, k := fakeKernel(t, "6.1")
			if tt.spoil != nil {
				tt.spoil(k)
			}
			_, err := FindKernel(cache, tt.version)
			var lab *Error
			if !errors.As(err, &lab) {
				t.Fatalf("error %v (%T), want a *lab.Error", err, err)
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, tt.want)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	_, k := fakeKernel(t, "6.1")
	table, err := readModules(k.ModulesDir())
	if err != nil {
		t.Fatal(err)
	}
	loaded := map[string]bool{"kernel/net/9p/9pnet.ko": true}
	files, params, err := table.resolve([]module{{name: "9pnet_virtio"}, {name: "virtio-pci"}, {name: "dummy", params: "numdummies=0"}}, loaded)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"kernel/drivers/virtio/virtio.ko", "kernel/drivers/virtio/virtio_ring.ko", "kernel/net/9p/9pnet_virtio.ko",
		"kernel/drivers/virtio/virtio_pci.ko", "kernel/drivers/net/dummy.ko",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := params["kernel/drivers/net/dummy.ko"]; got != "numdummies=0" {
		t.Errorf("parameters of dummy: %q", got)
	}
	if files, _, err := table.resolve([]module{{name: "crc32_generic"}}, loaded); err != nil || len(files) != 0 {
		t.Errorf("built-in module: %q, %v; want nothing to load", files, err)
	}
	if _, _, err := table.resolve([]module{{name: "mlx5_ib"}}, loaded); err == nil || !strings.Contains(err.Error(), "mlx5_ib") {
		t.Errorf("missing module: error %v", err)
	}
}

// TestInitramfs reads an archive back: init, each module once, and the list in an order that can be loaded.
func TestInitramfs(t *testing.T) {
	_, k := fakeKernel(t, "6.1")
	init := filepath.Join(t.TempDir(), "rdmalab")
	write(t, init, "#!init")
	var archive bytes.Buffer
	if err := writeInitramfs(&archive, k, init); err != nil {
		t.Fatal(err)
	}
	content := make(map[string]string)
	for r := cpio.NewReader(&archive); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := content[h.Name]; twice {
			t.Errorf("%s is in it twice", h.Name)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		content[h.Name] = string(text)
		if h.Name == "init" && h.Mode.Perm() != 0o755 {
			t.Errorf("init has mode %o", h.Mode.Perm())
		}
	}
	want := `early virtio.ko
early virtio_ring.ko
early virtio_pci.ko
early virtio_console.ko
early 9pnet.ko
early 9pnet_virtio.ko
early 9p.ko
early overlay.ko
late dummy.ko numdummies=0
late crc32c_generic.ko
late ib_core.ko
late rdma_rxe.ko
late siw.ko
late rdma_ucm.ko
`
	if diff := cmp.Diff(want, content["modules.list"]); diff != "" {
		t.Errorf("modules.list (-want +got):\n%s", diff)
	}
	if content["init"] != "#!init" || content["modules/siw.ko"] != "module siw" {
		t.Errorf("init %q, siw.ko %q", content["init"], content["modules/siw.ko"])
	}
}

func TestInitramfsIncomplete(t *testing.T) {
	_, k := fakeKernel(t, "6.1")
	for _, file := range []string{"updates/siw.ko", "modules.dep"} {
		if err := os.Remove(filepath.Join(k.ModulesDir(), file)); err != nil {
			t.Fatal(err)
		}
		err := writeInitramfs(io.Discard, k, os.Args[0])
		if err == nil || !strings.Contains(err.Error(), "remove "+k.Dir+" and run `rdmalab prepare 6.1`") {
			t.Errorf("without %s: error %v", file, err)
		}
	}
}
