package ibverbs

// The control path: one Go function per verb, that returns a Go error.

// #cgo noescape gv_get_cq_event
// #cgo nocallback gv_get_cq_event
// #include "shim.h"
// #include <stdlib.h>
import "C"

import (
	"syscall"
	"unsafe"

	"github.com/goverbs/goverbs/internal/gate"
)

// eachDevice calls fn for the devices of ibv_get_device_list(3) until fn
// returns false. The device is only valid inside fn.
func eachDevice(fn func(*C.struct_ibv_device) bool) error {
	var n C.int
	list, errno := C.ibv_get_device_list(&n)
	if list == nil && errno == syscall.ENOSYS {
		return nil // what libibverbs says where the kernel has no RDMA modules
	}
	if err := nullErr(list == nil, errno); err != nil {
		return err
	}
	defer C.ibv_free_device_list(list)
	for _, d := range unsafe.Slice(list, int(n)) {
		if !fn(d) {
			break
		}
	}
	return nil
}

func deviceInfoFromC(d *C.struct_ibv_device) DeviceInfo {
	return DeviceInfo{
		Name:       C.GoString(C.ibv_get_device_name(d)),
		UverbsName: C.GoString(&d.dev_name[0]),
		NodeType:   NodeType(d.node_type),
		Transport:  Transport(d.transport_type),
		NodeGUID:   guidFromC(C.ibv_get_device_guid(d)),
	}
}

func listDevices() ([]DeviceInfo, error) {
	var infos []DeviceInfo
	err := eachDevice(func(d *C.struct_ibv_device) bool {
		infos = append(infos, deviceInfoFromC(d))
		return true
	})
	return infos, err
}

// openDevice opens the device of that name; found is false where there is
// none.
func openDevice(name string) (ctx *cContext, info DeviceInfo, found bool, err error) {
	defer gate.Control.Enter()()
	listErr := eachDevice(func(d *C.struct_ibv_device) bool {
		if info = deviceInfoFromC(d); info.Name != name {
			return true
		}
		found = true
		var errno error
		ctx, errno = C.ibv_open_device(d)
		err = nullErr(ctx == nil, errno)
		return false
	})
	if listErr != nil {
		err = listErr
	}
	return ctx, info, found, err
}

func closeDevice(ctx *cContext) error {
	defer gate.Control.Enter()()
	ret, errno := C.ibv_close_device(ctx)
	return retErr(int(ret), errno)
}

func queryDevice(ctx *cContext) (DeviceAttr, error) {
	defer gate.Control.Enter()()
	var attr C.struct_ibv_device_attr
	ret, errno := C.ibv_query_device(ctx, &attr)
	if err := retErr(int(ret), errno); err != nil {
		return DeviceAttr{}, err
	}
	return deviceAttrFromC(&attr), nil
}

func queryGID(ctx *cContext, port uint8, index int) (GID, error) {
	var gid C.union_ibv_gid
	ret, errno := C.ibv_query_gid(ctx, C.uint8_t(port), C.int(index), &gid)
	return gidFromC(&gid), retErr(int(ret), errno)
}

func queryPKey(ctx *cContext, port uint8, index int) (pkey [2]byte, err error) {
	var be C.__be16
	ret, errno := C.ibv_query_pkey(ctx, C.uint8_t(port), C.int(index), &be)
	return *(*[2]byte)(unsafe.Pointer(&be)), retErr(int(ret), errno)
}

// queryGIDTable reads up to room entries.
func queryGIDTable(ctx *cContext, room int) ([]GIDEntry, error) {
	raw := make([]C.struct_ibv_gid_entry, max(room, 1))
	n, errno := C.ibv_query_gid_table(ctx, &raw[0], C.size_t(len(raw)), 0)
	if n < 0 {
		return nil, retErr(int(n), errno)
	}
	entries := make([]GIDEntry, n)
	for i := range entries {
		entries[i] = gidEntryFromC(&raw[i])
	}
	return entries, nil
}

func allocPD(ctx *cContext) (*cPD, error) {
	defer gate.Control.Enter()()
	pd, errno := C.ibv_alloc_pd(ctx)
	return pd, nullErr(pd == nil, errno)
}

func pdNumber(pd *cPD) uint32 { return uint32(pd.handle) }

func deallocPD(pd *cPD) error {
	defer gate.Control.Enter()()
	ret, errno := C.ibv_dealloc_pd(pd)
	return retErr(int(ret), errno)
}

func createCompChannel(ctx *cContext) (*cCompChannel, error) {
	defer gate.Control.Enter()()
	ch, errno := C.ibv_create_comp_channel(ctx)
	return ch, nullErr(ch == nil, errno)
}

func compChannelFD(ch *cCompChannel) int { return int(ch.fd) }

func destroyCompChannel(ch *cCompChannel) error {
	defer gate.Control.Enter()()
	ret, errno := C.ibv_destroy_comp_channel(ch)
	return retErr(int(ret), errno)
}

// getCQEvent takes and acknowledges one event, and returns the CQ's id; EAGAIN
// where there is none.
func getCQEvent(ch *cCompChannel) (uintptr, error) {
	var id C.uintptr_t
	ret := C.gv_get_cq_event(ch, &id)
	return uintptr(id), retErr(int(ret), nil)
}

func createCQ(ctx *cContext, cqe int, id uintptr, ch *cCompChannel, vector int) (*cCQ, error) {
	defer gate.Control.Enter()()
	cq, errno := C.gv_create_cq(ctx, C.int(cqe), C.uintptr_t(id), ch, C.int(vector))
	return cq, nullErr(cq == nil, errno)
}

func cqNumbers(cq *cCQ) (number uint32, cqe int) { return uint32(cq.handle), int(cq.cqe) }

func compVectors(ctx *cContext) int { return int(ctx.num_comp_vectors) }

func destroyCQ(cq *cCQ) error {
	defer gate.Control.Enter()()
	ret, errno := C.ibv_destroy_cq(cq)
	return retErr(int(ret), errno)
}

func qpNumber(qp *cQP) uint32 { return uint32(qp.qp_num) }

func modifyQP(qp *cQP, attr *QPAttr, mask QPAttrMask) error {
	defer gate.Control.Enter()()
	c := qpAttrToC(attr)
	ret, errno := C.ibv_modify_qp(qp, &c, C.int(mask))
	return retErr(int(ret), errno)
}

func queryQP(qp *cQP, mask QPAttrMask) (QPAttr, error) {
	defer gate.Control.Enter()()
	var attr C.struct_ibv_qp_attr
	var init C.struct_ibv_qp_init_attr
	ret, errno := C.ibv_query_qp(qp, &attr, C.int(mask), &init)
	if err := retErr(int(ret), errno); err != nil {
		return QPAttr{}, err
	}
	return qpAttrFromC(&attr), nil
}

func destroyQP(qp *cQP) error {
	defer gate.Control.Enter()()
	ret, errno := C.ibv_destroy_qp(qp)
	return retErr(int(ret), errno)
}
