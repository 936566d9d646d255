// Package bridge is the only place where C pointers cross from one goverbs
// package to another. cgo gives each package C types of its own, so a struct
// that librdmacm fills in and ibverbs knows how to read passes as an
// unsafe.Pointer, through a function that its owner registers here. So does
// what rdmacm must tell ibverbs and no user has to.
package bridge

import "unsafe"

// QPAttrFromC converts a struct ibv_qp_attr in C memory to an ibverbs.QPAttr.
// Package ibverbs sets it when it is initialised.
var QPAttrFromC func(attr unsafe.Pointer) any

// SetReadDepth tells an *ibverbs.QP how many READs it may have in flight. On
// iWARP only the connection manager knows. Package ibverbs sets it when it is
// initialised.
var SetReadDepth func(qp any, depth uint8)

// AHAttrFromC converts a struct ibv_ah_attr in C memory to an ibverbs.AHAttr.
// Package ibverbs sets it when it is initialised.
var AHAttrFromC func(attr unsafe.Pointer) any

// A Maker makes and destroys a C object that another library keeps an eye on,
// on behalf of the package whose object it becomes.
type Maker struct {
	// Create is given the struct ibv_qp_init_attr_ex or ibv_srq_init_attr_ex,
	// and gives the struct ibv_qp or ibv_srq.
	Create func(attr unsafe.Pointer) (unsafe.Pointer, error)
	// Destroy is called once nothing uses the object any more.
	Destroy func() error
}

// Package ibverbs sets these when it is initialised.
var (
	// LendDevice makes an *ibverbs.Device of a struct ibv_context that stays its
	// lender's: closing the device leaves it open.
	LendDevice func(ctx unsafe.Pointer) any
	// CreateQP is PD.CreateQP with a QP of maker's. pd is an *ibverbs.PD, attr an
	// ibverbs.QPInitAttr, and the result an *ibverbs.QP.
	CreateQP func(pd, attr any, maker Maker) (any, error)
	// CreateSRQ is the same for an *ibverbs.SRQ.
	CreateSRQ func(pd, attr any, maker Maker) (any, error)
	// QPMoved tells an *ibverbs.QP what its maker has modified: attr is an
	// ibverbs.QPAttr, mask an ibverbs.QPAttrMask.
	QPMoved func(qp, attr, mask any)
)
