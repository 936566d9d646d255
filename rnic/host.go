package rnic

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Host says where to read: the zero Host is the machine, in the calling
// thread's network namespace. It may be copied and used concurrently.
type Host struct {
	// Sysfs is the sysfs mount point; empty means /sys.
	Sysfs string
	// Dev is the directory of device files; empty means /dev.
	Dev string
	// NoNetlink reads sysfs alone: set it for a tree that is not of the
	// running kernel.
	NoNetlink bool

	fake *kernel // nil: the kernel
}

// List lists all RNICs of the machine, by name. See Host.List.
func List() ([]RNIC, error) { return Host{}.List() }

// Find reads one RNIC. See Host.Find.
func Find(name string) (RNIC, error) { return Host{}.Find(name) }

// List lists all RNICs, by name. A host without RDMA, or a network namespace
// without RDMA devices, has an empty list and no error.
//
// RDMA netlink says which devices there are and sysfs adds what netlink lacks;
// where there is no netlink sysfs says it all. An RNIC of which something could
// not be read is in the list, with its Problems; the error is for when the list
// itself could not be read. List does not block on devices, only on the kernel.
func (h Host) List() ([]RNIC, error) {
	found, err := h.devices()
	if err != nil {
		return nil, &OpError{Op: "list", Err: err}
	}
	out := make([]RNIC, 0, len(found))
	for _, d := range found {
		r, err := h.read(d)
		if errors.Is(err, ErrNotFound) {
			continue // removed while we were reading
		}
		if err != nil {
			return nil, &OpError{Op: "list", Object: d.name, Err: err}
		}
		out = append(out, r)
	}
	return out, nil
}

// Find reads the RNIC of that name; ErrNotFound where there is none.
func (h Host) Find(name string) (RNIC, error) {
	d, err := h.device(name)
	if err != nil {
		return RNIC{}, &OpError{Op: "list", Object: name, Err: err}
	}
	r, err := h.read(d)
	if err != nil {
		return RNIC{}, &OpError{Op: "list", Object: name, Err: err}
	}
	return r, nil
}

// device finds one device by name.
func (h Host) device(name string) (device, error) {
	if err := checkName("RNIC", name, maxName); err != nil {
		return device{}, err
	}
	found, err := h.devices()
	if err != nil {
		return device{}, err
	}
	for _, d := range found {
		if d.name == name {
			return d, nil
		}
	}
	return device{}, ErrNotFound
}

// device is an RNIC's identity and, if it came from netlink, what netlink says.
type device struct {
	nldevDevice
	netlink  bool
	problems []Problem // found before the device itself was read
}

// devices names the RNICs that are there, in order of their names.
func (h Host) devices() ([]device, error) {
	var nlErr error
	if !h.NoNetlink {
		found, err := h.kernel().query.devices()
		if err == nil {
			out := make([]device, 0, len(found))
			for _, d := range found {
				out = append(out, device{nldevDevice: d, netlink: true})
			}
			return out, nil
		}
		if !errors.Is(err, errNoNetlink) {
			nlErr = err
		}
	}
	names, err := h.sysfsNames()
	if err != nil {
		if nlErr != nil {
			err = fmt.Errorf("%w; RDMA netlink: %w", err, nlErr)
		}
		return nil, err
	}
	if nlErr != nil && len(names) == 0 {
		// Nothing in sysfs does not mean nothing when netlink failed.
		return nil, nlErr
	}
	out := make([]device, 0, len(names))
	for _, name := range names {
		d := device{nldevDevice: nldevDevice{name: name}}
		if nlErr != nil {
			d.problems = []Problem{{Source: "netlink RDMA_NLDEV_CMD_GET", Err: nlErr}}
		}
		out = append(out, d)
	}
	return out, nil
}

// sysfsNames lists class/infiniband; no such directory means no RDMA.
func (h Host) sysfsNames() ([]string, error) {
	s := h.sysfs()
	entries, err := os.ReadDir(s.path("class", "infiniband"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(s.root); err != nil {
			return nil, err // no sysfs at all tells nothing
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		// The class directory holds links; a plain file (bonding_masters
		// has that habit in class/net) is no device.
		if e.Type()&fs.ModeSymlink != 0 || e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func (h Host) sysfs() *sysfs {
	if h.Sysfs == "" {
		return &sysfs{root: "/sys"}
	}
	return &sysfs{root: h.Sysfs}
}

func (h Host) dev() string {
	if h.Dev == "" {
		return "/dev"
	}
	return h.Dev
}
