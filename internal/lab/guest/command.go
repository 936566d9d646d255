package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// drainWithin bounds the wait for the output of what the command left behind, once that has been killed.
const drainWithin = 10 * time.Second

// Exit statuses for a command that could not be started, as shells and docker have them.
const (
	statusLab          = 125
	statusNotRunnable  = 126
	statusNotFound     = 127
	defaultCommandPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// command is the one command that the guest runs.
type command struct {
	spec  *wire.Spec
	ports map[string]*port
	pid   int
	ended chan syscall.WaitStatus
	input *input
	tty   *os.File // the terminal's master side, nil without a terminal

	outputs sync.WaitGroup
	mu      sync.Mutex
	sent    map[string]int64
}

func newCommand(spec *wire.Spec, ports map[string]*port) *command {
	return &command{spec: spec, ports: ports, ended: make(chan syscall.WaitStatus, 1), sent: make(map[string]int64)}
}

// start starts the command in a session of its own. It returns nil, or the message to end the run with.
func (c *command) start() *wire.Message {
	fail := func(code int, format string, args ...any) *wire.Message {
		typ := wire.Exit
		if code == statusLab {
			typ = wire.Fail
		}
		return &wire.Message{Type: typ, Code: code, Text: fmt.Sprintf(format, args...)}
	}
	if err := os.Chdir(c.spec.Dir); err != nil {
		return fail(statusLab, "working directory: %v", err)
	}
	path, err := lookPath(c.spec.Args[0], c.spec.Env)
	if err != nil {
		return fail(statusNotFound, "%v", err)
	}
	files, opened, err := c.connect()
	if err != nil {
		return fail(statusLab, "%v", err)
	}
	attr := &syscall.ProcAttr{Env: c.spec.Env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: c.tty != nil}}
	c.pid, err = syscall.ForkExec(path, c.spec.Args, attr)
	for _, f := range opened {
		f.Close()
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		// The file is there: what is not is its interpreter.
		return fail(statusNotFound, "%s: its interpreter (#! line or dynamic loader) is missing", path)
	case err != nil:
		return fail(statusNotRunnable, "%s: %v", path, err)
	}
	go reap(c.pid, c.ended)
	return nil
}

// connect makes the command's descriptors 0, 1 and 2 and starts to copy between them and the ports. The files it
// returns are the command's own ends, to be closed here once it has them.
func (c *command) connect() (fds []uintptr, opened []*os.File, err error) {
	if c.spec.TTY {
		master, slave, err := openTTY(c.spec.Rows, c.spec.Cols)
		if err != nil {
			return nil, nil, fmt.Errorf("pseudo terminal: %w", err)
		}
		c.tty = master
		c.input = newInput(master)
		go c.input.copy(c.ports[wire.PortStdin])
		c.copyOut(wire.PortStdout, master)
		return []uintptr{slave.Fd(), slave.Fd(), slave.Fd()}, []*os.File{slave}, nil
	}
	stdin, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	c.input = newInput(write)
	go c.input.copy(c.ports[wire.PortStdin])
	opened = append(opened, stdin)
	for _, name := range []string{wire.PortStdout, wire.PortStderr} {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		opened = append(opened, write)
		c.copyOut(name, read)
	}
	return []uintptr{opened[0].Fd(), opened[1].Fd(), opened[2].Fd()}, opened, nil
}

// copyOut copies from one of the command's outputs to a port until the last process that holds the output is gone.
func (c *command) copyOut(name string, from *os.File) {
	c.outputs.Add(1)
	go func() {
		defer c.outputs.Done()
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			sent, werr := c.ports[name].Write(buf[:n])
			c.mu.Lock()
			c.sent[name] += int64(sent)
			c.mu.Unlock()
			if err != nil || werr != nil {
				return // a terminal without a user reads as EIO
			}
		}
	}()
}

// obey does what the host asks while the command runs.
func (c *command) obey(conn *wire.Conn) {
	for {
		m, err := conn.Receive()
		if err != nil {
			return
		}
		switch m.Type {
		case wire.Signal:
			_ = unix.Kill(-c.pid, unix.Signal(m.Signal)) // the command's session began as one process group
		case wire.StdinEOF:
			c.input.endAfter(m.Count)
		case wire.Winsize:
			if c.tty != nil {
				_ = setWinsize(c.tty, m.Rows, m.Cols)
			}
		}
	}
}

// wait waits for the command, ends what it left running, and sends the rest of its output.
func (c *command) wait() wire.Message {
	ws := <-c.ended
	_ = unix.Kill(-1, unix.SIGKILL) // all but init
	drained := make(chan struct{})
	go func() { c.outputs.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(drainWithin):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return wire.Message{
		Type: wire.Exit, Code: wire.Status(ws.Exited(), ws.ExitStatus(), int(ws.Signal())),
		Sent: map[string]int64{wire.PortStdout: c.sent[wire.PortStdout], wire.PortStderr: c.sent[wire.PortStderr]},
	}
}

// reap waits for every process, as init must, and reports how pid ended.
func reap(pid int, ended chan<- syscall.WaitStatus) {
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return // no children left
		case got == pid:
			ended <- ws
		}
	}
}

// lookPath finds a command as a shell with that environment would.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		_, err := os.Stat(name)
		return name, err
	}
	search := defaultCommandPath
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			search = value
		}
	}
	for _, dir := range filepath.SplitList(search) {
		file := filepath.Join(dir, name)
		if dir == "" {
			file = "./" + name
		}
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: not found in PATH %s", name, search)
}
