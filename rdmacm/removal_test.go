package rdmacm_test

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
	"github.com/goverbs/goverbs/rnic"
)

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
		rdmacm.WaitBackground()
		awaitDeleted(t, deleteLink(t, name))
	})
	if err := rnic.WaitUsable(ctx, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// deleteLink deletes a link that this process uses. It is done in a process
// that can be left behind: on kernels whose driver cannot take a device from its
// users the deletion waits for them, and cannot be killed meanwhile.
func deleteLink(t *testing.T, name string) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	cmd := exec.Command("rdma", "link", "del", name)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { result <- cmd.Wait() }()
	return result
}

// awaitDeleted waits for a deletion to end. librdmacm keeps the devices open
// that it has seen, until it looks for new ones.
func awaitDeleted(t *testing.T, deleted <-chan error) {
	t.Helper()
	for limit := time.Now().Add(verbstest.Limit / 2); time.Now().Before(limit); {
		rdmacm.ForgetDevices()
		select {
		case err := <-deleted:
			if err != nil {
				t.Logf("rdma link del: %v", err) // it was gone already
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Error("the device is still in use after everything was closed")
}

// TestDeviceRemoval deletes the device under two connections: every waiter
// returns a typed error, Close works, and a new device of the same name serves
// new connections (report 23).
func TestDeviceRemoval(t *testing.T) {
	for _, driver := range labDrivers(t) {
		t.Run(driver, func(t *testing.T) {
			ctx := verbstest.Context(t)
			netdev := scratchNetdev(t)
			name := addLink(t, driver, netdev)
			address := netip.AddrPortFrom(scratchAddr, 0).String()
			l := listenOn(t, address, rdmacm.ListenConfig{Config: prepared, Device: name})
			client, server := connect(t, l, rdmacm.Dialer{Config: prepared, Device: name})
			mustEcho(t, client, server)

			waits := make(chan error, 3)
			for _, c := range []*rdmacm.Conn{client, server} {
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
			deleted := deleteLink(t, name)
			for range cap(waits) {
				var opErr *ibverbs.OpError
				var wcErr *ibverbs.WCError
				err := <-waits
				if !errors.As(err, &opErr) && !errors.As(err, &wcErr) || ctx.Err() != nil {
					t.Errorf("a waiter got %v, want a typed error", err)
				}
			}
			for _, c := range []*rdmacm.Conn{client, server} {
				ended(t, c)
				// Which comes first is the driver's choice.
				if err := c.Err(); !errors.Is(err, rdmacm.ErrDeviceRemoved) && !errors.Is(err, rdmacm.ErrDisconnected) {
					t.Errorf("%v ended with %v", c, err)
				}
			}
			if err := errors.Join(client.Close(), server.Close(), l.Close()); err != nil {
				t.Error(err)
			}

			// Some kernels wait for the device's last user.
			select {
			case err := <-deleted:
				if err != nil {
					t.Fatal(err)
				}
			case <-ctx.Done():
				t.Fatal("the device is still in use after everything was closed")
			}

			addLink(t, driver, netdev)
			l = listenOn(t, address, rdmacm.ListenConfig{Config: prepared})
			client, server = connect(t, l, rdmacm.Dialer{Config: prepared})
			mustEcho(t, client, server)
		})
	}
}

// TestSharedNetdev: where two devices share a network interface, a dial or a
// listener that is restricted to one uses that one, or fails saying so (report 36).
func TestSharedNetdev(t *testing.T) {
	drivers := labDrivers(t)
	if len(drivers) < 2 {
		return
	}
	ctx := verbstest.Context(t)
	netdev := scratchNetdev(t)
	for _, driver := range drivers {
		addLink(t, driver, netdev)
	}
	address := netip.AddrPortFrom(scratchAddr, 0).String()
	l := listenOn(t, address, rdmacm.ListenConfig{})
	served := 0
	for _, driver := range drivers {
		name := "gv" + driver
		only, err := (&rdmacm.ListenConfig{Device: name}).Listen(ctx, address)
		if err == nil {
			verbstest.Close(t, only)
		}
		if said := err != nil && strings.Contains(err.Error(), "not over "+name); err != nil && !said {
			t.Errorf("listening on %s only: %v", name, err)
		}
		result := acceptOne(ctx, l)
		c, dialErr := (&rdmacm.Dialer{Device: name}).DialContext(ctx, l.Addr().String())
		if dialErr != nil {
			if !strings.Contains(dialErr.Error(), "not over "+name) {
				t.Errorf("dialing over %s only: %v", name, dialErr)
			}
			continue
		}
		served++
		a := <-result
		if a.err != nil {
			t.Fatal(a.err)
		}
		if c.DeviceName() != name || a.conn.DeviceName() != name || err != nil {
			t.Errorf("dialing over %s only used %s and %s; listening on it: %v", name, c.DeviceName(), a.conn.DeviceName(), err)
		}
		if err := errors.Join(c.Close(), a.conn.Close()); err != nil {
			t.Error(err)
		}
	}
	if served != 1 {
		t.Errorf("%d of the devices serve %v, want 1", served, scratchAddr)
	}
}
