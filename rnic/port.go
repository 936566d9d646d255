package rnic

import (
	"net"
	"slices"
	"strconv"
)

// maxNetdev is the kernel's IFNAMSIZ less its NUL.
const maxNetdev = 15

// ports reads all ports. Netlink knows state and netdev, sysfs the rest; their
// port numbers are joined, so that a port that only one of them has is seen.
func (r *reader) ports() []Port {
	fromNetlink := map[int]nldevPort{}
	var numbers []int
	if r.dev.netlink {
		ports, err := r.h.kernel().query.ports(r.dev.index)
		if err != nil {
			r.problem("netlink RDMA_NLDEV_CMD_PORT_GET", err)
		}
		for _, p := range ports {
			fromNetlink[p.port] = p
			numbers = append(numbers, p.port)
		}
	}
	for _, n := range r.numbers(r.at("ports")...) {
		if !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	out := make([]Port, 0, len(numbers))
	for _, n := range numbers {
		p, ok := fromNetlink[n]
		out = append(out, r.port(n, p, ok))
	}
	return out
}

func (r *reader) port(n int, nl nldevPort, haveNetlink bool) Port {
	dir := r.at("ports", strconv.Itoa(n))
	at := func(elem ...string) []string { return append(slices.Clone(dir), elem...) }
	p := Port{Number: n, LID: nl.lid, State: nl.state, PhysState: nl.physState, Netdev: nl.netdev, NetdevIndex: nl.ifindex}
	p.LinkLayer = parsed(r.sysfs, r.must(at("link_layer")...), parseLinkLayer, at("link_layer")...)
	if !haveNetlink {
		p.State = parsed(r.sysfs, r.must(at("state")...), parsePortState, at("state")...)
		p.PhysState = parsed(r.sysfs, r.must(at("phys_state")...), parsePhysState, at("phys_state")...)
		p.LID = parsed(r.sysfs, r.may(at("lid")...), parseLID, at("lid")...)
	}
	p.Protocol = portProtocol(r.dev.protocol, r.dev.nodeType, p.LinkLayer)
	p.Rate = r.may(at("rate")...)
	p.RateGbps = parsed(r.sysfs, p.Rate, parseRate, at("rate")...)
	p.GIDs, p.GIDTableLen = r.gids(dir, p)
	r.netdev(&p, haveNetlink)
	return p
}

// portProtocol prefers the port's own link layer to what netlink says of the
// device, which looks at the first port only: mlx4 can have one port of each.
func portProtocol(device Protocol, node NodeType, l LinkLayer) Protocol {
	switch {
	case device == ProtocolIB && l == LinkLayerEthernet:
		return ProtocolRoCE
	case device == ProtocolRoCE && l == LinkLayerInfiniBand:
		return ProtocolIB
	case device != ProtocolUnknown:
		return device
	case node == NodeRNIC:
		return ProtocolIWARP
	case node == NodeUsnic || node == NodeUsnicUDP:
		return ProtocolUsnic
	case node == NodeCA && l == LinkLayerEthernet:
		return ProtocolRoCE
	case node >= NodeCA && node <= NodeRouter && l == LinkLayerInfiniBand:
		return ProtocolIB
	}
	return ProtocolUnknown
}

// netdev completes a port's netdev from sysfs: its name where netlink gave
// none, then what the netdev says of itself.
func (r *reader) netdev(p *Port, haveNetlink bool) {
	for _, g := range p.GIDs {
		if g.Netdev != "" && !slices.Contains(p.Netdevs, g.Netdev) {
			p.Netdevs = append(p.Netdevs, g.Netdev)
		}
	}
	if p.Protocol == ProtocolIB || p.Protocol == ProtocolOPA {
		p.Netdevs = append(p.Netdevs, r.ipoib(p.Number)...)
		return
	}
	if p.Netdev == "" && !haveNetlink {
		p.Netdev = r.netdevFromSysfs(p)
	}
	if p.Netdev == "" {
		return
	}
	for i := range p.GIDs {
		// An iWARP GID is the netdev's MAC, whatever the entry says.
		if p.Protocol == ProtocolIWARP && p.GIDs[i].Netdev == "" {
			p.GIDs[i].Netdev = p.Netdev
		}
	}
	if !slices.Contains(p.Netdevs, p.Netdev) {
		p.Netdevs = slices.Insert(p.Netdevs, 0, p.Netdev)
	}
	if err := checkName("netdev", p.Netdev, maxNetdev); err != nil {
		r.problem(r.path(r.at("ports", strconv.Itoa(p.Number))...), err)
		return
	}
	dir := []string{"class", "net", p.Netdev}
	at := func(name string) []string { return append(slices.Clone(dir), name) }
	p.NetdevMTU = parsed(r.sysfs, r.must(at("mtu")...), parseInt, at("mtu")...)
	p.NetdevAddress = r.may(at("address")...)
	if p.NetdevIndex == 0 {
		p.NetdevIndex = parsed(r.sysfs, r.may(at("ifindex")...), parseInt, at("ifindex")...)
	}
	p.ActiveMTU = activeMTU(r.drv, p.Protocol, p.NetdevMTU)
}

// ipoib names the IPoIB interfaces on a port: an InfiniBand port has no netdev
// of its own, and neither netlink nor its GIDs tell of these.
func (r *reader) ipoib(port int) []string {
	const arphrdInfiniband = 32
	var out []string
	for _, name := range r.list(r.at("device", "net")...) {
		at := func(attr string) []string { return r.at("device", "net", name, attr) }
		if parsed(r.sysfs, r.must(at("type")...), parseInt, at("type")...) != arphrdInfiniband {
			continue
		}
		if parsed(r.sysfs, r.must(at("dev_port")...), parseInt, at("dev_port")...) == port-1 {
			out = append(out, name)
		}
	}
	return out
}

// netdevFromSysfs is the second source: rxe's own attribute, then the owner of
// the first GID (the port's own address comes first in the table), then, for
// iWARP, the netdev whose MAC the GID is.
func (r *reader) netdevFromSysfs(p *Port) string {
	if v := r.may(r.at("parent")...); v != "" {
		return v
	}
	if len(p.Netdevs) > 0 {
		return p.Netdevs[0]
	}
	if p.Protocol == ProtocolIWARP && len(p.GIDs) > 0 {
		return r.netdevByMAC(net.HardwareAddr(p.GIDs[0].GID[:6]).String())
	}
	return ""
}

// netdevByMAC is the one netdev with that address. A VLAN shares the address
// of the device below it: of several, none.
func (r *reader) netdevByMAC(mac string) string {
	found := ""
	for _, name := range r.list("class", "net") {
		if r.may("class", "net", name, "address") != mac {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

// Header bytes that the kernel's MTU rules leave room for.
const (
	rxeHeaders  = 80 // RXE_MAX_HDR_LENGTH
	roceHeaders = 96 // iboe_get_mtu: GRH, UDP, BTH, XRC, AtomicETH, ICRC
)

// activeMTU is the port's active_mtu by the rule that its driver applies to
// the netdev's MTU; the kernel shows active_mtu itself through verbs only.
func activeMTU(driver string, p Protocol, netdevMTU int) int {
	room := netdevMTU
	switch {
	case netdevMTU == 0:
		return 0
	case p == ProtocolRoCE && driver == "rxe":
		room -= rxeHeaders
	case p == ProtocolRoCE:
		room -= roceHeaders
	case p == ProtocolIWARP:
	default:
		return 0
	}
	for mtu := 4096; mtu > 256; mtu /= 2 {
		if room >= mtu {
			return mtu
		}
	}
	return 256
}
