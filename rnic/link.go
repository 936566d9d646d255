package rnic

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Link is a software RNIC on top of a network device.
type Link struct {
	Name   string // the RNIC's name: "rxe0"
	Type   string // "rxe" (RoCE v2) or "siw" (iWARP)
	Netdev string // the network device below it: "eth0"
}

// linkTypes are the types that AddLink knows, with the module of each and how
// to get it.
var linkTypes = map[string]struct{ module, hint string }{
	"rxe": {"rdma_rxe", "load it with `modprobe rdma_rxe`; Debian's -cloud- kernels lack it, the plain linux-image-amd64 has it"},
	"siw": {"siw", "Debian does not build it: build siw.ko from the linux-source package (ci/kernel does, rdmalab has it), then `modprobe siw`"},
}

// AddLink adds a software RNIC, as `rdma link add` does, in the calling
// thread's network namespace. It needs CAP_NET_ADMIN.
//
// It is idempotent: where the very link is there already it does nothing. A
// device of that name with another type or netdev, and a netdev that already
// carries a link of that type (the kernel allows one), are errors that satisfy
// fs.ErrExist. Other errors: fs.ErrPermission; unix.ENODEV, no such netdev;
// ErrNoModule, and what to load. The kernel loads the module if it is installed.
//
// AddLink returns as soon as the kernel has the link, which is before it can be
// used: call WaitUsable. It looks at ctx before it starts, not in between; the
// request itself does not wait for anything.
func AddLink(ctx context.Context, l Link) error { return Host{}.AddLink(ctx, l) }

// DelLink deletes a software RNIC, as `rdma link del` does; one that is not
// there is no error. It needs CAP_NET_ADMIN. Whoever uses the RNIC is told by
// a device-removal event. Where the driver cannot take the RNIC away from them
// (rxe and siw of Linux 6.1), DelLink waits in the kernel until the last has
// closed it, and nothing interrupts that, not even SIGKILL: a program that has
// the RNIC open itself must close it on that event, in another goroutine.
// Hardware cannot be deleted: unix.EINVAL.
func DelLink(ctx context.Context, name string) error { return Host{}.DelLink(ctx, name) }

// AddLink is the package's AddLink, looking around in h.
func (h Host) AddLink(ctx context.Context, l Link) error {
	fail := func(err error, hint string) error {
		return &OpError{Op: "add", Object: l.Name, Err: err, Hint: hint}
	}
	if err := l.check(); err != nil {
		return fail(unix.EINVAL, err.Error())
	}
	if err := ctx.Err(); err != nil {
		return fail(err, "")
	}
	if done, err := h.hasLink(l); done || err != nil {
		return err
	}
	err := h.kernel().add(l.Name, l.Type, l.Netdev)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENFILE) {
		// Another process may have added the very same link meanwhile.
		if done, again := h.hasLink(l); done || again != nil {
			return again
		}
	}
	if err != nil {
		hint, err := h.explainAdd(l, err)
		return fail(err, hint)
	}
	return nil
}

func (l Link) check() error {
	if err := checkName("link", l.Name, maxName); err != nil {
		return err
	}
	for _, c := range []byte(l.Name) {
		if c == '%' || c <= ' ' || c >= 0x7f {
			return fmt.Errorf("link name %q has a character other than printable ASCII, or a %%", l.Name)
		}
	}
	if _, ok := linkTypes[l.Type]; !ok {
		return fmt.Errorf("link type %q is not known: use rxe (RoCE v2) or siw (iWARP)", l.Type)
	}
	return checkName("netdev", l.Netdev, maxNetdev)
}

// hasLink reports whether the link is there; a device of its name that is
// another link is an error.
func (h Host) hasLink(l Link) (bool, error) {
	d, err := h.device(l.Name)
	if errors.Is(err, ErrNotFound) || errors.Is(err, errNoNetlink) {
		return false, nil
	}
	fail := func(err error, hint string) (bool, error) {
		return false, &OpError{Op: "add", Object: l.Name, Err: err, Hint: hint}
	}
	if err != nil {
		return fail(err, "cannot see whether the link is there")
	}
	typ, netdev, err := h.linkOf(d)
	if err != nil {
		return fail(err, "a device of that name is there, but cannot be examined")
	}
	if typ == l.Type && netdev == l.Netdev {
		return true, nil
	}
	if netdev == "" {
		netdev = "no netdev of this network namespace"
	}
	return fail(unix.EEXIST, fmt.Sprintf("a device of that name is there, type %s on %s: choose another name, or `rnic del %s` first",
		printable(typ), printable(netdev), l.Name))
}

// linkOf tells a device's driver and its first port's netdev.
func (h Host) linkOf(d device) (typ, netdev string, err error) {
	r := h.reader(d)
	if !d.netlink {
		return "", "", errNoNetlink
	}
	ports, err := h.kernel().query.ports(d.index)
	if err != nil {
		return "", "", err
	}
	if len(ports) > 0 {
		netdev = ports[0].netdev
	}
	return r.driver(r.may(r.at("node_desc")...)), netdev, nil
}

// explainAdd says what the kernel's answer means for l.
func (h Host) explainAdd(l Link, err error) (hint string, _ error) {
	typ := linkTypes[l.Type]
	loaded := h.moduleLoaded(typ.module)
	switch {
	case errors.Is(err, unix.EPERM) && !h.kernel().netAdmin():
		return "changing RDMA links needs root (CAP_NET_ADMIN): run it with sudo", err
	case errors.Is(err, unix.EPERM):
		return fmt.Sprintf("the %s driver refuses netdev %s: use the device below it if it is a VLAN, and the initial user namespace", l.Type, l.Netdev), err
	case errors.Is(err, unix.ENODEV):
		return fmt.Sprintf("no netdev %s in this network namespace: `ip link` lists them", printable(l.Netdev)), err
	case errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EINVAL) && !loaded:
		return typ.module + ".ko: " + typ.hint, ErrNoModule
	case errors.Is(err, unix.ENOENT) && l.Type == "rxe":
		return "rxe needs a crc32 module here: `modprobe crc32_generic`", err
	case errors.Is(err, unix.EEXIST):
		return fmt.Sprintf("netdev %s already carries %s: a netdev can have one link of a type", l.Netdev, h.linkOn(l)), err
	case errors.Is(err, unix.ENFILE):
		return "a device of that name is in another network namespace: choose another name", unix.EEXIST
	case errors.Is(err, unix.EINVAL):
		return fmt.Sprintf("the %s driver refuses netdev %s: it must be an Ethernet device", l.Type, l.Netdev), err
	}
	return "`dmesg | tail` may say why", err
}

func (h Host) moduleLoaded(module string) bool {
	_, err := os.Stat(h.sysfs().path("module", module))
	return err == nil
}

// linkOn names the link of l's type that l's netdev carries.
func (h Host) linkOn(l Link) string {
	found, _ := h.devices() // only a better wording hangs on it
	for _, d := range found {
		if typ, netdev, err := h.linkOf(d); err == nil && typ == l.Type && netdev == l.Netdev {
			return printable(d.name)
		}
	}
	return "a link of type " + l.Type
}

// DelLink is the package's DelLink, looking around in h.
func (h Host) DelLink(ctx context.Context, name string) error {
	fail := func(err error, hint string) error {
		return &OpError{Op: "del", Object: name, Err: err, Hint: hint}
	}
	if err := checkName("link", name, maxName); err != nil {
		return fail(unix.EINVAL, err.Error())
	}
	if err := ctx.Err(); err != nil {
		return fail(err, "")
	}
	if there, err := h.there(name); err != nil {
		return fail(err, "cannot see whether the link is there")
	} else if !there {
		return nil
	}
	err := h.kernel().del(name)
	if err == nil {
		return nil
	}
	if there, again := h.there(name); again == nil && !there {
		return nil // somebody else was faster
	}
	switch {
	case errors.Is(err, unix.EPERM):
		return fail(err, "changing RDMA links needs root (CAP_NET_ADMIN): run it with sudo")
	case errors.Is(err, unix.EINVAL):
		return fail(err, "it is not an rxe or siw link; hardware is removed by unbinding its driver")
	}
	return fail(err, "`dmesg | tail` may say why")
}

func (h Host) there(name string) (bool, error) {
	_, err := h.device(name)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
