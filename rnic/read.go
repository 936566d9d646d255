package rnic

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// reader reads one RNIC.
type reader struct {
	*sysfs
	h   Host
	dev device
	dir []string // class/infiniband/NAME below the root
	drv string   // the RDMA driver, once known
}

func (h Host) reader(d device) *reader {
	s := h.sysfs()
	s.problems = slices.Clone(d.problems)
	return &reader{sysfs: s, h: h, dev: d, dir: []string{"class", "infiniband", d.name}}
}

func (r *reader) at(elem ...string) []string { return append(slices.Clone(r.dir), elem...) }

// read reads one RNIC whole; ErrNotFound if it went away meanwhile.
func (h Host) read(d device) (RNIC, error) {
	out := RNIC{
		Name: d.name, Index: d.index, Firmware: d.firmware, NUMANode: -1, Protocol: d.protocol,
		NodeType: d.nodeType, NodeGUID: d.nodeGUID, SysImageGUID: d.sysImageGUID,
		Ports: []Port{}, CharDevices: []CharDevice{},
	}
	r := h.reader(d)
	if err := checkName("RNIC", d.name, maxName); err != nil {
		// A name that is no path element cannot be looked up in sysfs.
		source := "netlink RDMA_NLDEV_CMD_GET"
		if !d.netlink {
			source = r.path("class", "infiniband")
		}
		r.problem(source, err)
		out.Problems = r.problems
		return out, nil
	}
	if _, err := os.Stat(r.path(r.dir...)); err != nil {
		if absent(err) && !h.stillThere(d.name) {
			return RNIC{}, ErrNotFound
		}
		r.problem(r.path(r.dir...), err)
	} else {
		r.identity(&out)
	}
	out.Driver = r.driver(out.NodeDescription)
	r.drv = out.Driver
	out.Ports = r.ports()
	if out.Protocol == ProtocolUnknown && len(out.Ports) > 0 {
		out.Protocol = out.Ports[0].Protocol
	}
	out.PCI, out.NUMANode = r.location(out.Ports)
	out.CharDevices = r.charDevices()
	out.Problems = r.problems
	return out, nil
}

// stillThere asks the source that named the device whether it still does. A
// link in sysfs whose target is gone is a device half removed: still there.
func (h Host) stillThere(name string) bool {
	found, err := h.devices()
	return err != nil || slices.ContainsFunc(found, func(d device) bool { return d.name == name })
}

// identity fills what netlink did not.
func (r *reader) identity(out *RNIC) {
	out.NodeDescription = r.may(r.at("node_desc")...)
	if r.dev.netlink {
		return
	}
	out.NodeType = parsed(r.sysfs, r.must(r.at("node_type")...), parseNodeType, r.at("node_type")...)
	out.NodeGUID = parsed(r.sysfs, r.must(r.at("node_guid")...), ParseGUID, r.at("node_guid")...)
	out.SysImageGUID = parsed(r.sysfs, r.must(r.at("sys_image_guid")...), ParseGUID, r.at("sys_image_guid")...)
	out.Firmware = r.may(r.at("fw_ver")...)
	r.dev.nodeType = out.NodeType
}

// driver names the RDMA driver. Netlink's driver id is sure, but needs the
// uverbs module; else a link is known by what only its driver does, and
// hardware by the driver of its bus device. The latter comes last because rxe
// and siw may hang below the bus device of their netdev.
func (r *reader) driver(nodeDesc string) string {
	if r.dev.netlink {
		c, err := r.h.kernel().query.uverbs(r.dev.index)
		if err == nil && c.driverID != 0 {
			return driverName(c.driverID)
		}
		// Not a problem in itself: the device is usable without uverbs by
		// the kernel's own users, and the char device will be missing.
	}
	if r.may(r.at("parent")...) != "" {
		return "rxe" // only rxe has this attribute: its netdev's name
	}
	if r.dev.nodeType == NodeRNIC && strings.HasPrefix(nodeDesc, "Software iWARP") {
		return "siw"
	}
	link, err := os.Readlink(r.path(r.at("device", "driver")...))
	if err != nil {
		if !absent(err) {
			r.problem(r.path(r.at("device", "driver")...), err)
		}
		return ""
	}
	return filepath.Base(link)
}

// location finds PCI address and NUMA node: of the RNIC's own bus device, or
// of the bus device of its netdev. A device on an auxiliary or virtio bus is
// looked up along its parents.
func (r *reader) location(ports []Port) (pci string, numa int) {
	dirs := []string{r.path(r.at("device")...)}
	for _, p := range ports {
		if checkName("netdev", p.Netdev, maxNetdev) == nil {
			dirs = append(dirs, r.path("class", "net", p.Netdev, "device"))
		}
	}
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			if !absent(err) {
				r.problem(dir, err)
			}
			continue
		}
		return r.walkUp(real)
	}
	return "", -1
}

// walkUp looks for the closest PCI function and NUMA node from dir upwards,
// without leaving the sysfs root.
func (r *reader) walkUp(dir string) (pci string, numa int) {
	root, err := filepath.EvalSymlinks(r.root)
	if err != nil {
		return "", -1
	}
	numa = -1
	known := false
	for ; strings.HasPrefix(dir, root+"/"); dir = filepath.Dir(dir) {
		if !known {
			numa, known = r.numaNode(filepath.Join(dir, "numa_node"))
		}
		if isPCIAddress(filepath.Base(dir)) {
			return filepath.Base(dir), numa
		}
	}
	return "", numa
}

func (r *reader) numaNode(path string) (node int, known bool) {
	v, err := readAttr(path)
	if err == nil {
		node, err = parseNUMA(v)
		known = true
	}
	switch {
	case err == nil:
		return node, true
	case !absent(err):
		r.problem(path, err)
	}
	return -1, known
}
