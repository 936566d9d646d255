package lab

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// qemuName is the emulator for the one architecture that the lab has kernels for.
const qemuName = "qemu-system-x86_64"

// kernelLine is what the guest's kernel is told. It says little on the console, which is slow; the log comes by another
// way. A panic ends the machine at once, and a busy host is no stall.
const kernelLine = "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init random.trust_cpu=on rcupdate.rcu_cpu_stall_timeout=60"

// findQEMU returns the emulator and its version.
func findQEMU() (path, version string, err error) {
	path, err = exec.LookPath(qemuName)
	if err != nil {
		return "", "", &Error{
			What: qemuName + " is not installed",
			Hint: "run ci/setup lab, or: apt-get install --no-install-recommends qemu-system-x86",
		}
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "", "", &Error{What: path + " does not run", Err: err, Hint: "install the package qemu-system-x86 again"}
	}
	version, _, _ = strings.Cut(string(out), "\n")
	return path, version, nil
}

// hardware is the machine that QEMU is asked for.
type hardware struct {
	accel     string
	cpus      int
	memoryMiB int
	kernel    string
	shares    []wire.Share
}

// Descriptors that QEMU inherits, in this order from 3 on.
const (
	fdInitramfs = 3 + iota
	fdSerial
	fdFirstPort
)

// args are QEMU's.
func (h hardware) args() []string {
	cpu := "max"
	accel := "tcg,thread=multi"
	if h.accel == AccelKVM {
		cpu, accel = "host", "kvm"
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "q35", "-accel", accel, "-cpu", cpu,
		"-smp", strconv.Itoa(h.cpus), "-m", strconv.Itoa(h.memoryMiB),
		"-kernel", h.kernel, "-initrd", fmt.Sprintf("/proc/self/fd/%d", fdInitramfs), "-append", kernelLine,
		"-chardev", fmt.Sprintf("socket,id=serial,fd=%d", fdSerial), "-serial", "chardev:serial",
		"-device", "virtio-serial-pci,max_ports=16",
	}
	for i, name := range wire.Ports() {
		args = append(args, "-chardev", fmt.Sprintf("socket,id=port%d,fd=%d", i, fdFirstPort+i),
			"-device", fmt.Sprintf("virtserialport,chardev=port%d,nr=%d,name=%s", i, i+1, name))
	}
	args = append(args, fsArgs("hostroot", "/", true)...)
	for _, s := range h.shares {
		args = append(args, fsArgs(s.Tag, s.Path, false)...)
	}
	return args
}

// fsArgs shares a host folder over 9p. The guest's files then are the host's, with their owners and modes.
func fsArgs(tag, path string, readonly bool) []string {
	fs := fmt.Sprintf("local,id=%s,path=%s,security_model=none,multidevs=remap", tag, strings.ReplaceAll(path, ",", ",,"))
	if readonly {
		fs += ",readonly=on"
	}
	return []string{"-fsdev", fs, "-device", fmt.Sprintf("virtio-9p-pci,fsdev=%s,mount_tag=%s", tag, tag)}
}

// explain turns what QEMU said when it failed into an error that says what to do.
func explainQEMU(stderr string) error {
	said := strings.TrimSpace(stderr)
	last := said
	if i := strings.LastIndexByte(said, '\n'); i >= 0 {
		last = said[i+1:]
	}
	switch {
	case regexp.MustCompile(`virtio-9p-pci|fsdev|virtfs`).MatchString(said):
		return &Error{
			What: "this QEMU cannot share the host's root file system over 9p (" + last + ")",
			Hint: "install your distribution's qemu-system-x86, which has virtio-9p",
		}
	case strings.Contains(said, "annot set up guest memory") || strings.Contains(said, "annot allocate memory"):
		return &Error{What: "the host has not enough memory for the guest (" + last + ")", Hint: "ask for less with --mem"}
	case said == "":
		return errors.New("QEMU ended without a word")
	default:
		return labErr(nil, "QEMU failed: %s", last)
	}
}

// shareList gives each folder a tag, leaving out those inside another.
func shareList(dirs []string) []wire.Share {
	var shares []wire.Share
	for i, dir := range dirs {
		inside := false
		for j, other := range dirs {
			within := other == "/" || strings.HasPrefix(dir+"/", other+"/")
			inside = inside || (within && (dir != other || j < i))
		}
		if !inside {
			shares = append(shares, wire.Share{Tag: fmt.Sprintf("share%d", len(shares)), Path: filepath.Clean(dir)})
		}
	}
	return shares
}
