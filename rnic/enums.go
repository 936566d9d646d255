package rnic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NodeType is what kind of node an RNIC is (enum rdma_node_type).
type NodeType uint8

// The node types of the kernel.
const (
	NodeCA          NodeType = 1 // InfiniBand or RoCE channel adapter
	NodeSwitch      NodeType = 2
	NodeRouter      NodeType = 3
	NodeRNIC        NodeType = 4 // iWARP
	NodeUsnic       NodeType = 5
	NodeUsnicUDP    NodeType = 6
	NodeUnspecified NodeType = 7 // EFA, for example
)

var nodeTypeNames = []string{"unknown", "ca", "switch", "router", "rnic", "usnic", "usnic_udp", "unspecified"}

// String is the name that rdma-dev(8) prints, or NodeType(9).
func (n NodeType) String() string { return enumName("NodeType", nodeTypeNames, uint8(n)) }

// MarshalText is String.
func (n NodeType) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (n *NodeType) UnmarshalText(b []byte) error { return enumValue(n, "NodeType", nodeTypeNames, b) }

// Protocol is what an RNIC, or one port of it, speaks on the wire.
type Protocol uint8

// The protocols that the kernel tells apart.
const (
	ProtocolUnknown Protocol = iota // EFA's SRD, for example
	ProtocolIB                      // InfiniBand
	ProtocolRoCE
	ProtocolIWARP
	ProtocolOPA
	ProtocolUsnic
)

var protocolNames = []string{"unknown", "IB", "RoCE", "iWARP", "OPA", "usNIC"}

func (p Protocol) String() string { return enumName("Protocol", protocolNames, uint8(p)) }

// MarshalText is String.
func (p Protocol) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (p *Protocol) UnmarshalText(b []byte) error { return enumValue(p, "Protocol", protocolNames, b) }

// protocolByNetlink maps RDMA_NLDEV_ATTR_DEV_PROTOCOL.
var protocolByNetlink = map[string]Protocol{
	"ib": ProtocolIB, "roce": ProtocolRoCE, "iw": ProtocolIWARP, "opa": ProtocolOPA, "usnic": ProtocolUsnic,
}

// PortState is a port's logical state (enum ib_port_state).
type PortState uint8

// The port states. Only an ACTIVE port carries data.
const (
	PortStateUnknown     PortState = 0 // could not be read; the kernel's own 0 is NOP
	PortStateDown        PortState = 1
	PortStateInit        PortState = 2
	PortStateArmed       PortState = 3
	PortStateActive      PortState = 4
	PortStateActiveDefer PortState = 5
)

var portStateNames = []string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}

// String is the name that rdma-link(8) prints, or PortState(9).
func (s PortState) String() string { return enumName("PortState", portStateNames, uint8(s)) }

// MarshalText is String.
func (s PortState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *PortState) UnmarshalText(b []byte) error {
	return enumValue(s, "PortState", portStateNames, b)
}

// PhysState is a port's physical state (enum ib_port_phys_state).
type PhysState uint8

// The physical states.
const (
	PhysStateUnknown                   PhysState = 0 // could not be read; the kernel's own 0 is NOP
	PhysStateSleep                     PhysState = 1
	PhysStatePolling                   PhysState = 2
	PhysStateDisabled                  PhysState = 3
	PhysStatePortConfigurationTraining PhysState = 4
	PhysStateLinkUp                    PhysState = 5
	PhysStateLinkErrorRecovery         PhysState = 6
	PhysStatePhyTest                   PhysState = 7
)

var physStateNames = []string{"NOP", "SLEEP", "POLLING", "DISABLED", "TRAINING", "LINK_UP", "LINK_ERROR_RECOVER", "PHY_TEST"}

// String is the name that rdma-link(8) prints, or PhysState(9); but TRAINING,
// which rdma-link calls ARMED after the port state that it is not.
func (s PhysState) String() string { return enumName("PhysState", physStateNames, uint8(s)) }

// MarshalText is String.
func (s PhysState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *PhysState) UnmarshalText(b []byte) error {
	return enumValue(s, "PhysState", physStateNames, b)
}

// LinkLayer is what a port's link is.
type LinkLayer uint8

// The link layers.
const (
	LinkLayerUnknown LinkLayer = iota
	LinkLayerInfiniBand
	LinkLayerEthernet
)

var linkLayerNames = []string{"Unknown", "InfiniBand", "Ethernet"}

// String is the name in sysfs.
func (l LinkLayer) String() string { return enumName("LinkLayer", linkLayerNames, uint8(l)) }

// MarshalText is String.
func (l LinkLayer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (l *LinkLayer) UnmarshalText(b []byte) error {
	return enumValue(l, "LinkLayer", linkLayerNames, b)
}

// GIDType says how packets from a GID are encapsulated.
type GIDType uint8

// The GID types.
const (
	GIDTypeUnknown GIDType = iota // could not be read, or iWARP, whose GID has none
	GIDTypeIB
	GIDTypeRoCEv1
	GIDTypeRoCEv2
)

var gidTypeNames = []string{"unknown", "IB", "RoCE v1", "RoCE v2"}

// String is the name that ibv_devinfo(1) prints.
func (t GIDType) String() string { return enumName("GIDType", gidTypeNames, uint8(t)) }

// MarshalText is String.
func (t GIDType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (t *GIDType) UnmarshalText(b []byte) error { return enumValue(t, "GIDType", gidTypeNames, b) }

// enumName is names[v], or T(v) for a value that a newer kernel may have.
func enumName(typ string, names []string, v uint8) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", typ, v)
}

func enumValue[T ~uint8](v *T, typ string, names []string, text []byte) error {
	s := string(text)
	if i := slices.Index(names, s); i >= 0 {
		*v = T(i)
		return nil
	}
	num, ok := strings.CutPrefix(s, typ+"(")
	n, err := strconv.ParseUint(strings.TrimSuffix(num, ")"), 10, 8)
	if !ok || err != nil {
		return fmt.Errorf("%.40q is no %s", s, typ)
	}
	*v = T(n)
	return nil
}
