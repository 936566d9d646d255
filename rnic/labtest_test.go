package rnic_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/goverbs/goverbs/rnic"
)

const howToRun = `run it where there is RDMA: go test -exec "rdmalab exec --" ./rnic`

// required are the link types that GOVERBS_REQUIRE says must be there.
func required() []string {
	return strings.FieldsFunc(os.Getenv("GOVERBS_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
}

// labRNICs lists the machine's RNICs for a test that only reads. Where
// GOVERBS_REQUIRE names a driver that no RNIC has, the test fails; without it
// and without RNICs it skips.
func labRNICs(t *testing.T) []rnic.RNIC {
	t.Helper()
	rnics, err := rnic.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, driver := range required() {
		if !slices.ContainsFunc(rnics, func(r rnic.RNIC) bool { return r.Driver == driver }) {
			t.Fatalf("GOVERBS_REQUIRE wants an RNIC of driver %s, there is none", driver)
		}
	}
	if len(rnics) == 0 {
		t.Skip("no RNIC; " + howToRun)
	}
	for _, r := range rnics {
		ready(t, r.Name)
	}
	rnics, err = rnic.List() // with all GIDs
	if err != nil {
		t.Fatal(err)
	}
	return rnics
}

// labLinkTypes are the types that a test may make links of: it changes the
// machine, so it runs only where GOVERBS_REQUIRE says that this is a lab.
func labLinkTypes(t *testing.T) []string {
	t.Helper()
	types := required()
	if len(types) == 0 {
		t.Skip("GOVERBS_REQUIRE is not set, and this test adds links; " + howToRun)
	}
	return types
}

// ready waits until the RNIC is usable, within the test's bound.
func ready(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := rnic.WaitUsable(ctx, name); err != nil {
		t.Fatal(err)
	}
}

var serial atomic.Int32

// unique is a name no other test uses.
func unique(prefix string) string { return fmt.Sprintf("%s%d", prefix, 100+serial.Add(1)) }

// dummyNetdev makes a dummy netdev that is up, and deletes it with the test.
func dummyNetdev(t *testing.T, mtu int, addrs ...string) string {
	t.Helper()
	name := unique("rnictest")
	addNetdev(t, &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: mtu}})
	for _, a := range addrs {
		addAddr(t, name, a)
	}
	setUp(t, name, true)
	return name
}

func addNetdev(t *testing.T, l netlink.Link) {
	t.Helper()
	if err := netlink.LinkAdd(l); err != nil {
		t.Fatalf("add netdev %s: %v", l.Attrs().Name, err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(l); err != nil {
			t.Errorf("delete netdev %s: %v", l.Attrs().Name, err)
		}
	})
}

func netdev(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func addAddr(t *testing.T, dev, cidr string) {
	t.Helper()
	a, err := netlink.ParseAddr(cidr)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(netdev(t, dev), a); err != nil {
		t.Fatalf("add %s to %s: %v", cidr, dev, err)
	}
}

func setUp(t *testing.T, dev string, up bool) {
	t.Helper()
	set := netlink.LinkSetDown
	if up {
		set = netlink.LinkSetUp
	}
	if err := set(netdev(t, dev)); err != nil {
		t.Fatal(err)
	}
}

// addLink adds a link and deletes it with the test.
func addLink(t *testing.T, typ, dev string) string {
	t.Helper()
	name := unique(typ + "test")
	t.Cleanup(func() {
		if err := rnic.DelLink(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	if err := rnic.AddLink(t.Context(), rnic.Link{Name: name, Type: typ, Netdev: dev}); err != nil {
		t.Fatal(err)
	}
	return name
}

// output runs a tool of the system.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}
