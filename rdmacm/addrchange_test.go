package rdmacm_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/goverbs/goverbs/rdmacm"
)

// ip runs the command that changes network interfaces.
func ip(args string) error {
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, out)
	}
	return nil
}

// scratchBond adds a bonded network interface with scratchAddr until the test
// ends: its hardware address is that of the interface in use.
func scratchBond(t *testing.T) (name, standby string) {
	t.Helper()
	const bond, first, second = "gvbond", "gvbond1", "gvbond2"
	t.Cleanup(func() {
		for _, name := range []string{bond, first, second} {
			ip("link del " + name)
		}
	})
	for _, args := range []string{
		"link add " + bond + " type bond mode active-backup fail_over_mac active miimon 0",
		"link add " + first + " type dummy",
		"link add " + second + " type dummy",
		"link set " + first + " master " + bond,
		"link set " + second + " master " + bond,
		"link set " + first + " up",
		"link set " + second + " up",
		"link set " + bond + " up",
		"link set " + bond + " type bond active_slave " + first,
		"address add " + scratchAddr.String() + "/24 dev " + bond,
	} {
		if err := ip(args); err != nil {
			t.Fatal(err)
		}
	}
	return bond, second
}

// TestAddrChange: when the address moves to another piece of hardware, as after
// a bond's fail-over, connections end and say so.
func TestAddrChange(t *testing.T) {
	for _, driver := range labDrivers(t) {
		t.Run(driver, func(t *testing.T) {
			bond, standby := scratchBond(t)
			name := addLink(t, driver, bond)
			if err := startChild(t, "addrchange", name, bond, standby)(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func addrChangeChild(ctx context.Context, args []string) error {
	fmt.Println("ready")
	lc := rdmacm.ListenConfig{Config: crowdConfig, Device: args[0]}
	l, err := lc.Listen(ctx, netip.AddrPortFrom(scratchAddr, 0).String())
	if err != nil {
		return err
	}
	c, err := gather(ctx, l, rdmacm.Dialer{Config: crowdConfig, Device: args[0]}, 2)
	if err == nil {
		err = c.echo(ctx)
	}
	if err == nil {
		err = ip("link set " + args[1] + " type bond active_slave " + args[2])
	}
	if err != nil {
		return errors.Join(err, c.close(), l.Close())
	}
	for i := range c.clients {
		// One side may hear of the other's end first.
		for _, end := range []*rdmacm.Conn{c.clients[i], c.servers[i]} {
			select {
			case <-end.Done():
			case <-ctx.Done():
				return fmt.Errorf("%v did not end", end)
			}
		}
		if a, b := c.clients[i].Err(), c.servers[i].Err(); !errors.Is(a, rdmacm.ErrAddrChanged) && !errors.Is(b, rdmacm.ErrAddrChanged) {
			return fmt.Errorf("the ends of connection %d saw %v and %v, want ErrAddrChanged", i, a, b)
		}
	}
	return errors.Join(c.close(), l.Close())
}
