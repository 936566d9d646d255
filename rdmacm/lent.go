package rdmacm

import (
	"sync"
	"syscall"

	"github.com/goverbs/goverbs/ibverbs"
)

// lentDevice is a device as librdmacm has it open, for QPs and SRQs that
// librdmacm makes. There is one for each of librdmacm's contexts, since its
// asynchronous events can be read in one place only.
type lentDevice struct {
	key  uintptr // the context's address
	dev  *ibverbs.Device
	refs int // IDs; under lent.mu
}

// lent are the devices that librdmacm lends.
var lent = struct {
	mu sync.Mutex
	by map[uintptr]*lentDevice
}{by: make(map[uintptr]*lentDevice)}

// LibraryDevice is the ID's device as librdmacm itself has it open
// (rdma_cm_id.verbs), which all IDs on that device share. What
// CreateManagedQP and CreateManagedSRQ make is made on it: its PDs and CQs are
// for them. All else is better off with ibverbs.Open.
//
// The device closes with the last ID that was asked for it, and must not be
// closed before: that ID's Close fails with EBUSY while anything is open on the
// device.
func (id *ID) LibraryDevice() (*ibverbs.Device, error) {
	var dev *ibverbs.Device
	err := id.call("rdma_cm_id.verbs", func() error {
		if id.DeviceName() == "" {
			return hint(errNotBound, "the ID is not bound to a device; call ResolveAddr or BindAddr first")
		}
		if id.lent == nil {
			id.lent = borrowDevice(id.c)
		}
		dev = id.lent.dev
		return nil
	})
	return dev, err
}

func borrowDevice(id *cID) *lentDevice {
	lent.mu.Lock()
	defer lent.mu.Unlock()
	key := cVerbsKey(id)
	d := lent.by[key]
	if d == nil {
		d = &lentDevice{key: key, dev: cLendDevice(id)}
		lent.by[key] = d
	}
	d.refs++
	return d
}

// giveBack closes the device with its last ID; if that fails, the ID still has
// it.
func (d *lentDevice) giveBack() error {
	lent.mu.Lock()
	defer lent.mu.Unlock()
	if d.refs == 1 {
		if err := d.dev.Close(); err != nil {
			return err
		}
		delete(lent.by, d.key)
	}
	d.refs--
	return nil
}

// checkLibraryPD is checkPD for what librdmacm makes.
func (id *ID) checkLibraryPD(pd *ibverbs.PD) error {
	if id.lent == nil || pd.Device() != id.lent.dev {
		return hint(syscall.EINVAL, "the PD must be on the ID's LibraryDevice")
	}
	return nil
}

// CreateManagedQP has librdmacm make the ID's QP (rdma_create_qp(3),
// rdma_create_qp_ex(3)), on a PD and CQs of the ID's LibraryDevice, and move it:
// to INIT now, so that receives can be posted, and on with the connection. With
// CreateQP this package does the same, on any device and PD of the caller's: it
// is to be preferred, unless librdmacm itself has to see the QP, as for the ECE
// options that the QP's driver negotiates.
//
// attr.Type must suit the ID's port space. SetMinRNRTimer does nothing for such a
// QP. The QP is the caller's: close it after Disconnect and before the ID, whose
// Close fails with EBUSY until then.
func (id *ID) CreateManagedQP(pd *ibverbs.PD, attr ibverbs.QPInitAttr) (*ibverbs.QP, error) {
	var qp *ibverbs.QP
	err := id.call("rdma_create_qp", func() (err error) {
		if err := id.checkPD(pd); err != nil {
			return err
		}
		if err := id.checkLibraryPD(pd); err != nil {
			return err
		}
		if want := qpTypeOf(id.ps); attr.Type != want {
			return hint(syscall.EINVAL, "an ID of port space %v has QPs of type %v", id.ps, want)
		}
		qp, err = cCreateManagedQP(id, pd, attr)
		if err != nil {
			return err
		}
		state := ibverbs.QPStateInit
		if id.datagram() {
			state = ibverbs.QPStateRTS
		}
		id.moved(qp, ibverbs.QPAttr{State: state, Port: uint8(id.PortNum())}, ibverbs.QPAttrState|ibverbs.QPAttrPort)
		id.managed = true
		id.qp.Store(qp)
		return nil
	})
	return qp, err
}

// dropManagedQP destroys the QP that librdmacm made, as its Close asks for.
func (id *ID) dropManagedQP() error {
	id.mu.Lock()
	defer id.mu.Unlock()
	for _, m := range id.groups {
		if !m.sendOnly {
			// librdmacm would destroy it none the less, and not look whether it can.
			return hint(syscall.EBUSY, "leave the multicast groups first")
		}
	}
	id.channel.taking.Lock()
	defer id.channel.taking.Unlock()
	cDestroyManagedQP(id.c)
	id.managed = false
	id.qp.Store(nil)
	return nil
}

// CreateManagedSRQ has librdmacm make an SRQ for the ID (rdma_create_srq(3),
// rdma_create_srq_ex(3)), on a PD of the ID's LibraryDevice: a QP of
// CreateManagedQP's then takes its receives from there, whether its attributes
// name it or not. The caller closes it, after that QP and before the ID.
func (id *ID) CreateManagedSRQ(pd *ibverbs.PD, attr ibverbs.SRQInitAttr) (*ibverbs.SRQ, error) {
	var srq *ibverbs.SRQ
	err := id.call("rdma_create_srq", func() (err error) {
		if err := id.checkLibraryPD(pd); err != nil {
			return err
		}
		if id.srq != nil {
			return hint(syscall.EINVAL, "the ID has an SRQ already")
		}
		if srq, err = cCreateManagedSRQ(id, pd, attr); err == nil {
			id.srq = srq
		}
		return err
	})
	return srq, err
}

func (id *ID) dropManagedSRQ() error {
	id.mu.Lock()
	defer id.mu.Unlock()
	cDestroyManagedSRQ(id.c)
	id.srq = nil
	return nil
}

// moved tells a QP what librdmacm has done to it.
func (id *ID) moved(qp *ibverbs.QP, attr ibverbs.QPAttr, mask ibverbs.QPAttrMask) {
	noteMoved(qp, attr, mask)
}

// established notes that librdmacm has connected a QP of its own. depth is how
// many READs it may have in flight.
func (id *ID) established(qp *ibverbs.QP, depth uint8) {
	id.moved(qp, ibverbs.QPAttr{State: ibverbs.QPStateRTS, MaxQPRDAtomic: depth}, ibverbs.QPAttrState|ibverbs.QPAttrMaxQPRDAtomic)
}

// checkClosable refuses to close an ID while what librdmacm made for it is open.
func (id *ID) checkClosable() error {
	switch {
	case id.managed:
		return hint(syscall.EBUSY, "close %v first", id.qp.Load())
	case id.srq != nil:
		return hint(syscall.EBUSY, "close %v first", id.srq)
	}
	return nil
}
