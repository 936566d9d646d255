package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// childGrace is how long the server may take to end when it is no longer needed.
const childGrace = 5 * time.Second

func (a *app) compareCommand() *cobra.Command {
	var m measureFlags
	var addr addresses
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare the transports on this machine",
		Long: `Compare the transports on this machine: rdmabench starts a second process as the
server and measures against it, over each of the transports.`,
		Example: `  rdmabench compare
  rdmabench compare --transports roce,tcp --ops read --sizes 8,4K,1M --mode poll
  rdmabench compare --duration 2s --json results.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := m.plan()
			if err != nil {
				return err
			}
			if _, err := makeTransports(addr); err != nil {
				return err // the child would only say it later
			}
			if err := checkJSON(m.json); err != nil {
				return err
			}
			child, err := a.startServer(addr)
			if err != nil {
				return err
			}
			err = a.measure(cmd.Context(), child.control, plan, m, child.explain)
			return errors.Join(err, child.stop())
		},
	}
	m.register(cmd)
	addr.register(cmd, "127.0.0.1")
	return cmd
}

// child is the server of compare.
type child struct {
	cmd     *exec.Cmd
	control net.Conn
	exited  chan struct{}
	err     error // of Wait, once exited is closed
	stopped bool
}

// startSelf runs this very program again.
func startSelf(args ...string) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(path, args...), nil
}

// startServer starts the server, connected by a socket pair: no port that another
// process could come to, and each end sees at once when the other dies.
func (a *app) startServer(addr addresses) (*child, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start the server: socketpair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	defer theirs.Close()
	defer ours.Close()
	conn, err := net.FileConn(ours) // a duplicate
	if err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	cmd, err := a.self(append([]string{"server", "--control-fd=3"}, addr.args()...)...)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("start the server: %w", err)
	}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	// Ctrl-C is for the client, which then ends the server in good order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("start the server: %w", err)
	}
	c := &child{cmd: cmd, control: conn, exited: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.exited)
	}()
	return c, nil
}

// explain adds to an error of the control connection how the server ended, if it is
// the one that did.
func (c *child) explain(err error) error {
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		return err
	}
	if c.ended(time.Second) && c.err != nil {
		c.stopped = true
		return fmt.Errorf("%w; the server process: %w", err, c.err)
	}
	return err
}

// stop ends the server: it leaves when the control connection is closed.
func (c *child) stop() error {
	c.control.Close()
	if !c.ended(childGrace) {
		c.cmd.Process.Kill()
		<-c.exited
		return fmt.Errorf("the server process did not end within %v and was killed", childGrace)
	}
	if c.err != nil && !c.stopped {
		return fmt.Errorf("the server process: %w", c.err)
	}
	return nil
}

func (c *child) ended(within time.Duration) bool {
	select {
	case <-c.exited:
		return true
	case <-time.After(within):
		return false
	}
}
