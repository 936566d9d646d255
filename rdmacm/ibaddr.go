package rdmacm

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
)

// IBAddr is an InfiniBand address (struct sockaddr_ib), for IDs that name their
// peers by GID and service ID instead of by IP address. RoCE and iWARP have no
// such addresses: binding to one gives ENODEV there.
type IBAddr struct {
	PKey     uint16 // 0xffff is the default partition, full member
	FlowInfo uint32
	GID      ibverbs.GID
	// ServiceID names the service: the port space in bits 16 to 63
	// (IBServiceID) and a port in the rest.
	ServiceID uint64
	// ServiceIDMask tells which bits of ServiceID count.
	ServiceIDMask uint64
	ScopeID       uint64
}

// IBServiceID is the service ID of a port in a port space, as librdmacm has it
// (RDMA_IB_IP_PS_TCP and its like).
func IBServiceID(ps PortSpace, port uint16) uint64 { return uint64(ps)<<16 | uint64(port) }

// Port is the port in the service ID.
func (a IBAddr) Port() uint16 { return uint16(a.ServiceID) }

// String reads "[fe80::1]/0x1061234 pkey 0xffff".
func (a IBAddr) String() string {
	return fmt.Sprintf("[%v]/%#x pkey %#x", a.GID.Addr(), a.ServiceID, a.PKey)
}

// Offsets in struct sockaddr_ib, and the number of its family.
const (
	afIB             = 27
	offIBPKey        = 2
	offIBFlowInfo    = 4
	offIBAddr        = 8
	offIBSID         = 24
	offIBSIDMask     = 32
	offIBScopeID     = 40
	sizeofSockaddrIB = 48
)

func (a IBAddr) sockaddr() sockaddr {
	var sa sockaddr
	binary.NativeEndian.PutUint16(sa[:], afIB)
	binary.BigEndian.PutUint16(sa[offIBPKey:], a.PKey)
	binary.BigEndian.PutUint32(sa[offIBFlowInfo:], a.FlowInfo)
	copy(sa[offIBAddr:], a.GID[:])
	binary.BigEndian.PutUint64(sa[offIBSID:], a.ServiceID)
	binary.BigEndian.PutUint64(sa[offIBSIDMask:], a.ServiceIDMask)
	binary.NativeEndian.PutUint64(sa[offIBScopeID:], a.ScopeID)
	return sa
}

// ibFromSockaddr is nil for an address of another family.
func ibFromSockaddr(sa sockaddr) *IBAddr {
	if binary.NativeEndian.Uint16(sa[:]) != afIB {
		return nil
	}
	return &IBAddr{
		PKey:          binary.BigEndian.Uint16(sa[offIBPKey:]),
		FlowInfo:      binary.BigEndian.Uint32(sa[offIBFlowInfo:]),
		GID:           ibverbs.GID(sa[offIBAddr:offIBSID]),
		ServiceID:     binary.BigEndian.Uint64(sa[offIBSID:]),
		ServiceIDMask: binary.BigEndian.Uint64(sa[offIBSIDMask:]),
		ScopeID:       binary.NativeEndian.Uint64(sa[offIBScopeID:]),
	}
}

// BindIBAddr is BindAddr with an InfiniBand address.
func (id *ID) BindIBAddr(addr IBAddr) error {
	return id.call("rdma_bind_addr", func() error {
		if err := cBindAddr(id.c, addr.sockaddr()); err != nil {
			return err
		}
		id.readRoute()
		return nil
	})
}

// ResolveIBAddr is ResolveAddr with InfiniBand addresses; a nil src lets the
// kernel choose.
func (id *ID) ResolveIBAddr(src *IBAddr, dst IBAddr, timeout time.Duration) error {
	return id.call("rdma_resolve_addr", func() error {
		var from sockaddr
		if src != nil {
			from = src.sockaddr()
		}
		return cResolveAddr(id.c, from, dst.sockaddr(), milliseconds(timeout))
	})
}

// LocalIBAddr is the source address where it is an InfiniBand one, else nil.
func (id *ID) LocalIBAddr() *IBAddr { return id.getRoute().srcIB }

// PeerIBAddr is the destination address where it is an InfiniBand one, else nil.
func (id *ID) PeerIBAddr() *IBAddr { return id.getRoute().dstIB }

// LocalPort is the source's port, whatever the family of its address; 0 while
// there is none (rdma_get_src_port(3)).
func (id *ID) LocalPort() uint16 { return id.getRoute().srcPort }

// PeerPort is the destination's port (rdma_get_dst_port(3)).
func (id *ID) PeerPort() uint16 { return id.getRoute().dstPort }
