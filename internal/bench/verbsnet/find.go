package verbsnet

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/rnic"
)

// findAddress looks for an RNIC of the wanted kind and returns an address of its
// network interface: near itself if it is on such an interface, since that is
// what the client has reached already.
func findAddress(name string, near netip.Addr) (netip.Addr, error) {
	rnics, err := rnic.List()
	if err != nil {
		return netip.Addr{}, err
	}
	return chooseAddress(name, rnics, interfaceAddrs, near)
}

func chooseAddress(name string, rnics []rnic.RNIC, addrs func(netdev string) ([]netip.Addr, error), near netip.Addr) (netip.Addr, error) {
	want, add := rnic.ProtocolRoCE, "rnic add rxe0 --type rxe --netdev NETDEV"
	if name == bench.TransportIWARP {
		want, add = rnic.ProtocolIWARP, "rnic add siw0 --type siw --netdev NETDEV"
	}
	var found netip.Addr
	var useless error
	for _, r := range rnics {
		for _, port := range r.Ports {
			if port.Protocol != want {
				continue
			}
			if port.State != rnic.PortStateActive {
				useless = fmt.Errorf("port %d of %s is %v", port.Number, r.Name, port.State)
				continue
			}
			list, err := addrs(port.Netdev)
			if err != nil || len(list) == 0 {
				useless = fmt.Errorf("%s has no IP address on its network interface %q: give it one", r.Name, port.Netdev)
				continue
			}
			for _, a := range list {
				if a == near {
					return a, nil
				}
			}
			if !found.IsValid() {
				found = list[0]
			}
		}
	}
	switch title := bench.TransportTitle(name); {
	case found.IsValid():
		return found, nil
	case useless != nil:
		return found, fmt.Errorf("no %s device to use: %w", title, useless)
	default:
		return found, fmt.Errorf("no %s device: add one (%s) or run in the lab (rdmalab exec -- rdmabench compare)", title, add)
	}
}

// interfaceAddrs are the addresses that RDMA may use: loopback and IPv6 link-local
// ones are not, the latter since they need a zone that differs between hosts. IPv4
// comes first.
func interfaceAddrs(netdev string) ([]netip.Addr, error) {
	ifc, err := net.InterfaceByName(netdev)
	if err != nil {
		return nil, err
	}
	all, err := ifc.Addrs()
	if err != nil {
		return nil, err
	}
	var v4, v6 []netip.Addr
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil || !prefix.Addr().IsGlobalUnicast() {
			continue
		}
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix.Addr())
		} else {
			v6 = append(v6, prefix.Addr())
		}
	}
	return append(v4, v6...), nil
}

// netdevOf is the interface that has an address, and its MTU for RDMA.
func netdevOf(device string, port int) (netdev string, mtu int) {
	r, err := rnic.Find(device)
	if err != nil {
		return "", 0 // for the report only
	}
	for _, p := range r.Ports {
		if p.Number == port {
			return p.Netdev, p.ActiveMTU
		}
	}
	return "", 0
}
