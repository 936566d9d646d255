package ibverbs

import (
	"errors"
	"syscall"
)

// Resize changes the CQ's room to at least cqe completions: ibv_resize_cq(3).
// CQE tells how many it got. What is in the CQ stays there; less room than that
// takes is refused with EINVAL. Completions may be polled meanwhile. Not every
// device can.
func (cq *CQ) Resize(cqe int) error {
	return cq.call("ibv_resize_cq", func() error {
		limits, err := cq.dev.limits()
		if err != nil {
			return err
		}
		if cqe < 1 || cqe > limits.MaxCQE {
			return hint(syscall.EINVAL, "%d entries: the device allows 1 to %d", cqe, limits.MaxCQE)
		}
		cq.resizing.Lock()
		defer cq.resizing.Unlock()
		granted, err := resizeCQ(cq.cq, cqe)
		if errors.Is(err, syscall.EINVAL) {
			return hint(err, "are there more than %d completions in the CQ? Poll them first", cqe)
		}
		if err != nil {
			return err
		}
		cq.cqe.Store(int64(granted))
		return nil
	})
}

// CQModeration says how completion events are gathered (struct
// ibv_moderate_cq): an armed CQ raises one when it has Count new completions,
// or Period after the first of them.
type CQModeration struct {
	Count  uint16
	Period uint16 // microseconds
}

// Modify sets the CQ's moderation: ibv_modify_cq(3) with IBV_CQ_ATTR_MODERATE.
// The zero CQModeration turns it off. Software drivers do not have it.
func (cq *CQ) Modify(m CQModeration) error {
	return cq.call("ibv_modify_cq", func() error { return modifyCQ(cq.cq, m) })
}
