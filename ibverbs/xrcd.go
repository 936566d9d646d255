package ibverbs

import "sync/atomic"

// XRCD is an extended reliable connection domain: XRC receive QPs and XRC SRQs
// work together within one. Processes that open it on the same file share it.
// It is safe for concurrent use.
type XRCD struct {
	handle
	dev  *Device
	xrcd *cXRCD
}

// xrcdIDs numbers XRC domains, for their names.
var xrcdIDs atomic.Uint64

// OpenXRCD opens an XRC domain: ibv_open_xrcd(3). fd is an open file, whose
// inode names the domain to other processes; it may be closed afterwards. -1
// means a domain of this process only. flags are syscall.O_CREAT, without
// which the domain must be there already, and syscall.O_EXCL, with which it
// must not; without a file O_CREAT is needed. The caller closes the domain.
//
// Few devices have XRC: the error of the others satisfies
// errors.ErrUnsupported.
func (d *Device) OpenXRCD(fd, flags int) (*XRCD, error) {
	const op = "ibv_open_xrcd"
	x := &XRCD{dev: d}
	if err := x.adopt("XRC domain", &d.handle); err != nil {
		return nil, wrap(op, d.object, err)
	}
	attr := xrcdAttrToC(fd, flags)
	c, err := openXRCD(d.ctx, &attr)
	if err != nil {
		x.disown()
		return nil, wrap(op, d.object, err)
	}
	x.xrcd = c
	x.named("%s/xrcd%d", d.object, xrcdIDs.Add(1))
	watch(x, &x.handle)
	return x, nil
}

// Device is the device that the domain belongs to.
func (x *XRCD) Device() *Device { return x.dev }

// OpenQP opens an XRC receive QP of the domain that another process has
// created, by its number: ibv_open_qp(3). The QP can be modified, queried and
// closed; it belongs to no PD, and takes no work requests.
func (x *XRCD) OpenQP(qpn uint32) (*QP, error) {
	const op = "ibv_open_qp"
	qp := &QP{dev: x.dev, qpn: qpn, typ: QPTypeXRCRecv}
	qp.readDepth.Store(-1)
	if err := qp.adopt("QP", &x.handle); err != nil {
		return nil, wrap(op, x.object, err)
	}
	attr := qpOpenAttrToC(qpn, x.xrcd)
	c, err := openQP(x.dev.ctx, &attr)
	if err != nil {
		qp.disown()
		return nil, wrap(op, x.object, err)
	}
	qp.qp = c
	qp.named("%s/qp%d", x.object, qpn)
	x.dev.async.register(qpID(c), qp)
	watch(qp, &qp.handle)
	return qp, nil
}

// Close closes the domain: ibv_close_xrcd(3). It fails with EBUSY while QPs and
// SRQs use it here, and is nil when called again. The domain lives on in
// processes that have it open.
func (x *XRCD) Close() error {
	return x.close("ibv_close_xrcd", nil, func() error { return closeXRCD(x.xrcd) })
}
