package ibverbs

import "unsafe"

// raw lends p while h is kept from being destroyed. The error is fn's own, or
// os.ErrClosed.
func (h *handle) raw(p unsafe.Pointer, fn func(unsafe.Pointer) error) error {
	if err := h.acquire(); err != nil {
		return wrap("raw", h.object, err)
	}
	defer h.release()
	return fn(p)
}

// Raw lends fn the *struct ibv_context.
//
// What this package does not cover can be reached through the C pointer of an
// object, which each object's Raw lends to a function: a *struct ibv_qp for a
// QP, and so on. Pass it to C code of your own, as
//
//	err := qp.Raw(func(p unsafe.Pointer) error {
//		return check(C.my_query((*C.struct_ibv_qp)(p)))
//	})
//
// The object cannot be destroyed while the function runs: Close waits for it,
// so that the function must not call Close, and must not keep the pointer.
//
// This package knows nothing of what is done there. Do not destroy the object,
// do not poll its events or move a QP's state behind its back, and do not post
// to a queue while methods of this package post to it.
func (d *Device) Raw(fn func(unsafe.Pointer) error) error {
	return d.raw(unsafe.Pointer(d.ctx), fn)
}

// Raw lends fn the *struct ibv_pd; see Device.Raw.
func (pd *PD) Raw(fn func(unsafe.Pointer) error) error {
	return pd.raw(unsafe.Pointer(pd.pd), fn)
}

// Raw lends fn the *struct ibv_mr; see Device.Raw.
func (mr *MR) Raw(fn func(unsafe.Pointer) error) error {
	return mr.raw(unsafe.Pointer(mr.mr), fn)
}

// Raw lends fn the *struct ibv_mw; see Device.Raw.
func (mw *MW) Raw(fn func(unsafe.Pointer) error) error {
	return mw.raw(unsafe.Pointer(mw.mw), fn)
}

// Raw lends fn the *struct ibv_ah; see Device.Raw.
func (ah *AH) Raw(fn func(unsafe.Pointer) error) error {
	return ah.raw(unsafe.Pointer(ah.ah), fn)
}

// Raw lends fn the *struct ibv_comp_channel; see Device.Raw.
func (ch *CompChannel) Raw(fn func(unsafe.Pointer) error) error {
	return ch.raw(unsafe.Pointer(ch.ch), fn)
}

// Raw lends fn the *struct ibv_cq; see Device.Raw.
func (cq *CQ) Raw(fn func(unsafe.Pointer) error) error {
	return cq.raw(unsafe.Pointer(cq.cq), fn)
}

// Raw lends fn the *struct ibv_srq; see Device.Raw.
func (srq *SRQ) Raw(fn func(unsafe.Pointer) error) error {
	return srq.raw(unsafe.Pointer(srq.srq), fn)
}

// Raw lends fn the *struct ibv_qp; see Device.Raw.
func (qp *QP) Raw(fn func(unsafe.Pointer) error) error {
	return qp.raw(unsafe.Pointer(qp.qp), fn)
}

// Raw lends fn the *struct ibv_xrcd; see Device.Raw.
func (x *XRCD) Raw(fn func(unsafe.Pointer) error) error {
	return x.raw(unsafe.Pointer(x.xrcd), fn)
}

// Raw lends fn the *struct ibv_dm; see Device.Raw.
func (dm *DM) Raw(fn func(unsafe.Pointer) error) error {
	return dm.raw(unsafe.Pointer(dm.dm), fn)
}

// Raw lends fn the *struct ibv_td; see Device.Raw.
func (td *TD) Raw(fn func(unsafe.Pointer) error) error {
	return td.raw(unsafe.Pointer(td.td), fn)
}
