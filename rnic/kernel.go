package rnic

import (
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernel is what the package asks of the kernel other than through files.
type kernel struct {
	query    queryFunc
	addrs    func(ifindex int) ([]netlink.Addr, error)
	add      func(name, typ, netdev string) error
	del      func(name string) error
	netAdmin func() bool // whether the process may change RDMA links
}

var liveKernel = kernel{
	query:    queryKernel,
	addrs:    interfaceAddrs,
	add:      netlink.RdmaLinkAdd,
	del:      netlink.RdmaLinkDel,
	netAdmin: hasNetAdmin,
}

func (h Host) kernel() *kernel {
	if h.fake != nil {
		return h.fake
	}
	return &liveKernel
}

func interfaceAddrs(ifindex int) ([]netlink.Addr, error) {
	return netlink.AddrList(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: ifindex}}, netlink.FAMILY_ALL)
}

func hasNetAdmin() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return unix.Geteuid() == 0
	}
	return data[0].Effective&(1<<unix.CAP_NET_ADMIN) != 0
}
