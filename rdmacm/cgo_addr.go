package rdmacm

// Calls that look up addresses, paths and groups.

// #include <netdb.h>
// #include <stdlib.h>
// #include <string.h>
// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"net"
	"unsafe"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/bridge"
)

type cAddrInfo = C.struct_rdma_addrinfo

var (
	_ = [1]struct{}{}[unsafe.Sizeof(C.struct_ibv_path_record{})-pathRecordSize]
	_ = [1]struct{}{}[unsafe.Sizeof(C.struct_ibv_path_data{})-pathDataSize]
	_ = [1]struct{}{}[C.AF_IB-afIB]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_sockaddr_ib{}.sib_sid)-offIBSID]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_sockaddr_ib{}.sib_scope_id)-offIBScopeID]
)

// eventAH is the path that an event brings.
func eventAH(ev *cEvent) ibverbs.AHAttr {
	return bridge.AHAttrFromC(unsafe.Pointer(&ev.ah)).(ibverbs.AHAttr)
}

// swap16 and swap32 read a big-endian number that C holds as one.
func swap16[T ~uint16](v T) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], uint16(v))
	return binary.BigEndian.Uint16(b[:])
}

func swap32[T ~uint32](v T) uint32 {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(v))
	return binary.BigEndian.Uint32(b[:])
}

func routePaths(r *cRoute) []PathRecord {
	if r.num_paths <= 0 {
		return nil
	}
	paths := make([]PathRecord, r.num_paths)
	for i := range paths {
		paths[i] = pathFromC(&r.paths[i])
	}
	return paths
}

func pathFromC(c *C.struct_ibv_sa_path_rec) PathRecord {
	return PathRecord{
		DGID:           *(*ibverbs.GID)(unsafe.Pointer(&c.dgid)),
		SGID:           *(*ibverbs.GID)(unsafe.Pointer(&c.sgid)),
		DLID:           swap16(c.dlid),
		SLID:           swap16(c.slid),
		RawTraffic:     c.raw_traffic != 0,
		FlowLabel:      swap32(c.flow_label) & 0xfffff, // the rest is reserved
		HopLimit:       uint8(c.hop_limit),
		TrafficClass:   uint8(c.traffic_class),
		Reversible:     c.reversible != 0,
		NumPath:        uint8(c.numb_path),
		PKey:           swap16(c.pkey),
		SL:             uint8(c.sl),
		MTUSelector:    uint8(c.mtu_selector),
		MTU:            ibverbs.MTU(c.mtu),
		RateSelector:   uint8(c.rate_selector),
		Rate:           uint8(c.rate),
		LifeSelector:   uint8(c.packet_life_time_selector),
		PacketLifeTime: uint8(c.packet_life_time),
		Preference:     uint8(c.preference),
	}
}

func cSetPath(id *cID, paths []byte) error {
	ret, errno := C.rdma_set_option(id, C.RDMA_OPTION_IB, C.RDMA_OPTION_IB_PATH, unsafe.Pointer(&paths[0]), C.size_t(len(paths)))
	return retErr(int(ret), errno)
}

// cBytes copies b to C memory; nil for none.
func cBytes(b []byte) unsafe.Pointer {
	if len(b) == 0 {
		return nil
	}
	return C.CBytes(b)
}

// cString is nil for the empty string.
func cString(s string) *C.char {
	if s == "" {
		return nil
	}
	return C.CString(s)
}

// addrInfoToC lays a out in C memory, which free gives back.
func addrInfoToC(a *AddrInfo) (c *cAddrInfo, free func(), err error) {
	route, err := appendPathData(nil, a.Route)
	if err != nil {
		return nil, nil, err
	}
	src, err := sockaddrOf(a.Src, a.SrcIB)
	if err != nil {
		return nil, nil, err
	}
	dst, err := sockaddrOf(a.Dst, a.DstIB)
	if err != nil {
		return nil, nil, err
	}
	c = (*cAddrInfo)(C.calloc(1, C.sizeof_struct_rdma_addrinfo))
	c.ai_flags, c.ai_family = C.int(a.Flags), C.int(a.Family)
	c.ai_qp_type, c.ai_port_space = C.int(a.QPType), C.int(a.PortSpace)
	c.ai_src_addr, c.ai_src_len = (*C.struct_sockaddr)(cBytes(src)), C.socklen_t(len(src))
	c.ai_dst_addr, c.ai_dst_len = (*C.struct_sockaddr)(cBytes(dst)), C.socklen_t(len(dst))
	c.ai_src_canonname, c.ai_dst_canonname = cString(a.SrcName), cString(a.DstName)
	c.ai_route, c.ai_route_len = cBytes(route), C.size_t(len(route))
	c.ai_connect, c.ai_connect_len = cBytes(a.Connect), C.size_t(len(a.Connect))
	return c, func() {
		for _, p := range []unsafe.Pointer{
			unsafe.Pointer(c.ai_src_addr), unsafe.Pointer(c.ai_dst_addr), unsafe.Pointer(c.ai_src_canonname),
			unsafe.Pointer(c.ai_dst_canonname), c.ai_route, c.ai_connect, unsafe.Pointer(c),
		} {
			C.free(p)
		}
	}, nil
}

func addrInfoFromC(c *cAddrInfo) (AddrInfo, error) {
	a := AddrInfo{
		Flags:     AddrInfoFlags(c.ai_flags),
		Family:    int(c.ai_family),
		QPType:    ibverbs.QPType(c.ai_qp_type),
		PortSpace: PortSpace(c.ai_port_space),
	}
	address := func(p *C.struct_sockaddr, n C.socklen_t) (sa sockaddr) {
		if p != nil {
			copy(sa[:], unsafe.Slice((*byte)(unsafe.Pointer(p)), n))
		}
		return sa
	}
	src, dst := address(c.ai_src_addr, c.ai_src_len), address(c.ai_dst_addr, c.ai_dst_len)
	a.Src, a.SrcIB = fromSockaddr(src), ibFromSockaddr(src)
	a.Dst, a.DstIB = fromSockaddr(dst), ibFromSockaddr(dst)
	if c.ai_src_canonname != nil {
		a.SrcName = C.GoString(c.ai_src_canonname)
	}
	if c.ai_dst_canonname != nil {
		a.DstName = C.GoString(c.ai_dst_canonname)
	}
	if c.ai_connect_len > 0 {
		a.Connect = C.GoBytes(c.ai_connect, C.int(c.ai_connect_len))
	}
	var err error
	if c.ai_route_len > 0 {
		a.Route, err = parsePathData(C.GoBytes(c.ai_route, C.int(c.ai_route_len)))
	}
	return a, err
}

// addrInfosFromC takes a list over, and frees it.
func addrInfosFromC(list *cAddrInfo) ([]AddrInfo, error) {
	defer C.rdma_freeaddrinfo(list)
	var infos []AddrInfo
	for c := list; c != nil; c = c.ai_next {
		a, err := addrInfoFromC(c)
		if err != nil {
			return nil, err
		}
		infos = append(infos, a)
	}
	return infos, nil
}

func cGetAddrInfo(node, service string, hints *AddrInfo) ([]AddrInfo, error) {
	h, free, err := addrInfoToC(hints)
	if err != nil {
		return nil, err
	}
	defer free()
	n, s := cString(node), cString(service)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(s))
	var list *cAddrInfo
	ret, errno := C.rdma_getaddrinfo(n, s, h, &list)
	switch {
	case ret == 0:
		return addrInfosFromC(list)
	case ret == -1 && errno != nil:
		return nil, errno
	}
	// The name service's own numbers.
	return nil, &net.DNSError{
		Err: C.GoString(C.gai_strerror(ret)), Name: node,
		IsNotFound: ret == C.EAI_NONAME, IsTemporary: ret == C.EAI_AGAIN,
	}
}

func cResolveAddrInfo(id *cID, node, service string, hints *AddrInfo) error {
	h, free, err := addrInfoToC(hints)
	if err != nil {
		return err
	}
	defer free()
	n, s := cString(node), cString(service)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(s))
	ret, errno := C.gv_cm_resolve_addrinfo(id, n, s, h)
	return retErr(int(ret), errno)
}

func cQueryAddrInfo(id *cID) ([]AddrInfo, error) {
	var list *cAddrInfo
	ret, errno := C.gv_cm_query_addrinfo(id, &list)
	if err := retErr(int(ret), errno); err != nil {
		return nil, err
	}
	return addrInfosFromC(list)
}

func cWriteEvent(id *cID, typ EventType, status int, arg uint64) error {
	ret, errno := C.gv_cm_write_event(id, C.int(typ), C.int(status), C.uint64_t(arg))
	return retErr(int(ret), errno)
}

func cJoinMulticast(id *cID, group sockaddr, flags JoinFlags, join uint64) error {
	ret, errno := C.gv_cm_join_multicast(id, bytePtr(&group), C.int(flags), C.uintptr_t(join))
	return retErr(int(ret), errno)
}

func cLeaveMulticast(id *cID, group sockaddr) error {
	ret, errno := C.gv_cm_leave_multicast(id, bytePtr(&group))
	return retErr(int(ret), errno)
}

func cSetLocalECE(id *cID, ece ibverbs.ECE) error {
	c := C.struct_ibv_ece{vendor_id: C.uint32_t(ece.VendorID), options: C.uint32_t(ece.Options)}
	ret, errno := C.rdma_set_local_ece(id, &c)
	return retErr(int(ret), errno)
}

func cRemoteECE(id *cID) (ibverbs.ECE, error) {
	var c C.struct_ibv_ece
	ret, errno := C.rdma_get_remote_ece(id, &c)
	return ibverbs.ECE{VendorID: uint32(c.vendor_id), Options: uint32(c.options)}, retErr(int(ret), errno)
}

func cNotify(id *cID, event ibverbs.EventType) error {
	ret, errno := C.rdma_notify(id, uint32(event))
	return retErr(int(ret), errno)
}
