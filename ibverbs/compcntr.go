package ibverbs

import (
	"slices"
	"sync"
	"syscall"
)

// CompCntr is a completion counter: it counts what QPs complete, those that
// succeed and those that fail apart, and costs no completion. It is safe for
// concurrent use.
//
// Counters need rdma-core 65 and a device that has them; otherwise all calls
// give an error that satisfies errors.ErrUnsupported.
type CompCntr struct {
	handle
	dev *Device
	c   *cCompCntr
	typ CompCntrType

	attaching sync.Mutex
}

// CompCntrCaps tells what a device's completion counters can do (struct
// ibv_comp_cntr_caps).
type CompCntrCaps struct {
	MaxValue    uint64 // where a counter wraps
	MaxCounters int
	Ops         CompCntrOps // what they can count
}

// QueryCompCntrCaps tells what the device's completion counters can do:
// ibv_query_comp_cntr_caps(3).
func (d *Device) QueryCompCntrCaps() (CompCntrCaps, error) {
	var caps CompCntrCaps
	err := d.call("ibv_query_comp_cntr_caps", func() (err error) {
		if err := newerVerb("_ibv_query_comp_cntr_caps", compCntrSince); err != nil {
			return err
		}
		caps, err = queryCompCntrCaps(d.ctx)
		return err
	})
	return caps, err
}

// CreateCompCntr creates a completion counter that counts work requests or
// bytes: ibv_create_comp_cntr(3). Both its counts are 0. The caller closes it,
// after all QPs that it is attached to.
func (d *Device) CreateCompCntr(typ CompCntrType) (*CompCntr, error) {
	const op = "ibv_create_comp_cntr"
	cntr := &CompCntr{dev: d, typ: typ}
	if err := cntr.adopt("completion counter", &d.handle); err != nil {
		return nil, wrap(op, d.object, err)
	}
	if err := cntr.create(); err != nil {
		cntr.disown()
		return nil, wrap(op, d.object, err)
	}
	watch(cntr, &cntr.handle)
	return cntr, nil
}

// compCntrSince is the rdma-core that completion counters came with.
const compCntrSince = 65

func (cntr *CompCntr) create() error {
	if err := newerVerb("ibv_create_comp_cntr", compCntrSince); err != nil {
		return err
	}
	c, number, err := createCompCntr(cntr.dev.ctx, cntr.typ)
	if err != nil {
		return err
	}
	cntr.c = c
	cntr.named("%s/compcntr%d", cntr.dev.object, number)
	return nil
}

// Type is what the counter counts.
func (cntr *CompCntr) Type() CompCntrType { return cntr.typ }

// Device is the device that the counter belongs to.
func (cntr *CompCntr) Device() *Device { return cntr.dev }

// Set sets the count of what has succeeded: ibv_set_comp_cntr(3). What is
// counted meanwhile may be lost, and a Read may take a moment to see it.
func (cntr *CompCntr) Set(value uint64) error {
	return cntr.change("ibv_set_comp_cntr", compCntrSet, value)
}

// SetErr is Set for the count of what has failed: ibv_set_err_comp_cntr(3).
func (cntr *CompCntr) SetErr(value uint64) error {
	return cntr.change("ibv_set_err_comp_cntr", compCntrSetErr, value)
}

// Inc adds to the count of what has succeeded: ibv_inc_comp_cntr(3).
func (cntr *CompCntr) Inc(amount uint64) error {
	return cntr.change("ibv_inc_comp_cntr", compCntrInc, amount)
}

// IncErr adds to the count of what has failed: ibv_inc_err_comp_cntr(3).
func (cntr *CompCntr) IncErr(amount uint64) error {
	return cntr.change("ibv_inc_err_comp_cntr", compCntrIncErr, amount)
}

func (cntr *CompCntr) change(op string, which int, value uint64) error {
	return cntr.call(op, func() error { return changeCompCntr(cntr.c, which, value) })
}

// Read is how much has succeeded: ibv_read_comp_cntr(3).
func (cntr *CompCntr) Read() (uint64, error) { return cntr.read("ibv_read_comp_cntr", false) }

// ReadErr is how much has failed: ibv_read_err_comp_cntr(3).
func (cntr *CompCntr) ReadErr() (uint64, error) { return cntr.read("ibv_read_err_comp_cntr", true) }

func (cntr *CompCntr) read(op string, errs bool) (uint64, error) {
	var value uint64
	err := cntr.call(op, func() (err error) {
		value, err = readCompCntr(cntr.c, errs)
		return err
	})
	return value, err
}

// AttachCompCntr lets cntr count these operations of the QP, in state RESET or
// INIT: ibv_qp_attach_comp_cntr(3). An operation has one counter at most; a
// counter may count several, of several QPs. It stays attached until the QP is
// closed.
func (qp *QP) AttachCompCntr(cntr *CompCntr, ops CompCntrOps) error {
	return qp.call("ibv_qp_attach_comp_cntr", func() error {
		if cntr == nil {
			return hint(syscall.EINVAL, "no completion counter")
		}
		if cntr.dev != qp.dev {
			return hint(syscall.EINVAL, "%v is another device's", cntr)
		}
		if err := cntr.acquire(); err != nil {
			return hint(err, "the completion counter")
		}
		defer cntr.release()
		return cntr.attach(&qp.handle, func() error { return attachCompCntr(qp.qp, cntr.c, ops) })
	})
}

// attach makes child, for which fn attaches the counter, keep it open.
func (cntr *CompCntr) attach(child *handle, fn func() error) error {
	cntr.attaching.Lock()
	defer cntr.attaching.Unlock()
	if slices.Contains(child.family(), &cntr.handle) {
		return fn()
	}
	if err := child.join(&cntr.handle); err != nil {
		return err
	}
	if err := fn(); err != nil {
		child.leave(&cntr.handle)
		return err
	}
	return nil
}

// Close destroys the counter: ibv_destroy_comp_cntr(3). It fails with EBUSY
// while QPs are open that it is attached to, and is nil when called again.
func (cntr *CompCntr) Close() error {
	return cntr.close("ibv_destroy_comp_cntr", nil, func() error { return destroyCompCntr(cntr.c) })
}
