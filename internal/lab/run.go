package lab

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// bootTime is how long a boot to init may take; it takes 5 s on an idle machine of two cores, emulated.
const bootTime = 2 * time.Minute

// Config says what to run, and where. The zero value of what is not said is the default.
type Config struct {
	Kernel    string        // version, default DefaultKernel
	Cache     string        // where prepared kernels are, default CacheDir
	Accel     string        // AccelAuto, AccelKVM or AccelTCG
	CPUs      int           // default 2
	MemoryMiB int           // default 2048
	Timeout   time.Duration // of the whole run; zero: no limit
	Args      []string      // the command
	Env       []string      // its environment, as os.Environ has it
	Dir       string        // its working directory, absolute
	Shares    []string      // host folders that the command may write to, absolute
	TTY       *TTY          // run it on a terminal; Stdout then carries all of its output
	Stdin     io.Reader     // nil: empty
	Stdout    io.Writer
	Stderr    io.Writer
	// Signals are passed on to the command. One that asks it to end (INT, TERM, HUP, QUIT) ends the run some seconds
	// later in any case, a second one at once.
	Signals <-chan os.Signal
	// KernelLog receives the guest's kernel log as dmesg prints it, may be nil.
	KernelLog io.Writer
}

// TTY is the terminal for a command that wants one.
type TTY struct {
	Rows, Cols uint16
	Resize     <-chan [2]uint16 // rows, columns
}

// Result is how a run ended.
type Result struct {
	Status   int           // the command's exit status, or one of the Status constants
	Boot     time.Duration // from the start until the command ran; zero if it never did
	Total    time.Duration
	Accel    string
	Release  string    // the guest's kernel
	Problems []Problem // what its kernel complained about
	// OutOfMemory says that the guest's kernel killed a process for want of memory.
	OutOfMemory bool
	// Tail is the end of the guest's log, for a run that a hang or a crash ended.
	Tail []string
}

// Run runs one command in a guest. The error, if any, says why the run is not simply the command's own result; Result is
// set either way. It returns when QEMU is gone. Ending ctx ends the run.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	began := time.Now()
	res.Status = StatusLab
	defer func() { res.Total = time.Since(began) }()
	if cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cfg.Timeout, errTimeout)
		defer cancel()
	}
	if err := cfg.complete(); err != nil {
		return res, err
	}
	kernel, err := FindKernel(cfg.Cache, cfg.Kernel)
	if err != nil {
		return res, err
	}
	res.Release = kernel.Release
	b, err := newBooter(cfg, kernel)
	if err != nil {
		return res, err
	}
	defer b.close()
	m, conn, err := b.boot(ctx, cfg.Signals)
	if err != nil {
		return b.explain(res, err)
	}
	defer m.kill()
	res.Accel = m.accel
	s := newSession(cfg, m, conn, began)
	return s.run(ctx, kernel, res)
}

var errTimeout = errors.New("timeout")

// complete checks the configuration and fills in the defaults.
func (cfg *Config) complete() error {
	if cfg.Kernel == "" {
		cfg.Kernel = DefaultKernel
	}
	if cfg.Accel == "" {
		cfg.Accel = AccelAuto
	}
	if cfg.CPUs == 0 {
		cfg.CPUs = 2
	}
	if cfg.MemoryMiB == 0 {
		cfg.MemoryMiB = 2048
	}
	if cfg.Cache == "" {
		dir, err := CacheDir()
		if err != nil {
			return err
		}
		cfg.Cache = dir
	}
	for i, dir := range cfg.Shares {
		st, err := os.Stat(dir)
		if err == nil && !st.IsDir() {
			err = fmt.Errorf("%s is not a folder", dir)
		}
		if err != nil {
			return &Error{What: "cannot share " + dir, Err: err, Hint: "make the folder first"}
		}
		cfg.Shares[i] = filepath.Clean(dir)
	}
	return static("/proc/self/exe")
}

// static checks that this program can be the guest's init, which runs where there are no libraries.
func static(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return labErr(err, "read %s", program)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return &Error{
				What: "this rdmalab is linked dynamically and cannot be the guest's init",
				Hint: "build it with CGO_ENABLED=0 (CGO_ENABLED=0 go install github.com/goverbs/goverbs/cmd/rdmalab@latest)",
			}
		}
	}
	return nil
}

// booter starts machines until one reaches init.
type booter struct {
	cfg       Config
	kernel    Kernel
	qemu      string
	version   string
	initramfs *os.File
	last      *machine // that failed
}

func newBooter(cfg Config, kernel Kernel) (*booter, error) {
	b := &booter{cfg: cfg, kernel: kernel}
	var err error
	if b.qemu, b.version, err = findQEMU(); err != nil {
		return nil, err
	}
	b.initramfs, err = makeInitramfs(kernel)
	return b, err
}

func (b *booter) close() { b.initramfs.Close() }

// bootFailure is a machine that did not reach init.
type bootFailure struct{ why string }

func (e *bootFailure) Error() string { return e.why }

func isBootFailure(err error) bool {
	var f *bootFailure
	return errors.As(err, &f)
}

// boot returns a machine whose init said hello.
func (b *booter) boot(ctx context.Context, signals <-chan os.Signal) (m *machine, conn *wire.Conn, err error) {
	memo := newKVMMemo(b.cfg.Cache, hostBootID(), b.version, b.kernel.Release)
	err = chooseAccel(b.cfg.Accel, "/dev/kvm", memo, func(accel string, limit time.Duration) error {
		h := hardware{
			accel: accel, cpus: b.cfg.CPUs, memoryMiB: b.cfg.MemoryMiB, kernel: b.kernel.Image(), shares: shareList(b.cfg.Shares),
		}
		m, err = startMachine(b.qemu, h, b.initramfs)
		if err != nil {
			return err
		}
		conn = wire.NewConn(m.ports[wire.PortControl])
		if err := hello(ctx, m, conn, limit, signals); err != nil {
			m.kill()
			b.last = m
			return err
		}
		return nil
	})
	return m, conn, err
}

// hello waits for init's first word.
func hello(ctx context.Context, m *machine, conn *wire.Conn, limit time.Duration, signals <-chan os.Signal) error {
	said := make(chan error, 1)
	go func() {
		msg, err := conn.Receive()
		if err == nil && msg.Type != wire.Hello {
			err = fmt.Errorf("the guest said %q first", msg.Type)
		}
		said <- err
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case err := <-said:
			if err != nil {
				return &bootFailure{fmt.Sprintf("the guest died before it reached init (%s)", m.accel)}
			}
			return nil
		case <-m.done:
			return &bootFailure{fmt.Sprintf("QEMU ended before the guest reached init (%s)", m.accel)}
		case <-timer.C:
			return &bootFailure{fmt.Sprintf("the guest did not reach init within %v (%s)", limit, m.accel)}
		case <-ctx.Done():
			return context.Cause(ctx)
		case sig := <-signals:
			if endsRun(sig) {
				return &interrupted{sig}
			}
		}
	}
}

// explain says why no machine came up.
func (b *booter) explain(res Result, err error) (Result, error) {
	var stop *interrupted
	switch {
	case errors.As(err, &stop):
		res.Status = stop.status()
		return res, err
	case errors.Is(err, errTimeout):
		res.Status = StatusTimeout
		if b.last != nil {
			res.Tail = lastLines(b.last.Console())
		}
		return res, labErr(nil, "the guest did not boot within --timeout %v", b.cfg.Timeout)
	case isBootFailure(err) && b.last != nil:
		res.Tail = lastLines(b.last.Console())
		if said := b.last.Stderr(); said != "" || len(res.Tail) == 0 {
			return res, explainQEMU(said)
		}
		return res, &Error{What: err.Error(), Hint: "its last console lines are above"}
	default:
		return res, err
	}
}

func lastLines(lines []string) []string { return lines[max(0, len(lines)-tailLines):] }
