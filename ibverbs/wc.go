package ibverbs

import "fmt"

// WC is a work completion, laid out as struct ibv_wc, so that C fills in the
// caller's slice.
//
// If Status is not WCStatusSuccess, only WRID, Status, QPN and VendorErr hold
// something.
type WC struct {
	WRID         uint64 // the work request's
	Status       WCStatus
	Opcode       WCOpcode
	VendorErr    uint32
	ByteLen      uint32 // bytes received, or moved by a READ or an atomic
	imm          uint32 // immediate data in network order, or the rkey
	QPN          uint32 // the local QP
	SrcQP        uint32 // UD: the sender's QP number
	Flags        WCFlags
	PKeyIndex    uint16
	SLID         uint16
	SL           uint8
	DLIDPathBits uint8
}

// ImmData is the immediate data that came with the message, in host byte
// order. It holds something only if Flags has WCWithImm.
func (wc *WC) ImmData() uint32 { return be32(wc.imm) }

// InvalidatedRKey is the key that the message invalidated. It holds something
// only if Flags has WCWithInv.
func (wc *WC) InvalidatedRKey() uint32 { return wc.imm }

// Err is nil for a work request that succeeded, and a *WCError for one that
// did not.
func (wc *WC) Err() error {
	return wcErr(wc.WRID, wc.Status, wc.QPN, wc.VendorErr)
}

// wcErr allocates nothing for a success.
func wcErr(id uint64, status WCStatus, qpn, vendorErr uint32) error {
	if status == WCStatusSuccess {
		return nil
	}
	return &WCError{WRID: id, Status: status, QPN: qpn, VendorErr: vendorErr}
}

// WCError says how a work request failed. After the first one, the QP is in
// the error state, and all other work requests end with WCStatusWRFlushErr.
type WCError struct {
	WRID      uint64
	Status    WCStatus
	QPN       uint32
	VendorErr uint32 // see the device's documentation
}

// Error reads "work request 7 of QP 17: RETRY_EXC_ERR: the peer does not
// acknowledge …".
func (e *WCError) Error() string {
	s := fmt.Sprintf("work request %d of QP %d: %v", e.WRID, e.QPN, e.Status)
	if why := wcReasons[e.Status]; why != "" {
		s += ": " + why
	}
	if e.VendorErr != 0 {
		s += fmt.Sprintf(" (vendor error %#x)", e.VendorErr)
	}
	return s
}

// Is lets errors.Is compare statuses: errors.Is(err, &WCError{Status: s}).
func (e *WCError) Is(target error) bool {
	t, ok := target.(*WCError)
	return ok && *t == WCError{Status: e.Status}
}

// wcReasons say what a status means to the one who sees it.
var wcReasons = map[WCStatus]string{
	WCStatusLocLenErr:      "the message is longer than the receive buffer, or than the path allows",
	WCStatusLocQPOpErr:     "the QP cannot carry out such a work request, or an LKey is wrong",
	WCStatusLocProtErr:     "an SGE is outside its memory region, or its LKey is wrong",
	WCStatusWRFlushErr:     "the QP is in the error state, or the connection has ended",
	WCStatusMWBindErr:      "the memory window cannot be bound to that region",
	WCStatusBadRespErr:     "the peer answered what it should not",
	WCStatusLocAccessErr:   "the memory region lacks LOCAL_WRITE",
	WCStatusRemInvReqErr:   "the peer's QP does not take such a request, or its receive buffer is too small",
	WCStatusRemAccessErr:   "the peer's memory region is too small, gone, or does not allow it (check RemoteAddr, RKey and its access flags)",
	WCStatusRemOpErr:       "the peer could not carry out the request",
	WCStatusRetryExcErr:    "the peer does not acknowledge: it is gone, its QP is not ready, or the path drops packets",
	WCStatusRNRRetryExcErr: "the peer had no receive posted",
	WCStatusRemAbortErr:    "the peer aborted the request",
	WCStatusFatalErr:       "the device failed",
	WCStatusRespTimeoutErr: "no answer within the time set",
}
