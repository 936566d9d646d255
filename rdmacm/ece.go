package rdmacm

import "github.com/goverbs/goverbs/ibverbs"

// SetLocalECE says which ECE options this side's QP has, before Connect, or
// before Accept with the options that both sides have (rdma_set_local_ece(3)).
// It is for QPs that ID.CreateManagedQP did not make, which takes care of that
// itself: EINVAL means that it made one, or that VendorID is 0. QP.QueryECE
// tells the options of a QP.
func (id *ID) SetLocalECE(ece ibverbs.ECE) error {
	return id.call("rdma_set_local_ece", func() error { return cSetLocalECE(id.c, ece) })
}

// RemoteECE is the ECE options that the peer has sent, with EventConnectRequest
// or EventConnectResponse; the zero ECE where it has sent none, and with iWARP
// (rdma_get_remote_ece(3)). EINVAL means that CreateManagedQP made the ID's QP.
func (id *ID) RemoteECE() (ibverbs.ECE, error) {
	var ece ibverbs.ECE
	err := id.call("rdma_get_remote_ece", func() (err error) {
		ece, err = cRemoteECE(id.c)
		return err
	})
	return ece, err
}

// RejectECE is Reject with the reason that the ECE options do not suit
// (RejectVendorOption, rdma_reject_ece(3)). iWARP carries no reason.
func (id *ID) RejectECE(privateData []byte) error {
	return id.call("rdma_reject_ece", func() error {
		if err := checkPrivateData(privateData); err != nil {
			return err
		}
		return privateDataHint(cRejectECE(id.c, privateData), len(privateData))
	})
}

// Notify tells the connection manager of an asynchronous event of the ID's QP
// (rdma_notify(3)). Only ibverbs.EventCommEst means something to it: that data
// has come before the peer's answer to Accept, so that the connection is
// established. iWARP takes it, and does nothing.
//
// EISCONN means that it was known already.
func (id *ID) Notify(event ibverbs.EventType) error {
	return id.call("rdma_notify", func() error { return cNotify(id.c, event) })
}
