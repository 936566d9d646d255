package bench

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// Environment says where one end ran: what a reader of the results needs to judge
// them by.
type Environment struct {
	Host   string `json:"host"`
	Kernel string `json:"kernel"`
	Arch   string `json:"arch"`
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"` // that this process may use
	// Machine is what the CPUs are: "bare metal", "virtual machine (KVM)" or
	// "emulated (QEMU TCG)".
	Machine string `json:"machine"`
	// RDMACore is the version of the libibverbs in use; empty if there is none.
	RDMACore string `json:"rdma_core"`
	Go       string `json:"go"`
	Version  string `json:"version"` // of rdmabench
}

// ReadEnvironment describes this process and its machine. What cannot be read is
// "unknown".
func ReadEnvironment() Environment {
	env := Environment{
		Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version(),
		Host: "unknown", Kernel: "unknown", Version: version(),
	}
	if host, err := os.Hostname(); err == nil {
		env.Host = host
	}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		env.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	env.readMachine("/")
	env.RDMACore = rdmaCoreVersion("/proc/self/maps")
	return env
}

// readMachine reads what the CPU is, below root.
func (e *Environment) readMachine(root string) {
	info := readCPUInfo(filepath.Join(root, "proc/cpuinfo"))
	e.CPU = info.model
	vendor, _ := os.ReadFile(filepath.Join(root, "sys/class/dmi/id/sys_vendor"))
	hypervisor, _ := os.ReadFile(filepath.Join(root, "sys/hypervisor/type"))
	switch {
	case strings.Contains(info.model, "TCG"):
		e.Machine = "emulated (QEMU TCG)"
	case len(hypervisor) > 0:
		e.Machine = "virtual machine (" + strings.TrimSpace(string(hypervisor)) + ")"
	case info.hypervisor && len(vendor) > 0:
		e.Machine = "virtual machine (" + strings.TrimSpace(string(vendor)) + ")"
	case info.hypervisor:
		e.Machine = "virtual machine"
	case info.model == "unknown":
		e.Machine = "unknown"
	default:
		e.Machine = "bare metal"
	}
}

// cpuInfo is what /proc/cpuinfo says of the first CPU.
type cpuInfo struct {
	model      string
	hypervisor bool
}

func readCPUInfo(path string) cpuInfo {
	info := cpuInfo{model: "unknown"}
	f, err := os.Open(path)
	if err != nil {
		return info
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan() && lines.Text() != ""; {
		key, value, _ := strings.Cut(lines.Text(), ":")
		switch strings.TrimSpace(key) {
		case "model name":
			info.model = strings.Join(strings.Fields(value), " ")
		case "flags":
			info.hypervisor = strings.Contains(value+" ", " hypervisor ")
		}
	}
	return info
}

// rdmaCoreVersion tells the version from the name of the library that the process
// has loaded: libibverbs.so.1.14.44.0 is of rdma-core 44.0.
func rdmaCoreVersion(maps string) string {
	data, err := os.ReadFile(maps)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		_, path, ok := strings.Cut(strings.TrimSpace(line), "/")
		if !ok || !strings.Contains(path, "libibverbs.so.1") {
			continue
		}
		_, numbers, _ := strings.Cut(filepath.Base(path), ".so.")
		if parts := strings.SplitN(numbers, ".", 3); len(parts) == 3 {
			return parts[2]
		}
		return "unknown"
	}
	return ""
}

// version is the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v, dirty := info.Main.Version, ""
	if v != "" && v != "(devel)" {
		return v
	}
	v = "development build"
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			v = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " with changes"
		}
	}
	return v + dirty
}
