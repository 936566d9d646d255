package ibverbs

// Completion counters.

// #include "shim_compcntr.h"
import "C"

type cCompCntr = C.struct_gv_comp_cntr

// The calls that change a counter.
const (
	compCntrSet    = C.GV_COMP_CNTR_SET
	compCntrSetErr = C.GV_COMP_CNTR_SET_ERR
	compCntrInc    = C.GV_COMP_CNTR_INC
	compCntrIncErr = C.GV_COMP_CNTR_INC_ERR
)

func queryCompCntrCaps(ctx *cContext) (CompCntrCaps, error) {
	var c C.struct_gv_comp_cntr_caps
	ret, errno := C.gv_query_comp_cntr_caps(ctx, &c)
	return CompCntrCaps{
		MaxValue:    uint64(c.max_value),
		MaxCounters: int(c.max_counters),
		Ops:         CompCntrOps(c.ops),
	}, retErr(int(ret), errno)
}

func createCompCntr(ctx *cContext, typ CompCntrType) (c *cCompCntr, number uint32, err error) {
	c, errno := C.gv_create_comp_cntr(ctx, C.uint32_t(typ))
	if err := nullErr(c == nil, errno); err != nil {
		return nil, 0, err
	}
	return c, uint32(c.handle), nil
}

func destroyCompCntr(c *cCompCntr) error {
	ret, errno := C.gv_destroy_comp_cntr(c)
	return retErr(int(ret), errno)
}

func changeCompCntr(c *cCompCntr, op int, value uint64) error {
	ret, errno := C.gv_change_comp_cntr(c, C.int(op), C.uint64_t(value))
	return retErr(int(ret), errno)
}

func readCompCntr(c *cCompCntr, errs bool) (uint64, error) {
	var which C.int
	if errs {
		which = 1
	}
	var value C.uint64_t
	ret, errno := C.gv_read_comp_cntr(c, which, &value)
	return uint64(value), retErr(int(ret), errno)
}

func attachCompCntr(qp *cQP, c *cCompCntr, ops CompCntrOps) error {
	ret, errno := C.gv_qp_attach_comp_cntr(qp, c, C.uint32_t(ops))
	return retErr(int(ret), errno)
}
