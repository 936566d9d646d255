package ibverbs

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/goverbs/goverbs/internal/bridge"
)

// SRQ is a shared receive queue: receives posted to it serve all the QPs that
// were created with it, and each completes in the receive CQ of the QP that
// took it. It is safe for concurrent use.
type SRQ struct {
	handle
	pd     *PD
	typ    SRQType
	maker  *bridge.Maker // nil unless another library made srq
	srq    *cSRQ
	maxSGE uint32
	maxWR  atomic.Uint32

	mu   sync.Mutex // guards recv, and keeps Modify from a post
	recv recvQueue
}

// SRQAttr holds an SRQ's attributes (struct ibv_srq_attr).
type SRQAttr struct {
	MaxWR  uint32
	MaxSGE uint32
	Limit  uint32 // 0 where the SRQ is not armed
}

// CreateSRQ creates a shared receive queue: ibv_create_srq(3), or
// ibv_create_srq_ex(3) where attr.Type is not SRQTypeBasic. The caller closes
// it, after the QPs that use it and before the PD. Whichever PD a QP belongs
// to, the receives that it takes are in memory of the SRQ's. MaxWR and MaxSGE
// may be more than was asked for; see SRQ.MaxWR. A type that the device lacks
// satisfies errors.ErrUnsupported.
func (pd *PD) CreateSRQ(attr SRQInitAttr) (*SRQ, error) { return pd.createSRQ(attr, nil) }

// createSRQ has maker make the C object, if there is one.
func (pd *PD) createSRQ(attr SRQInitAttr, maker *bridge.Maker) (*SRQ, error) {
	op := "ibv_create_srq"
	if attr.Type != SRQTypeBasic {
		op = "ibv_create_srq_ex"
	}
	if err := pd.checkSRQ(&attr); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	srq := &SRQ{pd: pd, typ: attr.Type, maker: maker}
	if err := srq.adopt("SRQ", append(attr.parents(), &pd.handle)...); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	if err := srq.create(&attr); err != nil {
		srq.disown()
		return nil, wrap(op, pd.object, err)
	}
	watch(srq, &srq.handle)
	return srq, nil
}

func (srq *SRQ) create(attr *SRQInitAttr) error {
	limits, err := srq.pd.dev.limits()
	if err != nil {
		return err
	}
	c, granted, err := createSRQ(srq.pd.pd, attr, srq.maker)
	if err == syscall.EOPNOTSUPP {
		return hint(err, "the device has no SRQs of type %v", attr.Type)
	}
	if err != nil {
		return srqHint(err, attr.attr(), &limits)
	}
	srq.srq = c
	if err := srq.recv.alloc(QPCap{MaxRecvWR: granted.MaxWR, MaxRecvSGE: granted.MaxSGE}); err != nil {
		srq.destroy()
		return err
	}
	srq.maxSGE = granted.MaxSGE
	srq.maxWR.Store(granted.MaxWR)
	srq.pd.dev.async.register(srqID(c), srq)
	srq.named("%s/srq%d", srq.pd.object, srqNumber(c))
	return nil
}

// destroy destroys the C object.
func (srq *SRQ) destroy() error {
	if srq.maker != nil {
		return srq.maker.Destroy()
	}
	return destroySRQ(srq.srq)
}

// srqHint explains why an SRQ cannot have such attributes.
func srqHint(err error, attr SRQAttr, limits *DeviceAttr) error {
	switch {
	case !errors.Is(err, syscall.EINVAL):
		return err
	case attr.MaxWR < 1 || int64(attr.MaxWR) > int64(limits.MaxSRQWR):
		return hint(err, "%d receives: the device allows 1 to %d", attr.MaxWR, limits.MaxSRQWR)
	case int64(attr.MaxSGE) > int64(limits.MaxSRQSGE):
		return hint(err, "%d SGEs: the device allows %d a receive", attr.MaxSGE, limits.MaxSRQSGE)
	case attr.Limit > attr.MaxWR:
		return hint(err, "the limit %d is above the %d receives that there is room for", attr.Limit, attr.MaxWR)
	}
	return err
}

// Type is the SRQ's type.
func (srq *SRQ) Type() SRQType { return srq.typ }

// PD is the PD that the SRQ belongs to.
func (srq *SRQ) PD() *PD { return srq.pd }

// MaxWR is the number of receives that the SRQ has room for, which may be more
// than was asked for.
func (srq *SRQ) MaxWR() int { return int(srq.maxWR.Load()) }

// MaxSGE is the number of SGEs that a receive may have.
func (srq *SRQ) MaxSGE() int { return int(srq.maxSGE) }

// PostRecv posts receive work requests in order: ibv_post_srq_recv(3), one cgo
// call for a batch of up to 128. It returns how many were accepted; if that is
// less than len(wrs), the error says why wrs[accepted] was not: ErrQueueFull
// where the SRQ has no room now. It never waits, and allocates nothing where
// all are accepted.
//
// Receives that no QP has taken when the SRQ is closed end without a
// completion.
func (srq *SRQ) PostRecv(wrs []RecvWR) (accepted int, err error) {
	const op = "ibv_post_srq_recv"
	srq.mu.Lock()
	defer srq.mu.Unlock()
	if srq.closed() {
		return 0, wrap(op, srq.object, os.ErrClosed)
	}
	accepted, err = postRecvs(wrs, srq.maxSGE, func(wrs []RecvWR) (int, error) {
		return srq.recv.postSRQ(srq.srq, srq.recv.put(wrs))
	})
	if errors.Is(err, syscall.ENOMEM) {
		err = errors.Join(ErrQueueFull, err)
	}
	return accepted, wrap(op, srq.object, err)
}

// Modify changes the attributes that mask names: ibv_modify_srq(3). With
// SRQAttrLimit it arms the SRQ as Arm does, with SRQAttrMaxWR it resizes it,
// which few devices can; MaxSGE stays as it is. Resizing to less than what is
// posted gives EINVAL.
func (srq *SRQ) Modify(attr SRQAttr, mask SRQAttrMask) error {
	const op = "ibv_modify_srq"
	srq.mu.Lock()
	defer srq.mu.Unlock()
	if srq.closed() {
		return wrap(op, srq.object, os.ErrClosed)
	}
	granted, err := modifySRQ(srq.srq, attr, mask)
	if err != nil {
		return wrap(op, srq.object, srq.modifyHint(err, attr, mask))
	}
	if mask&SRQAttrMaxWR != 0 {
		srq.maxWR.Store(granted.MaxWR)
	}
	return nil
}

func (srq *SRQ) modifyHint(err error, attr SRQAttr, mask SRQAttrMask) error {
	limits, limitErr := srq.pd.dev.limits()
	switch {
	case limitErr != nil:
		return err
	case mask&SRQAttrMaxWR != 0 && errors.Is(err, syscall.EOPNOTSUPP):
		return hint(err, "the device cannot resize an SRQ")
	case mask&SRQAttrMaxWR == 0:
		attr.MaxWR = srq.maxWR.Load()
	}
	attr.MaxSGE = 0
	return srqHint(err, attr, &limits)
}

// Arm sets the SRQ's limit: when fewer than limit receives are left, the
// device raises EventSRQLimitReached (Device.ReadAsyncEvent), once; arm it
// again after that. 0 disarms it. It is Modify with SRQAttrLimit.
func (srq *SRQ) Arm(limit uint32) error { return srq.Modify(SRQAttr{Limit: limit}, SRQAttrLimit) }

// Query reads the SRQ's attributes: ibv_query_srq(3). Limit is 0 once the
// limit event has been raised. Not every device can.
func (srq *SRQ) Query() (SRQAttr, error) {
	var attr SRQAttr
	err := srq.call("ibv_query_srq", func() (err error) {
		attr, err = querySRQ(srq.srq)
		return err
	})
	return attr, err
}

// Close destroys the SRQ: ibv_destroy_srq(3). It fails with EBUSY while QPs
// use the SRQ, and is nil when called again.
func (srq *SRQ) Close() error {
	// A post holds no reference but the mutex: see QP.Close.
	wake := func() {
		srq.mu.Lock()
		srq.mu.Unlock() //lint:ignore SA2001 waits for the holder
	}
	return srq.close("ibv_destroy_srq", wake, func() error {
		srq.pd.dev.async.unregister(srqID(srq.srq))
		if err := srq.destroy(); err != nil {
			srq.pd.dev.async.register(srqID(srq.srq), srq)
			return err
		}
		srq.recv.free()
		return nil
	})
}
