package rdmacm

// #cgo pkg-config: librdmacm libibverbs
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"syscall"
	"unsafe"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/bridge"
	"github.com/goverbs/goverbs/internal/gate"
)

// The C types that the rest of the package holds but never looks into.
type (
	cChannel = C.struct_rdma_event_channel
	cID      = C.struct_rdma_cm_id
	cEvent   = C.struct_gv_cm_event
	cRoute   = C.struct_gv_cm_route
)

// C and Go must agree on what crosses as plain bytes.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(sockaddr{})-unsafe.Sizeof(cRoute{}.src)]
	_ = [1]struct{}{}[unsafe.Sizeof(sockaddr{})-unsafe.Sizeof(C.struct_sockaddr_ib{})]
	_ = [1]struct{}{}[unsafe.Sizeof(sockaddr{})-C.GV_CM_ADDR_SIZE]
	_ = [1]struct{}{}[C.RDMA_MAX_RESP_RES-C.RDMA_MAX_INIT_DEPTH]
)

// errNotSupp is the kernel's ENOTSUPP, which is not meant to leave it and has no
// name outside.
const errNotSupp = syscall.Errno(524)

// retErr reads librdmacm's convention, -1 with errno set. ret and errno come
// from one C call.
func retErr(ret int, errno error) error {
	switch {
	case ret == 0:
		return nil
	case ret == -1 && errno == errNotSupp:
		return syscall.EOPNOTSUPP
	case ret == -1 && errno != nil:
		return errno
	case ret < -1:
		return syscall.Errno(-ret)
	case ret > 0:
		return syscall.Errno(ret)
	}
	return syscall.EIO
}

func cCreateChannel() (*cChannel, int, error) {
	defer gate.Control.Enter()()
	c, errno := C.rdma_create_event_channel()
	if c == nil {
		if errno == nil {
			errno = syscall.ENODEV
		}
		return nil, 0, errno
	}
	return c, int(c.fd), nil
}

func cDestroyChannel(c *cChannel) {
	defer gate.Control.Enter()()
	C.gv_cm_destroy_event_channel(c)
}

// cGetEvent takes one event into ev and acknowledges it. It returns
// syscall.EAGAIN where there is none.
func cGetEvent(c *cChannel, newToken uint64, ev *cEvent) error {
	for {
		ret := C.gv_cm_get_event(c, C.uintptr_t(newToken), ev)
		switch err := syscall.Errno(-ret); err {
		case 0:
			return nil
		case syscall.EINTR:
			// Nothing was taken, and the poller will not call again for it.
		default:
			return err
		}
	}
}

func cCreateID(c *cChannel, token uint64, ps PortSpace) (*cID, error) {
	defer gate.Control.Enter()()
	var id *cID
	ret, errno := C.gv_cm_create_id(c, &id, C.uintptr_t(token), C.int(ps))
	return id, retErr(int(ret), errno)
}

func portSpaceOf(id *cID) PortSpace { return PortSpace(id.ps) }

// cDestroyID and cConnect may wait for the peer on iWARP: the caller says which
// gate is theirs.
func cDestroyID(id *cID, g *gate.Gate) error {
	defer g.Enter()()
	ret, errno := C.gv_cm_destroy_id(id)
	return retErr(int(ret), errno)
}

func cReadRoute(id *cID) route {
	var r cRoute
	C.gv_cm_route(id, &r)
	return routeFromC(&r)
}

// bytePtr passes an address; the callee copies it.
func bytePtr(sa *sockaddr) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(&sa[0])) }

func cBindAddr(id *cID, addr sockaddr) error {
	defer gate.Control.Enter()()
	ret, errno := C.gv_cm_bind_addr(id, bytePtr(&addr))
	return retErr(int(ret), errno)
}

func cResolveAddr(id *cID, src, dst sockaddr, timeoutMs int) error {
	defer gate.Control.Enter()()
	ret, errno := C.gv_cm_resolve_addr(id, bytePtr(&src), bytePtr(&dst), C.int(timeoutMs))
	return retErr(int(ret), errno)
}

func cResolveRoute(id *cID, timeoutMs int) error {
	defer gate.Control.Enter()()
	ret, errno := C.rdma_resolve_route(id, C.int(timeoutMs))
	return retErr(int(ret), errno)
}

func cListen(id *cID, backlog int) error {
	defer gate.Control.Enter()()
	ret, errno := C.gv_cm_listen(id, C.int(backlog))
	return retErr(int(ret), errno)
}

// cForgetDevices makes librdmacm notice that a device is gone: it then closes
// its own context of it together with the last ID, and not only when the
// process ends. Until then `rdma link del` would wait on kernels whose driver
// cannot take a device away from its users.
func cForgetDevices() { C.gv_cm_forget_devices() }

// connParam lays p out for C. The private data must be in C memory, since a
// struct that C is given may not point into Go's heap.
func connParam(p ConnParam) (c C.struct_rdma_conn_param, free func()) {
	c.responder_resources = C.uint8_t(p.ResponderResources)
	c.initiator_depth = C.uint8_t(p.InitiatorDepth)
	if p.FlowControl {
		c.flow_control = 1
	}
	c.retry_count = C.uint8_t(p.RetryCount)
	c.rnr_retry_count = C.uint8_t(p.RNRRetryCount)
	if p.SRQ {
		c.srq = 1
	}
	c.qp_num = C.uint32_t(p.QPN)
	if len(p.PrivateData) == 0 {
		return c, func() {}
	}
	data := C.CBytes(p.PrivateData)
	c.private_data = data
	c.private_data_len = C.uint8_t(len(p.PrivateData))
	return c, func() { C.free(data) }
}

func cConnect(id *cID, p ConnParam, g *gate.Gate) error {
	defer g.Enter()()
	param, free := connParam(p)
	defer free()
	ret, errno := C.gv_cm_connect(id, &param)
	return retErr(int(ret), errno)
}

func cAccept(id *cID, p ConnParam) error {
	defer gate.Control.Enter()()
	param, free := connParam(p)
	defer free()
	ret, errno := C.gv_cm_accept(id, &param)
	return retErr(int(ret), errno)
}

func cEstablish(id *cID) error {
	defer gate.Control.Enter()()
	ret, errno := C.rdma_establish(id)
	return retErr(int(ret), errno)
}

// cRejectECE is cReject with the reason that the ECE options do not suit.
func cRejectECE(id *cID, data []byte) error {
	ret, errno := C.rdma_reject_ece(id, unsafe.Pointer(unsafe.SliceData(data)), C.uint8_t(len(data)))
	return retErr(int(ret), errno)
}

func cReject(id *cID, data []byte) error {
	defer gate.Control.Enter()()
	ret, errno := C.gv_cm_reject(id, unsafe.Pointer(unsafe.SliceData(data)), C.uint8_t(len(data)))
	return retErr(int(ret), errno)
}

func cDisconnect(id *cID) error {
	defer gate.Control.Enter()()
	ret, errno := C.gv_cm_disconnect(id)
	return retErr(int(ret), errno)
}

func cMigrate(id *cID, to *cChannel) error {
	defer gate.Control.Enter()()
	ret, errno := C.rdma_migrate_id(id, to)
	return retErr(int(ret), errno)
}

// Options of an ID, by the size that the kernel insists on.
const (
	optTOS        = C.RDMA_OPTION_ID_TOS
	optReuseAddr  = C.RDMA_OPTION_ID_REUSEADDR
	optAFOnly     = C.RDMA_OPTION_ID_AFONLY
	optAckTimeout = C.RDMA_OPTION_ID_ACK_TIMEOUT
)

func cSetOption(id *cID, opt, value, size int) error {
	ret, errno := C.gv_cm_set_option(id, C.int(opt), C.int(value), C.int(size))
	return retErr(int(ret), errno)
}

func cInitQPAttr(id *cID, state ibverbs.QPState) (ibverbs.QPAttr, ibverbs.QPAttrMask, error) {
	defer gate.Control.Enter()()
	var attr C.struct_ibv_qp_attr
	var mask C.int
	attr.qp_state = uint32(state)
	ret, errno := C.rdma_init_qp_attr(id, &attr, &mask)
	if err := retErr(int(ret), errno); err != nil {
		return ibverbs.QPAttr{}, 0, err
	}
	return bridge.QPAttrFromC(unsafe.Pointer(&attr)).(ibverbs.QPAttr), ibverbs.QPAttrMask(mask), nil
}
