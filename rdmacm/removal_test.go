package rdmacm_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
	"github.com/goverbs/goverbs/rnic"
)

// librdmacm keeps a device open that it has once used, and the drivers of 6.1
// cannot take one away from its users: there `rdma link del` waits for the
// process to end. So what uses a scratch device is a process of its own.

// childEnv names what a child of the test process does; childArgs its arguments.
const childEnv, childArgs = "RDMACM_TEST_CHILD", "RDMACM_TEST_ARGS"

var children = map[string]func(ctx context.Context, args []string) error{
	"removal": removalChild,
	"shared":  sharedChild,
}

// runChild does what a child was started for, and returns its exit status.
func runChild(name string) int {
	ctx, cancel := context.WithTimeout(context.Background(), verbstest.Limit)
	defer cancel()
	if err := children[name](ctx, strings.Fields(os.Getenv(childArgs))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startChild starts a child and waits for its first line. end waits for its
// exit status.
func startChild(t *testing.T, name string, args ...string) (end func() error) {
	t.Helper()
	child := exec.CommandContext(verbstest.Context(t), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+name, childArgs+"="+strings.Join(args, " "))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Errorf("the %s child: %v", name, err)
	}
	return child.Wait
}

// labDrivers are the drivers that this machine is meant to be tested with. They
// are empty outside a lab: there a test does not add links.
func labDrivers(t *testing.T) []string {
	t.Helper()
	verbstest.Device(t)
	return strings.FieldsFunc(os.Getenv("GOVERBS_REQUIRE"), func(r rune) bool { return r == ',' })
}

// scratchAddr is the address of a scratch network interface.
var scratchAddr = netip.MustParseAddr("10.78.1.1")

// scratchNetdev adds a network interface with scratchAddr until the test ends.
func scratchNetdev(t *testing.T) string {
	t.Helper()
	const name = "gvscratch"
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	ip("link", "add", name, "type", "dummy")
	t.Cleanup(func() { ip("link", "del", name) })
	ip("address", "add", scratchAddr.String()+"/24", "dev", name)
	ip("link", "set", name, "up", "mtu", "4200")
	return name
}

func addLink(t *testing.T, driver, netdev string) (name string) {
	t.Helper()
	ctx := verbstest.Context(t)
	name = "gv" + driver
	if err := rnic.AddLink(ctx, rnic.Link{Name: name, Type: driver, Netdev: netdev}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rnic.DelLink(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	if err := rnic.WaitUsable(ctx, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestDeviceRemoval deletes the device under an open connection: every waiter
// returns a typed error, Close works, and a new device of the same name serves
// new connections (report 23).
func TestDeviceRemoval(t *testing.T) {
	for _, driver := range labDrivers(t) {
		t.Run(driver, func(t *testing.T) {
			netdev := scratchNetdev(t)
			for range 2 {
				name := addLink(t, driver, netdev)
				end := startChild(t, "removal", name)
				deleted := make(chan error, 1)
				go func() { deleted <- rnic.DelLink(context.Background(), name) }()
				if err := errors.Join(end(), <-deleted); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// removalChild has connections over a device that its parent deletes, and checks
// that everybody is told.
func removalChild(ctx context.Context, args []string) error {
	lc := rdmacm.ListenConfig{Config: prepared, Device: args[0]}
	l, err := lc.Listen(ctx, netip.AddrPortFrom(scratchAddr, 0).String())
	if err != nil {
		return err
	}
	result := acceptOne(ctx, l)
	client, err := (&rdmacm.Dialer{Config: prepared, Device: args[0]}).DialContext(ctx, l.Addr().String())
	if err != nil {
		return err
	}
	server := <-result
	if server.err != nil {
		return server.err
	}
	if err := echo(ctx, client, server.conn, 1); err != nil {
		return err
	}
	ends := []*rdmacm.Conn{client, server.conn}
	waits := make(chan error, 3)
	for _, c := range ends {
		go func() {
			var wcs [1]ibverbs.WC
			_, err := c.RecvCQ().Wait(ctx, wcs[:])
			waits <- errors.Join(err, wcs[0].Err())
		}()
	}
	go func() {
		_, err := l.Accept(ctx)
		waits <- err
	}()

	fmt.Println("ready")
	for range cap(waits) {
		var opErr *ibverbs.OpError
		var wcErr *ibverbs.WCError
		if err := <-waits; ctx.Err() != nil || !errors.As(err, &opErr) && !errors.As(err, &wcErr) {
			return fmt.Errorf("a waiter got %v, want a typed error", err)
		}
	}
	for _, c := range ends {
		select {
		case <-c.Done():
		case <-ctx.Done():
			return fmt.Errorf("%v did not end", c)
		}
		// Which comes first is the driver's choice.
		if err := c.Err(); !errors.Is(err, rdmacm.ErrDeviceRemoved) && !errors.Is(err, rdmacm.ErrDisconnected) {
			return fmt.Errorf("%v ended with %v", c, err)
		}
	}
	return errors.Join(client.Close(), server.conn.Close(), l.Close())
}

// TestSharedNetdev: where two devices share a network interface, a dial or a
// listener that is restricted to one uses that one, or fails saying so (report 36).
func TestSharedNetdev(t *testing.T) {
	drivers := labDrivers(t)
	if len(drivers) < 2 {
		return
	}
	netdev := scratchNetdev(t)
	var names []string
	for _, driver := range drivers {
		names = append(names, addLink(t, driver, netdev))
	}
	if err := startChild(t, "shared", names...)(); err != nil {
		t.Error(err)
	}
}

func sharedChild(ctx context.Context, names []string) error {
	fmt.Println("ready")
	address := netip.AddrPortFrom(scratchAddr, 0).String()
	l, err := new(rdmacm.ListenConfig).Listen(ctx, address)
	if err != nil {
		return err
	}
	defer l.Close()
	served := 0
	for _, name := range names {
		only, listenErr := (&rdmacm.ListenConfig{Device: name}).Listen(ctx, address)
		if listenErr == nil {
			only.Close()
		}
		c, dialErr := (&rdmacm.Dialer{Device: name}).DialContext(ctx, l.Addr().String())
		if (dialErr == nil) != (listenErr == nil) {
			return fmt.Errorf("restricted to %s: dialing gives %v, listening %v", name, dialErr, listenErr)
		}
		if dialErr != nil {
			for _, err := range []error{dialErr, listenErr} {
				if !strings.Contains(err.Error(), "not over "+name) {
					return fmt.Errorf("restricted to %s: %v, want it to say so", name, err)
				}
			}
			continue
		}
		served++
		server, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		if c.DeviceName() != name || server.DeviceName() != name {
			return fmt.Errorf("restricted to %s: used %s and %s", name, c.DeviceName(), server.DeviceName())
		}
		if err := errors.Join(c.Close(), server.Close()); err != nil {
			return err
		}
	}
	if served != 1 {
		return fmt.Errorf("%d of the devices serve %v, want 1", served, scratchAddr)
	}
	return nil
}
