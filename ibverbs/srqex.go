package ibverbs

import (
	"os"
	"syscall"
)

// SRQInitAttr says how to create an SRQ (struct ibv_srq_init_attr_ex).
type SRQInitAttr struct {
	MaxWR  uint32 // receives that can be outstanding, at least 1
	MaxSGE uint32 // SGEs of one receive
	// Limit arms the SRQ: when fewer receives than this are left, the device
	// raises EventSRQLimitReached, once. 0 is never. See SRQ.Arm.
	Limit uint32

	// Type is what the SRQ does beyond holding receives; the zero value is
	// SRQTypeBasic, nothing.
	Type SRQType
	// XRCD is the domain of an SRQTypeXRC, whose receives are for XRC_RECV QPs
	// of it.
	XRCD *XRCD
	// CQ is where the receives of an SRQTypeXRC complete, and the operations
	// of an SRQTypeTM.
	CQ *CQ
	// MaxTags and MaxOps are how many tags an SRQTypeTM can match, and how
	// many operations on them can be outstanding (struct ibv_tm_cap).
	MaxTags, MaxOps uint32
}

// attr are the attributes that an SRQ of any type has.
func (attr *SRQInitAttr) attr() SRQAttr {
	return SRQAttr{MaxWR: attr.MaxWR, MaxSGE: attr.MaxSGE, Limit: attr.Limit}
}

// parents are the objects that the SRQ needs besides its PD.
func (attr *SRQInitAttr) parents() []*handle {
	var parents []*handle
	if attr.XRCD != nil {
		parents = append(parents, &attr.XRCD.handle)
	}
	if attr.CQ != nil {
		parents = append(parents, &attr.CQ.handle)
	}
	return parents
}

// checkSRQ refuses what some provider would not survive.
func (pd *PD) checkSRQ(attr *SRQInitAttr) error {
	switch {
	case attr.Type > SRQTypeTM:
		return hint(syscall.EINVAL, "there is no %v", attr.Type)
	case attr.XRCD != nil && attr.XRCD.dev != pd.dev:
		return hint(syscall.EINVAL, "%v is another device's", attr.XRCD)
	case attr.CQ != nil && attr.CQ.dev != pd.dev:
		return hint(syscall.EINVAL, "%v is another device's", attr.CQ)
	case (attr.Type == SRQTypeXRC) != (attr.XRCD != nil):
		return hint(syscall.EINVAL, "an XRC domain is for SRQs of type %v, and they need one", SRQTypeXRC)
	case (attr.Type == SRQTypeBasic) != (attr.CQ == nil):
		return hint(syscall.EINVAL, "a CQ is for SRQs of other types than %v, and they need one", SRQTypeBasic)
	case attr.Type != SRQTypeTM && attr.MaxTags+attr.MaxOps != 0:
		return hint(syscall.EINVAL, "tags are for SRQs of type %v", SRQTypeTM)
	}
	return nil
}

// SRQN is the SRQ's number, which the peer's XRC QPs name as
// SendWR.RemoteSRQN: ibv_get_srq_num(3). SRQs of other types than SRQTypeXRC
// need none, and most devices tell none.
func (srq *SRQ) SRQN() (uint32, error) {
	var n uint32
	err := srq.call("ibv_get_srq_num", func() (err error) {
		n, err = srqNum(srq.srq)
		return err
	})
	return n, err
}

// OpsWR is an operation on the tags of an SRQTypeTM (struct ibv_ops_wr).
type OpsWR struct {
	WRID   uint64 // comes back in the completion, in SRQInitAttr.CQ
	Opcode OpsOpcode
	Flags  OpsFlags

	// UnexpectedCnt is, with OpsTMSync, how many messages without a tag of the
	// list the program has dealt with.
	UnexpectedCnt uint32
	// Handle names a tag: OpsTagAdd sets it, OpsTagDel takes it.
	Handle uint32

	// For OpsTagAdd: a message matches if its tag, masked with Mask, is Tag.
	// It is received in SGList, and completes with RecvWRID.
	RecvWRID uint64
	Tag      uint64
	Mask     uint64
	SGList   []SGE
}

// PostOps posts operations on the SRQ's tags in order: ibv_post_srq_ops(3). It
// returns how many were accepted; if that is less than len(wrs), the error says
// why wrs[accepted] was not. It never waits. Those that add a tag get its
// Handle.
func (srq *SRQ) PostOps(wrs []OpsWR) (accepted int, err error) {
	const op = "ibv_post_srq_ops"
	srq.mu.Lock()
	defer srq.mu.Unlock()
	if srq.closed() {
		return 0, wrap(op, srq.object, os.ErrClosed)
	}
	if srq.typ != SRQTypeTM {
		return 0, wrap(op, srq.object, hint(syscall.EOPNOTSUPP, "the SRQ is of type %v, and has no tags", srq.typ))
	}
	for accepted < len(wrs) {
		wr := &wrs[accepted]
		if n := len(wr.SGList); n > int(srq.maxSGE) {
			return accepted, wrap(op, srq.object, hint(syscall.EINVAL, "%d SGEs: a receive here has room for %d (SRQ.MaxSGE)", n, srq.maxSGE))
		}
		if err := postOps(srq.srq, wr); err != nil {
			return accepted, wrap(op, srq.object, err)
		}
		accepted++
	}
	return accepted, nil
}
