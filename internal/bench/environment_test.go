package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// tree writes files below a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestReadMachine(t *testing.T) {
	const tcg = "processor\t: 0\nmodel name\t: QEMU TCG CPU version 2.5+\nflags\t\t: fpu hypervisor lahf\n\nprocessor\t: 1\n"
	const guest = "processor\t: 0\nmodel name\t: AMD  EPYC\nflags\t\t: fpu sse hypervisor\n"
	const host = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu hypervisor_not\n\nflags: hypervisor\n"
	for _, tt := range []struct {
		name         string
		files        map[string]string
		cpu, machine string
	}{
		{"emulated", map[string]string{"proc/cpuinfo": tcg, "sys/class/dmi/id/sys_vendor": "QEMU\n"}, "QEMU TCG CPU version 2.5+", "emulated (QEMU TCG)"},
		{"guest", map[string]string{"proc/cpuinfo": guest, "sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, "AMD EPYC", "virtual machine (Amazon EC2)"},
		{"guest of none", map[string]string{"proc/cpuinfo": guest}, "AMD EPYC", "virtual machine"},
		{"Xen", map[string]string{"proc/cpuinfo": host, "sys/hypervisor/type": "xen\n"}, "Intel(R) Xeon(R)", "virtual machine (xen)"},
		{"host", map[string]string{"proc/cpuinfo": host, "sys/class/dmi/id/sys_vendor": "Dell Inc.\n"}, "Intel(R) Xeon(R)", "bare metal"},
		{"nothing", nil, "unknown", "unknown"},
	} {
		var e Environment
		e.readMachine(tree(t, tt.files))
		if e.CPU != tt.cpu || e.Machine != tt.machine {
			t.Errorf("%s: %q, %q, want %q, %q", tt.name, e.CPU, e.Machine, tt.cpu, tt.machine)
		}
	}
}

func TestRDMACoreVersion(t *testing.T) {
	const line = "7f00-7f01 r-xp 00000000 08:01 42   /usr/lib/x86_64-linux-gnu/"
	for text, want := range map[string]string{
		line + "libibverbs.so.1.14.44.0\n":                        "44.0",
		line + "libc.so.6\n" + line + "libibverbs.so.1.15.56.1\n": "56.1",
		line + "libibverbs.so.1\n":                                "unknown",
		line + "libc.so.6\n":                                      "",
		"":                                                        "",
	} {
		if got := rdmaCoreVersion(filepath.Join(tree(t, map[string]string{"maps": text}), "maps")); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := rdmaCoreVersion("/no/such/file"); got != "" {
		t.Errorf("no file: %q", got)
	}
}

func TestReadEnvironment(t *testing.T) {
	e := ReadEnvironment()
	if e.Host == "unknown" || e.Kernel == "unknown" || e.CPUs < 1 || e.Go != runtime.Version() || e.Arch != runtime.GOARCH || e.Machine == "" {
		t.Errorf("%+v", e)
	}
}
