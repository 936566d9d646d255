package ibverbs

import (
	"fmt"
	"syscall"
)

// ReregMRAttr is what Rereg changes a region to. Fields that its flags do not
// name are zero.
type ReregMRAttr struct {
	Buf    []byte // with ReregMRTranslation: the region's new memory, pinned as RegMR pins it
	PD     *PD    // with ReregMRPD
	Access Access // with ReregMRAccess
}

// ReregMRError says in what state a Rereg that failed has left the region.
type ReregMRError struct {
	Code ReregMRErrCode
	Err  error
}

// Error reads "invalid argument (ERR_INPUT: the region is as it was)".
func (e *ReregMRError) Error() string {
	state := "the region is as it was"
	switch {
	case e.Changed():
		state = "the region has been changed"
	case e.Lost():
		state = "the region is lost: close it"
	}
	return fmt.Sprintf("%v (%v: %s)", e.Err, e.Code, state)
}

// Unwrap returns the cause.
func (e *ReregMRError) Unwrap() error { return e.Err }

// Changed tells that the region was changed all the same.
func (e *ReregMRError) Changed() bool { return e.Code == ReregMRErrDoForkOld }

// Lost tells that the region must not be used any more: all that can be done
// with it is Close. Its SGEs cannot be posted.
func (e *ReregMRError) Lost() bool {
	return e.Code == ReregMRErrCmd || e.Code == ReregMRErrCmdAndDoForkNew
}

// reregister is reregMR, but for tests.
var reregister = reregMR

// Rereg changes a region in place, which is cheaper than to deregister it and
// to register another: ibv_rereg_mr(3). No work request that names the region
// may be outstanding, no peer may use it, and no memory window may be bound to
// it. LKey and RKey may be others afterwards. With ReregMRTranslation the region
// lies at its memory's own address, whatever iova it had, and memory that
// AllocMR gave it is freed.
//
// An error holds a *ReregMRError (errors.As), which says whether the region can
// still be used. Where driver or provider cannot do it, the error satisfies
// errors.ErrUnsupported, and the region is as it was.
//
// The region keeps its name in errors, with the PD that it was made in.
func (mr *MR) Rereg(change ReregMRFlags, attr ReregMRAttr) error {
	const op = "ibv_rereg_mr"
	mr.changing.Lock()
	defer mr.changing.Unlock()
	return mr.call(op, func() error {
		old := mr.at.Load()
		if err := old.checkRereg(change, &attr); err != nil {
			return &ReregMRError{ReregMRErrInput, err}
		}
		return mr.rereg(old, change, &attr)
	})
}

func (r *region) checkRereg(change ReregMRFlags, attr *ReregMRAttr) error {
	const all = ReregMRTranslation | ReregMRPD | ReregMRAccess
	switch {
	case r.lost:
		return hint(syscall.EINVAL, "an earlier Rereg has lost the region")
	case r.buf == nil:
		return hint(syscall.EINVAL, "the region is not on memory of this process")
	case change == 0 || change&^all != 0:
		return hint(syscall.EINVAL, "nothing to change in %v: want some of %v", change, all)
	case (change&ReregMRTranslation != 0) != (len(attr.Buf) > 0):
		return hint(syscall.EINVAL, "Buf goes with %v, and has at least one byte", ReregMRTranslation)
	case (change&ReregMRPD != 0) != (attr.PD != nil):
		return hint(syscall.EINVAL, "PD goes with %v", ReregMRPD)
	case change&ReregMRAccess == 0 && attr.Access != 0:
		return hint(syscall.EINVAL, "Access goes with %v", ReregMRAccess)
	case attr.PD != nil && attr.PD.dev != r.pd.dev:
		return hint(syscall.EINVAL, "%v is another device's", attr.PD)
	}
	return nil
}

// rereg does it: the new memory is pinned, and the new PD held, before the
// device sees them, and the old ones until it has forgotten them.
func (mr *MR) rereg(old *region, change ReregMRFlags, attr *ReregMRAttr) error {
	next := *old
	if change&ReregMRTranslation != 0 {
		buf, err := pinBuffer(attr.Buf)
		if err != nil {
			return &ReregMRError{ReregMRErrInput, err}
		}
		next.buf, next.addr, next.length = buf, uint64(buf.addr()), len(attr.Buf)
	}
	if change&ReregMRAccess != 0 {
		next.access = attr.Access
	}
	if change&ReregMRPD != 0 && attr.PD != old.pd {
		if err := mr.join(&attr.PD.handle); err != nil {
			mr.drop(old, &next)
			return &ReregMRError{ReregMRErrInput, hint(err, "the new PD")}
		}
		next.pd = attr.PD
	}
	code, err := reregister(mr.mr, change, &next)
	return mr.settle(old, &next, code, err)
}

// settle gives back what the region does not need any more.
func (mr *MR) settle(old, next *region, code ReregMRErrCode, err error) error {
	if err != nil {
		err = &ReregMRError{code, regHint(err, next)}
	}
	switch code {
	case 0, ReregMRErrDoForkOld:
		next.lkey, next.rkey, _ = mrKeys(mr.mr)
		mr.at.Store(next)
		mr.drop(next, old)
	case ReregMRErrInput, ReregMRErrDontForkNew:
		mr.drop(old, next)
	default:
		// Nobody knows which of both the device still has.
		lost := *old
		lost.lost = true
		mr.at.Store(&lost)
		if next.buf != old.buf {
			mr.spare = append(mr.spare, next.buf)
		}
	}
	return err
}

// drop frees what gone has and kept has not.
func (mr *MR) drop(kept, gone *region) {
	if gone.buf != kept.buf {
		gone.buf.free()
	}
	if gone.pd != kept.pd {
		mr.leave(&gone.pd.handle)
	}
}
