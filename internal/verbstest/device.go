package verbstest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/rnic"
)

// Limit bounds a wait that ends by itself in a working build. Under emulation
// on a busy machine nothing is quick, so it is generous: a test that reaches
// it hangs.
const Limit = 2 * time.Minute

// Context ends after Limit, or with the test.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)
	return ctx
}

// Target is a device to test on.
type Target struct {
	Dev    *ibverbs.Device // open; closed, and so checked for leaks, after the test
	Driver string          // for messages: tests decide by capability
	Port   int
	Addr   netip.Addr // an address of the port's netdev, IPv4 where it has one
	Addr6  netip.Addr // an IPv6 address of it that is not link-local, or invalid
	Netdev string
	Attr   ibverbs.DeviceAttr
}

// Capability is what a device must be able to do for a test.
type Capability struct {
	name string
	has  func(*Target) bool
}

// Capabilities.
var (
	// Immediates: SEND_WITH_IMM and RDMA_WRITE_WITH_IMM.
	Immediates = Capability{"immediate data", isIB}
	// Datagrams: UD QPs and address handles.
	Datagrams = Capability{"UD", isIB}
	// StateMachine: QPs that can be connected by hand, without rdma_cm, and
	// that report their state.
	StateMachine = Capability{"connecting QPs by hand", isIB}
	// ReceiverNotReady: a SEND that finds no receive is tried again later. On
	// iWARP it ends the connection.
	ReceiverNotReady = Capability{"RNR", isIB}
	// Atomics: compare and swap, fetch and add.
	Atomics = Capability{"atomics", func(t *Target) bool { return t.Attr.AtomicCap != ibverbs.AtomicNone }}
	// ExtendedCQ: CQs whose completions have more fields.
	ExtendedCQ = Capability{"extended CQs", isIB}
	// ResizeCQ: CQs that can grow and shrink.
	ResizeCQ = Capability{"resizing a CQ", isIB}
	// XRC: extended reliable connections.
	XRC = Capability{"XRC", func(t *Target) bool { return t.Attr.CapFlags&ibverbs.DeviceXRC != 0 }}
	// LastWQE: a QP that fails tells when it takes no more from its SRQ. Kernels
	// before 6.4 never do.
	LastWQE = Capability{"the event QP_LAST_WQE_REACHED", func(t *Target) bool { return isIB(t) && kernelAtLeast(6, 4) }}
	// SRQQuery: shared receive queues that can be queried and resized.
	SRQQuery = Capability{"querying an SRQ", isIB}
	// MemoryWindows: windows of both types.
	MemoryWindows = Capability{"memory windows", func(t *Target) bool { return t.Attr.CapFlags&ibverbs.DeviceMemWindowType2B != 0 }}
	// ChosenIOVA: regions at an address of the caller's choice.
	ChosenIOVA = Capability{"regions at a chosen iova", isIB}
	// RawPackets: QPs that send whole Ethernet frames.
	RawPackets = Capability{"raw packets", func(t *Target) bool { return t.Attr.CapFlags&ibverbs.DeviceRawIPCsum != 0 }}
	// ReadScatter: READs into more than one SGE.
	ReadScatter = Capability{"READ into several SGEs", func(t *Target) bool { return t.Attr.MaxSGERD > 1 }}
)

// What a device's QPs post through ibv_wr_*.
var (
	// SendOps: QPs that post through ibv_wr_* at all.
	SendOps = Capability{"ibv_wr_*", posts(ibverbs.SendOpSend)}
	// Flush and AtomicWrite: the opcodes, which need a newer kernel or rdma-core.
	Flush       = Capability{"FLUSH", posts(ibverbs.SendOpFlush)}
	AtomicWrite = Capability{"ATOMIC_WRITE", posts(ibverbs.SendOpAtomicWrite)}
)

// posts asks by making a QP: no attribute tells.
func posts(ops ibverbs.SendOps) func(*Target) bool {
	return func(t *Target) bool {
		pd, err := t.Dev.AllocPD()
		if err != nil {
			return false
		}
		defer pd.Close()
		cq, err := t.Dev.CreateCQ(1, ibverbs.CQOptions{})
		if err != nil {
			return false
		}
		defer cq.Close()
		cap := ibverbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
		qp, err := pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: cap, SendOps: ops})
		if err == nil {
			qp.Close()
		}
		return err == nil
	}
}

func isIB(t *Target) bool { return t.Dev.Info().Transport == ibverbs.TransportIB }

// Has tells whether the device has a capability, for tests whose way there, not
// whose result, depends on it.
func (t *Target) Has(c Capability) bool { return c.has(t) }

// Each runs fn as a subtest on every device that has all of caps. At least one
// must have them.
func Each(t *testing.T, fn func(*testing.T, *Target), caps ...Capability) {
	t.Helper()
	each(t, fn, func(target *Target) bool {
		return !slices.ContainsFunc(caps, func(c Capability) bool { return !c.has(target) })
	}, len(caps) == 0)
}

// EachB runs fn as a sub-benchmark on every device.
func EachB(b *testing.B, fn func(*testing.B, *Target)) {
	b.Helper()
	for _, r := range find(b) {
		b.Run(r.Name, func(b *testing.B) { fn(b, open(b, r)) })
	}
}

// EachLacking runs fn as a subtest on every device that lacks the capability,
// to see it refused. Where all devices have it (hardware may) there is nothing
// to refuse.
func EachLacking(t *testing.T, lacking Capability, fn func(*testing.T, *Target)) {
	t.Helper()
	each(t, fn, func(target *Target) bool { return !lacking.has(target) }, false)
}

// Device opens one device that has all of caps.
func Device(t *testing.T, caps ...Capability) *Target {
	t.Helper()
	for _, r := range find(t) {
		target := open(t, r)
		if !slices.ContainsFunc(caps, func(c Capability) bool { return !c.has(target) }) {
			return target
		}
	}
	t.Fatalf("no device here has all of %v", names(caps))
	return nil
}

func names(caps []Capability) []string {
	var s []string
	for _, c := range caps {
		s = append(s, c.name)
	}
	return s
}

func each(t *testing.T, fn func(*testing.T, *Target), fits func(*Target) bool, all bool) {
	t.Helper()
	ran := 0
	for _, r := range find(t) {
		// Opened once to look, so that a subtest exists only where it runs.
		if !all && !look(t, r, fits) {
			continue
		}
		ran++
		t.Run(r.Name, func(t *testing.T) { fn(t, open(t, r)) })
	}
	if ran == 0 {
		t.Fatal("no device here fits this test: run it in the lab, which has rxe and siw")
	}
}

func look(t *testing.T, r rnic.RNIC, fits func(*Target) bool) bool {
	t.Helper()
	dev, err := ibverbs.Open(r.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	target := &Target{Dev: dev, Driver: r.Driver}
	if target.Attr, err = dev.Query(); err != nil {
		t.Fatal(err)
	}
	return fits(target)
}

// find lists the devices to test on, and skips or fails where there is none.
func find(t testing.TB) []rnic.RNIC {
	t.Helper()
	rnics, err := rnic.List()
	if err != nil {
		t.Fatal(err)
	}
	required := strings.FieldsFunc(os.Getenv("GOVERBS_REQUIRE"), func(r rune) bool { return r == ',' })
	usable := slices.DeleteFunc(rnics, func(r rnic.RNIC) bool {
		return len(required) > 0 && !slices.Contains(required, r.Driver)
	})
	for _, driver := range required {
		if !slices.ContainsFunc(usable, func(r rnic.RNIC) bool { return r.Driver == driver }) {
			t.Fatalf("GOVERBS_REQUIRE names %s, and this machine has no such device", driver)
		}
	}
	if len(usable) == 0 {
		t.Skip(`no RDMA device here: run it in the lab, go test -exec "rdmalab exec --" ./...`)
	}
	return usable
}

func open(t testing.TB, r rnic.RNIC) *Target {
	t.Helper()
	dev, err := ibverbs.Open(r.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Errorf("the test left objects open: %v", err)
		}
	})
	target := &Target{Dev: dev, Driver: r.Driver, Port: 1}
	if target.Attr, err = dev.Query(); err != nil {
		t.Fatal(err)
	}
	if len(r.Ports) == 0 {
		t.Fatalf("%s has no port", r.Name)
	}
	target.Netdev = r.Ports[0].Netdev
	if target.Addr, target.Addr6, err = addresses(target.Netdev); err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	return target
}

// addresses finds a netdev's IPv4 address and its global IPv6 one.
func addresses(netdev string) (v4, v6 netip.Addr, err error) {
	ifi, err := net.InterfaceByName(netdev)
	if err != nil {
		return v4, v6, err
	}
	addrs, err := ifi.Addrs()
	if err != nil {
		return v4, v6, err
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		switch addr := p.Addr(); {
		case err != nil || addr.IsLinkLocalUnicast():
		case addr.Is4():
			v4 = addr
		default:
			v6 = addr
		}
	}
	if !v4.IsValid() {
		v4 = v6
	}
	if !v4.IsValid() {
		return v4, v6, errors.New(netdev + " has no address: ip address add 192.0.2.1/24 dev " + netdev)
	}
	return v4, v6, nil
}

// kernelAtLeast compares the running kernel's version, for what a driver's
// version alone decides.
func kernelAtLeast(major, minor int) bool {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return false
	}
	var have [2]int
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(uts.Release[:]), "%d.%d", &have[0], &have[1]); n != 2 {
		return false
	}
	return have[0] > major || have[0] == major && have[1] >= minor
}
