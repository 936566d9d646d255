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
