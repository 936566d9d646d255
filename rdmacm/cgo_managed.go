package rdmacm

// What librdmacm makes itself: QPs, SRQs and endpoints.

// #include <rdma/rdma_verbs.h>
// #include "shim.h"
import "C"

import (
	"syscall"
	"unsafe"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/bridge"
)

// cVerbsKey tells librdmacm's contexts apart.
func cVerbsKey(id *cID) uintptr { return uintptr(unsafe.Pointer(id.verbs)) }

func cLendDevice(id *cID) *ibverbs.Device {
	return bridge.LendDevice(unsafe.Pointer(id.verbs)).(*ibverbs.Device)
}

func noteMoved(qp *ibverbs.QP, attr ibverbs.QPAttr, mask ibverbs.QPAttrMask) {
	bridge.QPMoved(qp, attr, mask)
}

// cCreateManagedQP runs under id.mu.
func cCreateManagedQP(id *ID, pd *ibverbs.PD, attr ibverbs.QPInitAttr) (*ibverbs.QP, error) {
	creating := true
	defer func() { creating = false }()
	qp, err := bridge.CreateQP(pd, attr, bridge.Maker{
		Create: func(p unsafe.Pointer) (unsafe.Pointer, error) {
			id.channel.taking.Lock()
			defer id.channel.taking.Unlock()
			c := (*C.struct_ibv_qp_init_attr_ex)(p)
			var ret C.int
			var errno error
			if c.comp_mask == C.IBV_QP_INIT_ATTR_PD {
				ret, errno = C.rdma_create_qp(id.c, c.pd, (*C.struct_ibv_qp_init_attr)(p))
			} else {
				ret, errno = C.rdma_create_qp_ex(id.c, c)
			}
			return unsafe.Pointer(id.c.qp), retErr(int(ret), errno)
		},
		Destroy: func() error {
			if creating {
				cDestroyManagedQP(id.c)
				return nil
			}
			return id.dropManagedQP()
		},
	})
	if err != nil {
		return nil, err
	}
	return qp.(*ibverbs.QP), nil
}

func cDestroyManagedQP(id *cID) { C.rdma_destroy_qp(id) }

// cCreateManagedSRQ runs under id.mu.
func cCreateManagedSRQ(id *ID, pd *ibverbs.PD, attr ibverbs.SRQInitAttr) (*ibverbs.SRQ, error) {
	creating := true
	defer func() { creating = false }()
	srq, err := bridge.CreateSRQ(pd, attr, bridge.Maker{
		Create: func(p unsafe.Pointer) (unsafe.Pointer, error) {
			c := (*C.struct_ibv_srq_init_attr_ex)(p)
			var ret C.int
			var errno error
			if c.comp_mask&C.IBV_SRQ_INIT_ATTR_TYPE == 0 || c.srq_type == C.IBV_SRQT_BASIC {
				ret, errno = C.rdma_create_srq(id.c, c.pd, (*C.struct_ibv_srq_init_attr)(p))
			} else {
				ret, errno = C.rdma_create_srq_ex(id.c, c)
			}
			return unsafe.Pointer(id.c.srq), retErr(int(ret), errno)
		},
		Destroy: func() error {
			if creating {
				cDestroyManagedSRQ(id.c)
				return nil
			}
			return id.dropManagedSRQ()
		},
	})
	if err != nil {
		return nil, err
	}
	return srq.(*ibverbs.SRQ), nil
}

func cDestroyManagedSRQ(id *cID) { C.rdma_destroy_srq(id) }

// cCreateEndpoint makes a listening endpoint, whose channel's descriptor it
// returns.
func cCreateEndpoint(info *AddrInfo) (*cID, int, error) {
	c, free, err := addrInfoToC(info)
	if err != nil {
		return nil, 0, err
	}
	defer free()
	var id *cID
	ret, errno := C.rdma_create_ep(&id, c, nil, nil)
	if err := retErr(int(ret), errno); err != nil {
		return nil, 0, err
	}
	return id, int(id.channel.fd), nil
}

func cDestroyEndpoint(id *cID) { C.gv_cm_destroy_ep(id) }

// cGetRequest takes a request, migrates its ID to a channel, and copies its
// event. It returns syscall.EAGAIN where there is none.
func cGetRequest(listener *cID, to *cChannel, token uint64, ev *cEvent) error {
	for {
		ret := C.gv_cm_get_request(listener, to, C.uintptr_t(token), ev)
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
