package ibverbs

// The data path of QPs that post through ibv_wr_*.

// #cgo noescape gv_wr_post
// #cgo nocallback gv_wr_post
// #include "shim_wr.h"
import "C"

import "unsafe"

// postEx posts the first n work requests that put laid out, all or none:
// ibv_wr_start(3) to ibv_wr_complete(3).
func (q *sendQueue) postEx(ex *cQPEx, n int) (accepted int, err error) {
	r := C.gv_wr_post(ex, (*C.struct_ibv_send_wr)(unsafe.Pointer(&q.wrs[0])), C.int(n))
	return int(r.accepted), postErr(r.err)
}
