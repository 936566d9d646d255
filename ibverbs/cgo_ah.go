package ibverbs

// #include "shim.h"
import "C"

import (
	"net"
	"unsafe"
)

type cAH = C.struct_ibv_ah

func createAH(pd *cPD, attr *AHAttr) (*cAH, error) {
	c := ahAttrToC(attr)
	ah, errno := C.ibv_create_ah(pd, &c)
	return ah, nullErr(ah == nil, errno)
}

func ahNumber(ah *cAH) uint32 { return uint32(ah.handle) }

func destroyAH(ah *cAH) error {
	ret, errno := C.ibv_destroy_ah(ah)
	return retErr(int(ret), errno)
}

// initAHFromWC gives C a header that is aligned, and that is there: C reads it
// even where wc says that there is none.
func initAHFromWC(ctx *cContext, port uint8, wc *WC, header *[GRHSize]byte) (AHAttr, error) {
	var grh C.struct_ibv_grh
	if header != nil {
		*(*[GRHSize]byte)(unsafe.Pointer(&grh)) = *header
	}
	var c C.struct_ibv_ah_attr
	ret, errno := C.ibv_init_ah_from_wc(ctx, C.uint8_t(port), (*C.struct_ibv_wc)(unsafe.Pointer(wc)), &grh, &c)
	return ahAttrFromC(&c), retErr(int(ret), errno)
}

func resolveEthL2(ctx *cContext, attr *AHAttr) (mac net.HardwareAddr, vlan uint16, err error) {
	c := ahAttrToC(attr)
	var ll [6]C.uint8_t
	vid := C.uint16_t(NoVLAN)
	ret, errno := C.ibv_resolve_eth_l2_from_gid(ctx, &c, &ll[0], &vid)
	if err := retErr(int(ret), errno); err != nil {
		return nil, 0, err
	}
	mac = make(net.HardwareAddr, len(ll))
	for i := range ll {
		mac[i] = byte(ll[i])
	}
	return mac, uint16(vid), nil
}

func attachMcast(qp *cQP, gid GID, lid uint16) error {
	c := gidToC(gid)
	ret, errno := C.ibv_attach_mcast(qp, &c, C.uint16_t(lid))
	return retErr(int(ret), errno)
}

func detachMcast(qp *cQP, gid GID, lid uint16) error {
	c := gidToC(gid)
	ret, errno := C.ibv_detach_mcast(qp, &c, C.uint16_t(lid))
	return retErr(int(ret), errno)
}

// udpSport is an inline function of verbs.h.
func udpSport(flowLabel uint32) uint16 {
	return uint16(C.ibv_flow_label_to_udp_sport(C.uint32_t(flowLabel)))
}

// The GRH has C's size, or this does not compile.
const _ = -(C.sizeof_struct_ibv_grh ^ GRHSize)

// cUD is the member ud of struct ibv_send_wr's union wr.
type cUD struct {
	ah        uintptr
	qpn, qkey uint32
}

// putAddress fills in wr.ud. The caller holds the AH.
func (c *cSendWR) putAddress(wr *SendWR) {
	*(*cUD)(unsafe.Pointer(&c.remoteAddr)) = cUD{uintptr(unsafe.Pointer(wr.AH.ah)), wr.RemoteQPN, wr.RemoteQKey}
}
