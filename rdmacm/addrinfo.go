package rdmacm

import (
	"context"
	"net/netip"

	"github.com/goverbs/goverbs/ibverbs"
)

// AddrInfo is one way to reach a service (struct rdma_addrinfo,
// rdma_getaddrinfo(3)).
type AddrInfo struct {
	Flags     AddrInfoFlags
	Family    int            // unix.AF_INET, AF_INET6 or 27 (AF_IB)
	QPType    ibverbs.QPType // ibverbs.QPTypeRC or QPTypeUD
	PortSpace PortSpace
	// Src and Dst are the addresses to bind to and to connect to; SrcIB and
	// DstIB where they are InfiniBand's.
	Src, Dst     netip.AddrPort
	SrcIB, DstIB *IBAddr
	// SrcName and DstName are canonical names, where there are any.
	SrcName, DstName string
	// Route holds the paths where they are known already, from ibacm: for
	// ID.SetPath in place of ID.ResolveRoute.
	Route []PathData
	// Connect is private data that has to go with the request, from ibacm.
	Connect []byte
}

// AddrInfoFlags say how to look up (RAI_*).
type AddrInfoFlags int32

// Flags of AddrInfo.
const (
	AddrInfoPassive     AddrInfoFlags = 1 << 0 // PASSIVE: for a listener
	AddrInfoNumericHost AddrInfoFlags = 1 << 1 // NUMERICHOST: no name service
	AddrInfoNoRoute     AddrInfoFlags = 1 << 2 // NOROUTE: do not ask ibacm for paths
	AddrInfoFamily      AddrInfoFlags = 1 << 3 // FAMILY: Family says how to read the host
	AddrInfoSA          AddrInfoFlags = 1 << 4 // SA: ask the subnet administration (ResolveAddrInfo)
	AddrInfoDNS         AddrInfoFlags = 1 << 5 // DNS: ask the name service (ResolveAddrInfo)
)

// slowCalls lets only so many calls at a time into C that wait there, for the
// name service and its like: each holds an OS thread meanwhile.
var slowCalls = make(chan struct{}, 4)

// GetAddrInfo looks up how to reach service on node (rdma_getaddrinfo(3)). With
// AddrInfoPassive it is where to listen, and node may be empty. Of hints the
// flags, Family, QPType, PortSpace, and Src count; where hints has no PortSpace
// it is PortSpaceTCP.
//
// Dialer and ListenConfig do without it. It asks ibacm on InfiniBand, which
// they do not. The name service is asked in a goroutine of its own: when ctx
// ends, GetAddrInfo returns with ctx's error. A name that nobody knows gives a
// *net.DNSError.
func GetAddrInfo(ctx context.Context, node, service string, hints AddrInfo) ([]AddrInfo, error) {
	const op = "rdma_getaddrinfo"
	if hints.PortSpace == 0 {
		hints.PortSpace = PortSpaceTCP
	}
	if hints.QPType == 0 {
		hints.QPType = qpTypeOf(hints.PortSpace)
	}
	if err := ctx.Err(); err != nil {
		return nil, wrap(op, node, waitErr(ctx, err))
	}
	select {
	case slowCalls <- struct{}{}:
	case <-ctx.Done():
		return nil, wrap(op, node, waitErr(ctx, ctx.Err()))
	}
	type result struct {
		infos []AddrInfo
		err   error
	}
	got := make(chan result, 1)
	go func() {
		defer func() { <-slowCalls }()
		infos, err := cGetAddrInfo(node, service, &hints)
		got <- result{infos, err}
	}()
	select {
	case r := <-got:
		return r.infos, wrap(op, node, r.err)
	case <-ctx.Done():
		return nil, wrap(op, node, waitErr(ctx, ctx.Err()))
	}
}

// qpTypeOf is the type of QP that a port space's services have.
func qpTypeOf(ps PortSpace) ibverbs.QPType {
	if ps == PortSpaceUDP || ps == PortSpaceIPoIB {
		return ibverbs.QPTypeUD
	}
	return ibverbs.QPTypeRC
}

// ResolveAddrInfo looks up node and service for the ID (rdma_resolve_addrinfo(3)):
// EventAddrInfoResolved or EventAddrInfoError follows, and QueryAddrInfo then
// gives what was found. hints needs AddrInfoDNS or AddrInfoSA. An rdma-core that
// has no such call (before 59) gives errors.ErrUnsupported.
func (id *ID) ResolveAddrInfo(node, service string, hints AddrInfo) error {
	return id.call("rdma_resolve_addrinfo", func() error {
		return cResolveAddrInfo(id.c, node, service, &hints)
	})
}

// QueryAddrInfo gives what ResolveAddrInfo found, once
// (rdma_query_addrinfo(3)). ENOENT means that there is nothing. An rdma-core
// that has no such call gives errors.ErrUnsupported.
func (id *ID) QueryAddrInfo() ([]AddrInfo, error) {
	var infos []AddrInfo
	err := id.call("rdma_query_addrinfo", func() (err error) {
		infos, err = cQueryAddrInfo(id.c)
		return err
	})
	return infos, err
}

// WriteEvent puts an EventUser with a status and a number of the caller's on
// the ID's channel (rdma_write_cm_event(3)). An rdma-core or a kernel that has no
// such call (before 59, before Linux 6.17) gives errors.ErrUnsupported.
func (id *ID) WriteEvent(status int, arg uint64) error {
	return id.call("rdma_write_cm_event", func() error { return cWriteEvent(id.c, EventUser, status, arg) })
}
