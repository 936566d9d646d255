package ibverbs

// What the oldest rdma-core lacks is looked up when it is called.

// #include "shim_qp.h"
// #include <stdlib.h>
import "C"

import (
	"syscall"
	"unsafe"
)

// newerVerb says whether the installed libibverbs has a function, which came
// with that version of rdma-core.
func newerVerb(name string, since int) error {
	if hasVerb(name) {
		return nil
	}
	return hint(syscall.ENOSYS, "the installed rdma-core has no %s: it came with version %d", name, since)
}

func hasVerb(name string) bool {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return C.gv_verbs_symbol(c) != nil
}
