package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/goverbs/goverbs/rnic"
)

// writeTable prints one line for each port.
func writeTable(w io.Writer, rnics []rnic.RNIC) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tDRIVER\tPROTOCOL\tPORT\tSTATE\tNETDEV\tMTU\tACTIVE MTU\tGIDS\tRATE\tPCI\tNUMA")
	for _, r := range rnics {
		if len(r.Ports) == 0 {
			r.Ports = []rnic.Port{{}}
		}
		for _, p := range r.Ports {
			fmt.Fprintln(tw, strings.Join(row(r, p), "\t"))
		}
	}
	return tw.Flush()
}

func row(r rnic.RNIC, p rnic.Port) []string {
	// Where something could not be read an empty value is not a fact.
	none := "-"
	if len(r.Problems) > 0 {
		none = "?"
	}
	text := func(s string) string {
		if s == "" {
			return none
		}
		return safe(s)
	}
	num := func(n int) string {
		if n == 0 {
			return none
		}
		return strconv.Itoa(n)
	}
	state := none
	if p.State != rnic.PortStateUnknown {
		state = p.State.String()
	}
	netdev := p.Netdev
	if netdev == "" {
		netdev = strings.Join(p.Netdevs, ",")
	}
	gids := strconv.Itoa(len(p.GIDs))
	if len(p.GIDs) == 0 && len(r.Problems) > 0 {
		gids = none
	}
	node := none
	if r.NUMANode >= 0 {
		node = numa(r.NUMANode)
	}
	protocol := p.Protocol
	if p.Number == 0 {
		protocol = r.Protocol
	}
	return []string{
		safe(r.Name), text(r.Driver), protocol.String(), num(p.Number), state, text(netdev),
		num(p.NetdevMTU), num(p.ActiveMTU), gids, text(p.Rate), text(r.PCI), node,
	}
}

func numa(node int) string {
	if node < 0 {
		return "-"
	}
	return strconv.Itoa(node)
}

// writeDetails prints a block for each RNIC.
func writeDetails(w io.Writer, rnics []rnic.RNIC) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, r := range rnics {
		if i > 0 {
			fmt.Fprintln(tw)
		}
		d := details{tw}
		fmt.Fprintln(tw, safe(r.Name))
		d.line("driver", r.Driver)
		d.line("protocol", r.Protocol.String())
		d.line("node type", r.NodeType.String())
		d.line("node GUID", r.NodeGUID.String())
		d.line("system image GUID", r.SysImageGUID.String())
		d.line("firmware", r.Firmware)
		d.line("node description", r.NodeDescription)
		d.line("PCI address", r.PCI)
		d.line("NUMA node", numa(r.NUMANode))
		for _, c := range r.CharDevices {
			d.charDevice(c)
		}
		for _, p := range r.Ports {
			d.port(p)
		}
	}
	return tw.Flush()
}

type details struct{ io.Writer }

func (d details) line(name, value string) {
	if value == "" {
		value = "-"
	}
	fmt.Fprintf(d, "  %s\t%s\n", name, safe(value))
}

func (d details) charDevice(c rnic.CharDevice) {
	name := c.Kind + " device"
	if c.Port > 0 {
		name += " of port " + strconv.Itoa(c.Port)
	}
	value := fmt.Sprintf("%s (%v)", c.Path, c.Dev)
	if !c.Present {
		value += ", MISSING"
	}
	d.line(name, value)
}

func (d details) port(p rnic.Port) {
	d.line("port "+strconv.Itoa(p.Number), fmt.Sprintf("%v (physical: %v)", p.State, p.PhysState))
	d.line("  protocol", p.Protocol.String())
	d.line("  link layer", p.LinkLayer.String())
	d.line("  rate", p.Rate)
	if p.ActiveMTU > 0 {
		d.line("  active MTU", fmt.Sprintf("%d bytes", p.ActiveMTU))
	}
	if p.LID > 0 {
		d.line("  LID", fmt.Sprintf("%#x", p.LID))
	}
	if p.Netdev != "" {
		d.line("  netdev", fmt.Sprintf("%s (index %d, MTU %d, address %s)", p.Netdev, p.NetdevIndex, p.NetdevMTU, p.NetdevAddress))
	}
	if len(p.Netdevs) > 1 || p.Netdev == "" {
		d.line("  netdevs", strings.Join(p.Netdevs, ", "))
	}
	d.line("  GID table", fmt.Sprintf("%d of %d entries used", len(p.GIDs), p.GIDTableLen))
	for _, g := range p.GIDs {
		d.gid(p, g)
	}
}

func (d details) gid(p rnic.Port, g rnic.GIDEntry) {
	value := g.GID.String()
	if p.Protocol == rnic.ProtocolRoCE {
		value += fmt.Sprintf(" (%v)", g.GID.Addr())
	}
	if g.Type != rnic.GIDTypeUnknown {
		value += ", " + g.Type.String()
	}
	if g.Netdev != "" {
		value += ", " + g.Netdev
	}
	d.line("    GID "+strconv.Itoa(g.Index), value)
}

// safe is s as it may go to a terminal: device names and firmware strings are
// not ours. Tabs would break the table, control characters the terminal.
func safe(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) || r == '\uFFFD' {
			return strconv.Quote(s)
		}
	}
	return s
}
