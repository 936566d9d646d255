package ibverbs

// QPRateLimit bounds how fast a QP sends (struct ibv_qp_rate_limit_attr).
type QPRateLimit struct {
	Rate          uint32 // kbit/s; 0 lifts the limit
	MaxBurst      uint32 // bytes at once; 0 leaves it to the device
	TypicalPacket uint16 // bytes of the packets that will mostly be sent; 0 leaves it to the device
}

// ModifyRateLimit bounds how fast the QP sends, in state RTS:
// ibv_modify_qp_rate_limit(3). Devices without packet pacing refuse with
// errors.ErrUnsupported.
func (qp *QP) ModifyRateLimit(limit QPRateLimit) error {
	return qp.call("ibv_modify_qp_rate_limit", func() error { return modifyRateLimit(qp.qp, limit) })
}

// ECE are options of the two ends of a connection, beyond the specification
// (struct ibv_ece): Enhanced Connection Establishment.
type ECE struct {
	VendorID uint32 // the IEEE OUI of the vendor who knows what Options means
	Options  uint32
}

// SetECE offers the QP options of its peer's, in state RESET or INIT, before
// the move to RTR: ibv_set_ece(3). QueryECE tells which the device took.
// Devices without ECE refuse with errors.ErrUnsupported, and so does a VendorID
// of 0.
func (qp *QP) SetECE(ece ECE) error {
	return qp.call("ibv_set_ece", func() error { return setECE(qp.qp, ece) })
}

// QueryECE reads the QP's options, which are to be sent to the peer:
// ibv_query_ece(3). Devices without ECE refuse with errors.ErrUnsupported.
func (qp *QP) QueryECE() (ECE, error) {
	var ece ECE
	err := qp.call("ibv_query_ece", func() (err error) {
		ece, err = queryECE(qp.qp)
		return err
	})
	return ece, err
}

// QueryInit reads with what the QP was created: Type and Cap as the driver
// remembers them, from ibv_query_qp(3)'s init_attr, the rest as CreateQP was
// told. QP.Cap needs no system call.
func (qp *QP) QueryInit() (QPInitAttr, error) {
	var attr QPInitAttr
	err := qp.call("ibv_query_qp", func() (err error) {
		attr, err = queryQPInit(qp.qp)
		return err
	})
	if err != nil {
		return QPInitAttr{}, err
	}
	// siw says SigAll always.
	attr.SigAll, attr.SendCQ, attr.RecvCQ, attr.SendOps = qp.sigAll, qp.sendCQ, qp.recvCQ, qp.ops
	return attr, nil
}

// DataInOrder tells whether the bytes of a message arrive in memory in order,
// so that a reader may poll memory rather than the CQ:
// ibv_query_qp_data_in_order(3). op is WRSend or WRRDMAWrite for what the peer
// sends, WRRDMARead for this side's READs.
//
// With DataInOrderReturnCaps each order has its bit; without, the answer is
// DataInOrderWholeMsg or 0. 0 is also what devices say that do not know.
func (qp *QP) DataInOrder(op WROpcode, flags DataInOrderFlags) (DataInOrder, error) {
	var order DataInOrder
	err := qp.call("ibv_query_qp_data_in_order", func() error {
		order = qpDataInOrder(qp.qp, op, flags)
		return nil
	})
	return order, err
}

// SendOps names the opcodes that the QP posts through ibv_wr_*; 0 where it
// posts through ibv_post_send(3).
func (qp *QP) SendOps() SendOps { return qp.ops }
