// Package bridge is the only place where C pointers cross from one goverbs
// package to another. cgo gives each package C types of its own, so a struct
// that librdmacm fills in and ibverbs knows how to read passes as an
// unsafe.Pointer, through a function that its owner registers here.
package bridge

import "unsafe"

// QPAttrFromC converts a struct ibv_qp_attr in C memory to an ibverbs.QPAttr.
// Package ibverbs sets it when it is initialised.
var QPAttrFromC func(attr unsafe.Pointer) any
