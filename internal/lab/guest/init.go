package guest

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// Main is what pid 1 does.
func Main() {
	defer func() {
		if r := recover(); r != nil {
			fmt.Printf("rdmalab: init: %v\n%s", r, debug.Stack())
		}
		powerOff()
	}()
	if err := run(); err != nil {
		// The console is all there is where the control port is not; where it is, the host has been told.
		fmt.Printf("rdmalab: init: %v\n", err)
	}
}

// run brings the guest up and runs the command. Its error is one that could not be told on the control port.
func run() error {
	if err := mountKernel(); err != nil {
		return err
	}
	mods, err := readModuleList()
	if err != nil {
		return err
	}
	if err := mods.load(stageEarly); err != nil {
		return err
	}
	ports, err := openPorts()
	if err != nil {
		return err
	}
	conn := wire.NewConn(ports[wire.PortControl])
	if err := conn.Send(wire.Message{Type: wire.Hello}); err != nil {
		return err
	}
	msg, err := conn.Receive()
	if err != nil {
		return err
	}
	if msg.Type != wire.Run || msg.Spec == nil {
		return fmt.Errorf("the host sent %q first, not %q", msg.Type, wire.Run)
	}
	spec := msg.Spec
	kernel := newKernelLog(ports[wire.PortKernel], spec.Nonce)
	go kernel.stream()
	if err := prepare(spec, mods); err != nil {
		return hang(conn, wire.Message{Type: wire.Fail, Code: 125, Text: err.Error(), Sent: kernel.finish(nil)})
	}
	c := newCommand(spec, ports)
	if msg := c.start(); msg != nil {
		msg.Sent = kernel.finish(nil)
		return hang(conn, *msg)
	}
	if err := conn.Send(wire.Message{Type: wire.Started}); err != nil {
		return err
	}
	go c.obey(conn)
	exit := c.wait()
	unix.Sync()
	exit.Sent = kernel.finish(exit.Sent)
	return hang(conn, exit)
}

// prepare gives the guest its root, its modules and its links. What does not depend on each other happens at once.
func prepare(spec *wire.Spec, mods moduleList) error {
	late := make(chan error, 1)
	go func() { late <- mods.load(stageLate) }()
	if err := mountRoot(spec); err != nil {
		return err
	}
	if err := <-late; err != nil {
		return err
	}
	if err := enterRoot(); err != nil {
		return err
	}
	if err := mountModules(spec.Modules); err != nil {
		return err
	}
	tune()
	if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
		return fmt.Errorf("hostname %q: %w", spec.Hostname, err)
	}
	return bringUp(spec.Links)
}

// hang sends the last message and waits for the host to end the machine, which is faster than to power off; should the
// host be gone, that happens too.
func hang(conn *wire.Conn, last wire.Message) error {
	if err := conn.Send(last); err != nil {
		return err
	}
	time.Sleep(time.Minute)
	return nil
}

func powerOff() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	os.Exit(1)
}
