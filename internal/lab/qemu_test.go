package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

func TestHardwareArgs(t *testing.T) {
	h := hardware{accel: AccelTCG, cpus: 3, memoryMiB: 768, kernel: "/k/vmlinuz", shares: []wire.Share{{Tag: "share0", Path: "/a,b"}}}
	line := strings.Join(h.args(), " ")
	for _, want := range []string{
		"-accel tcg,thread=multi -cpu max", "-smp 3 -m 768", "-kernel /k/vmlinuz", "-no-reboot",
		"local,id=hostroot,path=/,security_model=none,multidevs=remap,readonly=on",
		"local,id=share0,path=/a,,b,security_model=none,multidevs=remap -device", // writable, the comma escaped
		"socket,id=port0,fd=5 -device virtserialport,chardev=port0,nr=1,name=rdmalab.control",
		"socket,id=port4,fd=9",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is missing in %q", want, line)
		}
	}
	h.accel = AccelKVM
	if args := h.args(); !slices.Contains(args, "kvm") || !slices.Contains(args, "host") {
		t.Errorf("for KVM: %q", args)
	}
}

func TestShareList(t *testing.T) {
	got := shareList([]string{"/tmp/b", "/home/me/src", "/tmp/b/c", "/home/me/src", "/tmp/bb"})
	want := []wire.Share{{Tag: "share0", Path: "/tmp/b"}, {Tag: "share1", Path: "/home/me/src"}, {Tag: "share2", Path: "/tmp/bb"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}

func TestExplainQEMU(t *testing.T) {
	for said, want := range map[string]string{
		"qemu-system-x86_64: -device virtio-9p-pci,fsdev=hostroot: 'virtio-9p-pci' is not a valid device model name\n": "install your distribution's qemu-system-x86",
		"qemu-system-x86_64: -fsdev local,id=hostroot: There is no option group 'fsdev'\n":                             "cannot share the host's root file system over 9p",
		"qemu-system-x86_64: cannot set up guest memory 'pc.ram': Cannot allocate memory\n":                            "--mem",
		"": "without a word",
		"qemu-system-x86_64: warning: x\nqemu-system-x86_64: bad thing\n": "QEMU failed: qemu-system-x86_64: bad thing",
	} {
		if err := explainQEMU(said); !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q explained as %q, want %q in one line", said, err, want)
		}
	}
}

func TestFindQEMUMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, _, err := findQEMU(); err == nil || !strings.Contains(err.Error(), "ci/setup lab") {
		t.Errorf("without QEMU: error %v, want what to install", err)
	}
}
