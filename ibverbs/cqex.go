package ibverbs

import (
	"context"
	"syscall"
)

// CQEx is an extended completion queue: its completions have fields that
// ordinary ones lack, such as timestamps. It is a CQ too: give &CQEx.CQ to
// CreateQP, and use ReqNotify, Resize and Close as on any CQ. Poll and Wait
// work, and give ordinary completions.
type CQEx struct {
	CQ
	ex     *cCQEx
	fields WCExFlags

	// singly makes each completion a batch of its own. rxe's provider loses its
	// place at the end of a batch: before rdma-core 55 ibv_end_poll takes one
	// completion too many once ibv_next_poll has found none, and before 59 it
	// unlocks the CQ a second time. Without ibv_next_poll all of them are right.
	singly bool
}

// CQExInitAttr says how to create an extended CQ (struct ibv_cq_init_attr_ex).
type CQExInitAttr struct {
	CQE        int          // room for at least so many completions
	CompVector int          // as in CQOptions
	Channel    *CompChannel // as in CQOptions; nil means none

	// Fields are the fields of WCEx that PollEx is to fill in (wc_flags),
	// besides WRID, Status, Opcode, VendorErr and Flags, which it always does.
	Fields WCExFlags

	// Flags is 0 for a CQ that behaves like any other.
	Flags CQCreateFlags

	// ParentDomain is where the provider takes the CQ's memory and locks from
	// (PD.AllocParentDomain); nil means the defaults.
	ParentDomain *PD
}

// CreateCQEx creates an extended completion queue: ibv_create_cq_ex(3). The
// caller closes it, after all QPs that use it.
//
// What the device lacks, the whole of it (iWARP's siw), a field or a flag,
// gives an error that satisfies errors.ErrUnsupported.
func (d *Device) CreateCQEx(attr CQExInitAttr) (*CQEx, error) {
	const op = "ibv_create_cq_ex"
	cq := &CQEx{CQ: CQ{dev: d, channel: attr.Channel}, fields: attr.Fields}
	var parents []*handle
	if attr.ParentDomain != nil {
		if attr.ParentDomain.dev != d {
			return nil, wrap(op, d.object, hint(syscall.EINVAL, "%v is another device's", attr.ParentDomain))
		}
		parents = append(parents, &attr.ParentDomain.handle)
	}
	err := cq.init(func(ch *cCompChannel) (*cCQ, error) {
		if err := d.checkCQ(int64(attr.CQE), attr.CompVector); err != nil {
			return nil, err
		}
		c := cqExAttrToC(&attr, ch)
		ex, err := createCQEx(d.ctx, &c, cq.id)
		if err != nil {
			return nil, cqExHint(err, &attr)
		}
		cq.ex, cq.singly = ex, d.isRXE()
		return cqExToCQ(ex), nil
	}, parents...)
	if err != nil {
		return nil, wrap(op, d.object, err)
	}
	watch(cq, &cq.handle)
	return cq, nil
}

func cqExHint(err error, attr *CQExInitAttr) error {
	if err == syscall.EOPNOTSUPP || err == syscall.ENOSYS {
		return hint(err, "the device has no extended CQs, or none with %v, flags %v", attr.Fields, attr.Flags)
	}
	return err
}

// Fields are what the CQ was created with.
func (cq *CQEx) Fields() WCExFlags { return cq.fields }

// WCEx is a work completion of an extended CQ. A field holds something only if
// CQExInitAttr.Fields named it; WRID, Status, Opcode, VendorErr and Flags
// always do.
//
// If Status is not WCStatusSuccess, only WRID, Status, QPN, VendorErr and the
// timestamps hold something.
type WCEx struct {
	WRID uint64 // the work request's
	// CompletionTS is when the device completed the work request, by its own
	// free-running clock: device cycles, of hca_core_clock kHz.
	CompletionTS uint64
	// CompletionWallclockNS is the same in nanoseconds since 1970.
	CompletionWallclockNS uint64
	TMTag                 uint64 // tag matching: the message's tag

	Status    WCStatus
	Opcode    WCOpcode
	VendorErr uint32
	ByteLen   uint32 // bytes received, or moved by a READ or an atomic
	imm       uint32 // immediate data in network order, or the rkey
	QPN       uint32 // the local QP
	SrcQP     uint32 // UD: the sender's QP number
	Flags     WCFlags
	SLID      uint32
	FlowTag   uint32 // of the flow steering rule that the packet met
	TMPriv    uint32 // tag matching: what the sender put with the tag
	CVLAN     uint16 // the VLAN tag of the packet

	SL           uint8
	DLIDPathBits uint8
}

// ImmData is the immediate data that came with the message, in host byte
// order. It holds something only if Flags has WCWithImm.
func (wc *WCEx) ImmData() uint32 { return be32(wc.imm) }

// InvalidatedRKey is the key that the message invalidated. It holds something
// only if Flags has WCWithInv.
func (wc *WCEx) InvalidatedRKey() uint32 { return wc.imm }

// Err is nil for a work request that succeeded, and a *WCError for one that
// did not.
func (wc *WCEx) Err() error {
	return wcErr(wc.WRID, wc.Status, wc.QPN, wc.VendorErr)
}

// PollEx takes up to len(wcs) completions without waiting (ibv_start_poll(3),
// ibv_next_poll(3), ibv_end_poll(3)), in one cgo call whatever the number. It
// returns how many there were, and allocates nothing. Look at each
// completion's Status.
func (cq *CQEx) PollEx(wcs []WCEx) (int, error) {
	const op = "ibv_start_poll"
	if err := cq.acquire(); err != nil {
		return 0, wrap(op, cq.object, err)
	}
	defer cq.release()
	if len(wcs) == 0 {
		return 0, nil
	}
	n, err := cq.pollEx(wcs)
	if err != nil {
		return 0, wrap(op, cq.object, err)
	}
	return n, nil
}

func (cq *CQEx) pollEx(wcs []WCEx) (int, error) {
	n, err := pollCQEx(cq.ex, cq.fields, cq.singly, wcs)
	cq.mendEx(wcs[:n])
	return n, err
}

// WaitEx takes up to len(wcs) completions, and waits for the first one, as
// CQ.Wait does.
func (cq *CQEx) WaitEx(ctx context.Context, wcs []WCEx) (int, error) {
	const op = "ibv_get_cq_event"
	if err := cq.acquire(); err != nil {
		return 0, wrap(op, cq.object, err)
	}
	defer cq.release()
	if err := cq.checkWait(len(wcs)); err != nil {
		return 0, wrap(op, cq.object, err)
	}
	n, err := cq.wait(ctx, func() (int, error) { return cq.pollEx(wcs) })
	return n, wrapWait(op, cq.object, err)
}
