package lab

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// consoleLines is how much of the serial console is kept.
const consoleLines = 400

// machine is a running QEMU.
type machine struct {
	ports map[string]*os.File
	accel string

	process *os.Process
	done    chan struct{} // closed when QEMU is gone and its console has been read

	mu      sync.Mutex
	stderr  bytes.Buffer
	console []string
}

// startMachine starts QEMU. It dies with this process, however that ends, and is out of reach of the terminal's Ctrl-C,
// which is for us to handle.
func startMachine(qemu string, h hardware, initramfs *os.File) (*machine, error) {
	m := &machine{ports: make(map[string]*os.File), accel: h.accel, done: make(chan struct{})}
	theirs := []*os.File{initramfs}
	var serial *os.File
	for _, name := range append([]string{"serial"}, wire.Ports()...) {
		ours, their, err := socketPair(name)
		if err != nil {
			return nil, labErr(err, "socket pair")
		}
		defer their.Close()
		theirs = append(theirs, their)
		if name == "serial" {
			serial = ours
		} else {
			m.ports[name] = ours
		}
	}
	cmd := exec.Command(qemu, h.args()...)
	cmd.ExtraFiles = theirs
	cmd.Stderr = lockedWriter{&m.mu, &m.stderr}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The kernel takes the end of the thread that started QEMU for our end, so that thread has to stay.
		runtime.LockOSThread()
		err := cmd.Start()
		m.process = cmd.Process
		started <- err
		if err == nil {
			m.readConsole(serial)
			_ = cmd.Wait() // what matters is what it said
			close(m.done)
		}
	}()
	if err := <-started; err != nil {
		m.close()
		return nil, labErr(err, "start %s", qemu)
	}
	return m, nil
}

// socketPair returns our end, ready for Go's poller, and QEMU's.
func socketPair(name string) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name), nil
}

// readConsole keeps the last lines until QEMU is gone.
func (m *machine) readConsole(serial *os.File) {
	defer serial.Close()
	r := bufio.NewReader(serial)
	for {
		line, err := r.ReadString('\n')
		if text := string(bytes.TrimRight([]byte(line), "\r\n")); text != "" {
			m.mu.Lock()
			m.console = append(m.console, text)
			if len(m.console) > 2*consoleLines {
				m.console = append([]string(nil), m.console[consoleLines:]...)
			}
			m.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// Console returns the last lines on the serial console.
func (m *machine) Console() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.console...)
}

// Stderr returns what QEMU itself said.
func (m *machine) Stderr() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stderr.String()
}

// kill ends the machine and waits until it is gone.
func (m *machine) kill() {
	_ = m.process.Kill()
	<-m.done
	m.close()
}

func (m *machine) close() {
	for _, p := range m.ports {
		p.Close()
	}
}

// makeInitramfs builds the initramfs in memory; QEMU inherits the descriptor, so that nothing is left behind on disk.
func makeInitramfs(k Kernel) (*os.File, error) {
	fd, err := unix.MemfdCreate("rdmalab-initramfs", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, labErr(err, "memory for the initramfs")
	}
	f := os.NewFile(uintptr(fd), "initramfs")
	w := bufio.NewWriterSize(f, 1<<20)
	if err = writeInitramfs(w, k, "/proc/self/exe"); err == nil {
		err = w.Flush()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("initramfs: %w", err)
	}
	return f, nil
}

// lockedWriter is a writer that others look at.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
