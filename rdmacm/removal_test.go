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
	"sync/atomic"
	"testing"
	"time"

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
	"removal":    removalChild,
	"shared":     sharedChild,
	"rate":       rateServer,
	"linkdown":   linkDownChild,
	"addrchange": addrChangeChild,
}

// runChild does what a child was started for, and returns its exit status.
func runChild(name string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*verbstest.Limit)
	defer cancel()
	if err := children[name](ctx, strings.Fields(os.Getenv(childArgs))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startChild starts a child and waits for its first line. end waits for its
// exit status; the test's end kills a child that still runs.
func startChild(t testing.TB, name string, args ...string) (end func() error) {
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
	t.Cleanup(func() {
		if child.ProcessState == nil {
			child.Process.Kill()
			child.Wait()
		}
	})
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
	addDummy(t, name, scratchAddr)
	return name
}

// addDummy adds a network interface with an address until the test ends.
func addDummy(t *testing.T, name string, addr netip.Addr) {
	t.Helper()
	t.Cleanup(func() { ip("link del " + name) })
	for _, args := range []string{
		"link add " + name + " type dummy",
		"address add " + addr.String() + "/24 dev " + name,
		"link set " + name + " up mtu 4200",
	} {
		if err := ip(args); err != nil {
			t.Fatal(err)
		}
	}
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

// load is what keeps a device busy: connections that echo for ever, some that
// only wait, and a listener that waits for more.
type load struct {
	l     *rdmacm.Listener
	crowd *crowd
	waits chan error // what each of the waiters ended with
	n     int        // how many there are
	round []atomic.Int64
}

// busy is how many of a load's connections echo; the others wait for a message.
const loadConns, busyConns = 6, 3

func startLoad(ctx context.Context, device string) (*load, error) {
	lc := rdmacm.ListenConfig{Config: crowdConfig, Device: device}
	l, err := lc.Listen(ctx, netip.AddrPortFrom(scratchAddr, 0).String())
	if err != nil {
		return nil, err
	}
	c, err := gather(ctx, l, rdmacm.Dialer{Config: crowdConfig, Device: device}, loadConns)
	if err == nil {
		err = c.echo(ctx)
	}
	if err != nil {
		return nil, err
	}
	ld := &load{l: l, crowd: c, n: busyConns + 2*(loadConns-busyConns) + 1, round: make([]atomic.Int64, busyConns)}
	ld.waits = make(chan error, ld.n)
	for i := range loadConns {
		client, server := c.clients[i], c.servers[i]
		if i < busyConns {
			go func() {
				for {
					if err := echo(ctx, client, server, i); err != nil {
						ld.waits <- err
						return
					}
					ld.round[i].Add(1)
				}
			}()
			continue
		}
		for _, end := range []*rdmacm.Conn{client, server} {
			go func() {
				var wcs [1]ibverbs.WC
				_, err := end.RecvCQ().Wait(ctx, wcs[:])
				ld.waits <- errors.Join(err, wcs[0].Err())
			}()
		}
	}
	go func() {
		for {
			conn, err := l.Accept(ctx)
			if err != nil {
				ld.waits <- err
				return
			}
			conn.Close()
		}
	}()
	return ld, nil
}

// typed checks that a waiter ended with an error of the usual form.
func typed(ctx context.Context, err error) error {
	var opErr *ibverbs.OpError
	var wcErr *ibverbs.WCError
	if ctx.Err() != nil || !errors.As(err, &opErr) && !errors.As(err, &wcErr) {
		return fmt.Errorf("a waiter got %v, want a typed error", err)
	}
	return nil
}

// removalChild has connections over a device that its parent deletes, and checks
// that everybody is told.
func removalChild(ctx context.Context, args []string) error {
	ld, err := startLoad(ctx, args[0])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for range ld.n {
		if err := typed(ctx, <-ld.waits); err != nil {
			return err
		}
	}
	for _, c := range append(ld.crowd.clients, ld.crowd.servers...) {
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
	return errors.Join(ld.crowd.close(), ld.l.Close())
}

// TestLinkDown takes the network interface down under load: what sends or waits
// for an answer ends with an error, and Close ends the rest. iWARP also tells
// connections on which nothing moves; with RoCE those wait, as with TCP.
func TestLinkDown(t *testing.T) {
	for _, driver := range labDrivers(t) {
		t.Run(driver, func(t *testing.T) {
			netdev := scratchNetdev(t)
			name := addLink(t, driver, netdev)
			if err := startChild(t, "linkdown", name, netdev)(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func linkDownChild(ctx context.Context, args []string) error {
	fmt.Println("ready")
	ld, err := startLoad(ctx, args[0])
	if err != nil {
		return err
	}
	if err := ip("link set " + args[1] + " down"); err != nil {
		return err
	}
	for range busyConns { // or others, where they are told too
		if err := typed(ctx, <-ld.waits); err != nil {
			return err
		}
	}
	// A dial fails, or finds that the kernel still reaches its own addresses.
	dialCtx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := new(rdmacm.Dialer).DialContext(dialCtx, ld.l.Addr().String())
	if err == nil {
		err = c.Close()
	} else {
		err = typed(ctx, err)
	}
	err = errors.Join(err, ld.crowd.close(), ld.l.Close())
	for range ld.n - busyConns {
		err = errors.Join(err, typed(ctx, <-ld.waits))
	}
	return err
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
