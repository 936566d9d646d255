package rnic

import (
	"fmt"
	"strconv"
	"strings"
)

// parseIndex reads a GID index or a port number as a directory entry has it.
func parseIndex(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, fmt.Errorf("%.20q is not a table index", s)
	}
	return int(n), nil
}

// parseEnum reads "4: ACTIVE", the form of state, phys_state and node_type.
func parseEnum(s string) (uint8, error) {
	num, _, ok := strings.Cut(s, ":")
	n, err := strconv.ParseUint(num, 10, 8)
	if !ok || err != nil {
		return 0, fmt.Errorf("%.40q is not of the form \"4: NAME\"", s)
	}
	return uint8(n), nil
}

func parseNodeType(s string) (NodeType, error) {
	n, err := parseEnum(s)
	return NodeType(n), err
}

func parsePortState(s string) (PortState, error) {
	n, err := parseEnum(s)
	return PortState(n), err
}

func parsePhysState(s string) (PhysState, error) {
	n, err := parseEnum(s)
	return PhysState(n), err
}

func parseLinkLayer(s string) (LinkLayer, error) {
	switch s {
	case "InfiniBand":
		return LinkLayerInfiniBand, nil
	case "Ethernet":
		return LinkLayerEthernet, nil
	case "Unspecified", "Unknown":
		return LinkLayerUnknown, nil
	}
	return LinkLayerUnknown, fmt.Errorf("%.40q is no link layer", s)
}

// parseGIDType reads gid_attrs/types/N, whose "IB/RoCE v1" the protocol splits.
func parseGIDType(s string, p Protocol) (GIDType, error) {
	switch {
	case p == ProtocolIWARP:
		return GIDTypeUnknown, nil
	case s == "RoCE v2":
		return GIDTypeRoCEv2, nil
	case s == "IB/RoCE v1" && p == ProtocolRoCE:
		return GIDTypeRoCEv1, nil
	case s == "IB/RoCE v1":
		return GIDTypeIB, nil
	}
	return GIDTypeUnknown, fmt.Errorf("%.40q is no GID type", s)
}

// parseRate reads "100 Gb/sec (4X EDR)" or "2.5 Gb/sec (1X SDR)".
func parseRate(s string) (float64, error) {
	num, rest, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || !(v >= 0 && v <= 1e6) || !strings.HasPrefix(rest, "Gb/sec") {
		return 0, fmt.Errorf("%.40q is not of the form \"100 Gb/sec (4X EDR)\"", s)
	}
	return v, nil
}

// parseInt reads a decimal number that is not negative: an MTU, an ifindex.
func parseInt(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number", s)
	}
	return int(n), nil
}

// parseNUMA reads numa_node, whose -1 means none.
func parseNUMA(s string) (int, error) {
	if s == "-1" {
		return -1, nil
	}
	n, err := parseInt(s)
	if err != nil {
		return -1, err
	}
	return n, nil
}

// parseLID reads "0x1a".
func parseLID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a LID", s)
	}
	return uint32(n), nil
}

// parseDevNum reads a char device's "231:192".
func parseDevNum(s string) (DevNum, error) {
	a, b, ok := strings.Cut(s, ":")
	major, err1 := strconv.ParseUint(a, 10, 32)
	minor, err2 := strconv.ParseUint(b, 10, 32)
	if !ok || err1 != nil || err2 != nil {
		return DevNum{}, fmt.Errorf("%.40q is not of the form \"231:192\"", s)
	}
	return DevNum{Major: uint32(major), Minor: uint32(minor)}, nil
}

// isPCIAddress reports whether s looks like "0000:3b:00.1" (domains can have
// more than four digits).
func isPCIAddress(s string) bool {
	domain, rest, ok := strings.Cut(s, ":")
	if !ok || len(domain) < 4 || !isHex(domain) || len(rest) != 7 {
		return false
	}
	return rest[2] == ':' && rest[5] == '.' && isHex(rest[:2]) && isHex(rest[3:5]) && rest[6] >= '0' && rest[6] <= '7'
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 8
}
