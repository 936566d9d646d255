package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goverbs/goverbs/internal/lab"
)

// Environment variables that the lab reads and sets.
const (
	envShare   = "GOVERBS_LAB_SHARE" // folders to share, as --share does, separated by colons
	envRequire = "GOVERBS_REQUIRE"   // in the guest: the devices that tests must find
	envLab     = "GOVERBS_LAB"       // in the guest: the version of its kernel
	labRequire = "rxe,siw"
	sbinPath   = "/usr/local/sbin:/usr/sbin:/sbin"
	guestPath  = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// options are the flags that say what guest there is to be.
type options struct {
	kernel    string
	cpus      int
	memory    memory
	timeout   time.Duration
	accel     string
	shares    []string
	kernelLog string
	verbose   bool
}

func (o *options) add(cmd *cobra.Command, timeout time.Duration) {
	f := cmd.Flags()
	o.memory = 2048
	f.StringVar(&o.kernel, "kernel", lab.DefaultKernel, "kernel to boot: "+strings.Join(lab.KnownKernels(), ", "))
	f.IntVar(&o.cpus, "cpus", 2, "CPUs of the guest")
	f.Var(&o.memory, "mem", "memory of the guest")
	f.DurationVar(&o.timeout, "timeout", timeout, "end the run after so long; 0: never")
	f.StringVar(&o.accel, "accel", lab.AccelAuto, "auto (KVM where it works), kvm or tcg")
	f.StringArrayVar(&o.shares, "share", nil, "a folder that the guest may write to (may be repeated; also "+envShare+")")
	f.StringVar(&o.kernelLog, "kernel-log", "", "write the guest's kernel log to a file")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say how long the boot and the run took")
	f.SetInterspersed(false)
}

// check refuses what no guest can be.
func (o *options) check(cmd *cobra.Command) error {
	fail := func(format string, args ...any) error { return usageError{cmd, fmt.Errorf(format, args...)} }
	switch {
	case o.cpus < 1 || o.cpus > 64:
		return fail("--cpus %d: use 1 to 64", o.cpus)
	case o.memory < 512:
		return fail("--mem %v: use 512M or more", o.memory)
	case o.timeout < 0:
		return fail("--timeout %v: use a positive duration, or 0 for none", o.timeout)
	case !slices.Contains([]string{lab.AccelAuto, lab.AccelKVM, lab.AccelTCG}, o.accel):
		return fail("--accel %q: use auto, kvm or tcg", o.accel)
	}
	return nil
}

// config makes a run of the options, for a command.
func (o *options) config(args []string) (lab.Config, error) {
	dir, err := os.Getwd()
	if err != nil {
		return lab.Config{}, err
	}
	var shares []string
	for _, share := range append(slices.Clone(o.shares), filepath.SplitList(os.Getenv(envShare))...) {
		if share == "" {
			continue
		}
		abs, err := filepath.Abs(share)
		if err != nil {
			return lab.Config{}, err
		}
		shares = append(shares, abs)
	}
	env := guestEnv(os.Environ(), o.kernel)
	return lab.Config{
		Kernel: o.kernel, Accel: o.accel, CPUs: o.cpus, MemoryMiB: int(o.memory), Timeout: o.timeout,
		Args: args, Env: env, Dir: dir, Shares: append(shares, lab.OutputDirs(args, env, dir)...),
	}, nil
}

// guestEnv is the caller's environment with what the guest adds. A user's PATH often lacks the folders where rdma, ip and
// modprobe are, but in the guest everybody is root.
func guestEnv(env []string, kernel string) []string {
	out := []string{}
	path, require := guestPath, labRequire
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch name {
		case "PATH":
			path = value
		case envRequire:
			require = value
		case envLab, envShare:
		default:
			out = append(out, e)
		}
	}
	for _, dir := range strings.Split(sbinPath, ":") {
		if !slices.Contains(strings.Split(path, ":"), dir) {
			path += ":" + dir
		}
	}
	return append(out, "PATH="+path, envRequire+"="+require, envLab+"="+kernel)
}

// memory is an amount in MiB, written as 2G or 512M.
type memory int

func (m memory) String() string {
	if m%1024 == 0 {
		return strconv.Itoa(int(m/1024)) + "G"
	}
	return strconv.Itoa(int(m)) + "M"
}

func (m *memory) Set(s string) error {
	number, unit := strings.TrimRight(s, "GMiB"), 1
	switch suffix := s[len(number):]; suffix {
	case "G", "GiB":
		unit = 1024
	case "M", "MiB":
	default:
		return fmt.Errorf("use an amount such as 2G or 512M")
	}
	n, err := strconv.Atoi(number)
	if err != nil || n <= 0 || n > 1<<20 {
		return fmt.Errorf("use an amount such as 2G or 512M")
	}
	*m = memory(n * unit)
	return nil
}

func (m *memory) Type() string { return "size" }
