package rnic

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/Mellanox/rdmamap"
	"golang.org/x/sys/unix"
)

// charClasses are the sysfs classes with a device file per RNIC or port. Names
// are rdmamap's; its functions are not used, because they read /sys only and
// take what they cannot read for absent.
var charClasses = []struct{ dir, kind string }{
	{filepath.Base(rdmamap.RdmaUverbsDir), rdmamap.RdmaUverbsFilxPrefix},
	{filepath.Base(rdmamap.RdmaUmadDir), rdmamap.RdmaUmadFilxPrefix},
	{filepath.Base(rdmamap.RdmaUmadDir), rdmamap.RdmaIssmFilePrefix},
}

// charDevices finds the RNIC's device files, and the host's rdma_cm, which
// every user of librdmacm needs as well.
func (r *reader) charDevices() []CharDevice {
	out := []CharDevice{}
	for _, c := range charClasses {
		for _, name := range r.list("class", c.dir) {
			num, isKind := strings.CutPrefix(name, c.kind)
			if _, err := parseIndex(num); !isKind || err != nil {
				continue // abi_version, or the other kind in this class
			}
			if r.must("class", c.dir, name, "ibdev") != r.dev.name {
				continue
			}
			d := r.charDevice(c.kind, name, "class", c.dir, name, "dev")
			d.Port = parsed(r.sysfs, r.may("class", c.dir, name, "port"), parseInt, "class", c.dir, name, "port")
			out = append(out, d)
		}
	}
	if r.may("class", "misc", "rdma_cm", "dev") != "" {
		out = append(out, r.charDevice("rdma_cm", "rdma_cm", "class", "misc", "rdma_cm", "dev"))
	}
	return out
}

func (r *reader) charDevice(kind, name string, devAttr ...string) CharDevice {
	d := CharDevice{
		Kind: kind,
		Path: filepath.Join(r.h.dev(), filepath.Base(rdmamap.RdmaDeviceDir), name),
		Dev:  parsed(r.sysfs, r.must(devAttr...), parseDevNum, devAttr...),
	}
	var st unix.Stat_t
	switch err := unix.Stat(d.Path, &st); {
	case err == nil:
		d.Present = st.Mode&unix.S_IFMT == unix.S_IFCHR &&
			unix.Major(st.Rdev) == d.Dev.Major && unix.Minor(st.Rdev) == d.Dev.Minor
	case !absent(err):
		r.problem(d.Path, &os.PathError{Op: "stat", Path: d.Path, Err: err})
	}
	return d
}
