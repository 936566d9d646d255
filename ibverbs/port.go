package ibverbs

import (
	"encoding/binary"
	"fmt"
	"syscall"
)

// PortAttr holds a port's state (struct ibv_port_attr).
type PortAttr struct {
	State         PortState
	MaxMTU        MTU
	ActiveMTU     MTU
	GIDTableLen   int
	CapFlags      PortCapFlags
	CapFlags2     PortCapFlags2
	MaxMsgSize    uint32 // bytes
	BadPKeyCntr   uint32
	QKeyViolCntr  uint32
	PKeyTableLen  int
	LID           uint16 // InfiniBand only
	SMLID         uint16 // InfiniBand only
	LMC           uint8
	MaxVLNum      uint8
	SMSL          uint8
	SubnetTimeout uint8
	InitTypeReply uint8
	ActiveWidth   PortWidth
	ActiveSpeed   PortSpeed
	PhysState     PhysState
	LinkLayer     LinkLayer
	Flags         uint8 // PortGRHRequired
}

// PortWidth is a code for a port's number of lanes.
type PortWidth uint8

// Lanes is the number of lanes, 0 for an unknown code.
func (w PortWidth) Lanes() int {
	switch w {
	case 1:
		return 1
	case 2:
		return 4
	case 4:
		return 8
	case 8:
		return 12
	case 16:
		return 2
	}
	return 0
}

// String reads "4X".
func (w PortWidth) String() string {
	if n := w.Lanes(); n > 0 {
		return fmt.Sprintf("%dX", n)
	}
	return fmt.Sprintf("PortWidth(%d)", uint8(w))
}

// PortSpeed is a code for the signalling rate of one lane.
type PortSpeed uint32

// Gbps is the nominal rate of one lane in Gbit/s, 0 for an unknown code.
func (s PortSpeed) Gbps() float64 {
	switch s {
	case 1:
		return 2.5
	case 2:
		return 5
	case 4, 8:
		return 10
	case 16:
		return 14
	case 32:
		return 25
	case 64:
		return 50
	case 128:
		return 100
	case 256:
		return 200
	}
	return 0
}

// String reads "25 Gbit/s".
func (s PortSpeed) String() string {
	if g := s.Gbps(); g > 0 {
		return fmt.Sprintf("%g Gbit/s", g)
	}
	return fmt.Sprintf("PortSpeed(%d)", uint32(s))
}

// QueryPort reads a port's attributes: ibv_query_port(3). Ports count from 1.
func (d *Device) QueryPort(port int) (PortAttr, error) {
	var attr PortAttr
	err := d.call("ibv_query_port", func() error {
		number, err := d.portNumber(port)
		if err == nil {
			attr, err = queryPort(d.ctx, number)
		}
		return err
	})
	return attr, err
}

// QueryPKey reads an entry of a port's P_Key table: ibv_query_pkey(3), in host
// byte order.
func (d *Device) QueryPKey(port, index int) (uint16, error) {
	var pkey [2]byte
	err := d.call("ibv_query_pkey", func() error {
		number, err := d.portNumber(port)
		if err == nil {
			pkey, err = queryPKey(d.ctx, number, index)
		}
		return err
	})
	return binary.BigEndian.Uint16(pkey[:]), err
}

// portNumber checks port, which C would cut down to eight bits.
func (d *Device) portNumber(port int) (uint8, error) {
	attr, err := d.limits()
	if err != nil {
		return 0, err
	}
	if port < 1 || port > attr.PhysPortCount {
		return 0, hint(syscall.EINVAL, "port %d: the device has ports 1 to %d", port, attr.PhysPortCount)
	}
	return uint8(port), nil
}
