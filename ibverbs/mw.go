package ibverbs

import (
	"sync"
	"sync/atomic"
	"syscall"
)

// MW is a memory window: a part of a memory region that a peer may reach by a
// key of its own, which comes and goes without a system call. Bind gives it
// memory, and a new key:
//
//   - type 1 by QP.BindMW, for all QPs of the PD. It is bound anew, or to
//     nothing, by another bind.
//   - type 2 by a WRBindMW work request, for the one QP to which that was
//     posted. Before it can be bound anew it has to be invalidated, by a
//     WRLocalInv of that QP or a WRSendWithInv of the peer's.
//
// It is safe for concurrent use.
//
// What a window gives access to is the device's to check. rxe lets a peer reach
// all of the region through it (and not just the window's part), and oopses
// when a type 2 window that is not bound is invalidated: PostSend refuses that,
// but cannot keep a peer from it.
type MW struct {
	handle
	pd   *PD
	mw   *cMW
	typ  MWType
	rkey atomic.Uint32

	mu    sync.Mutex // one bind at a time
	qp    *QP        // type 2: where it was bound; it must not go first
	bound bool       // type 2: as far as this side knows
	last  *MR        // type 1: where it was bound
}

// MWBind is what a window gives access to (struct ibv_mw_bind_info), and its
// new key.
type MWBind struct {
	MW *MW
	// MR is the region, of the same PD, that has AccessMWBind, and
	// AccessLocalWrite where the window allows to write.
	MR *MR
	// Addr is where in the region the window begins: from MR.Addr() on.
	Addr uint64
	// Length is how many bytes it spans. 0 takes a type 1 window's memory away;
	// MR may be nil then.
	Length uint64
	// Access is what a peer may do: AccessRemoteWrite, AccessRemoteRead,
	// AccessRemoteAtomic; with AccessZeroBased it gives offsets into the
	// window as RemoteAddr (not for type 1 on most devices).
	Access Access
	// RKey is the key that a type 2 window has once it is bound: all but its
	// low 8 bits are those of the key that it has. 0 stands for
	// IncRKey(MW.RKey()). Type 1: not used.
	RKey uint32
}

// IncRKey is the next key of a memory window: its low 8 bits are counted up
// (ibv_inc_rkey(3)).
func IncRKey(rkey uint32) uint32 { return rkey&^0xff | (rkey+1)&0xff }

// AllocMW allocates a memory window, which is bound to nothing yet:
// ibv_alloc_mw(3). The caller closes it. A device without windows of that type
// gives an error that satisfies errors.ErrUnsupported.
func (pd *PD) AllocMW(typ MWType) (*MW, error) {
	const op = "ibv_alloc_mw"
	if typ != MWType1 && typ != MWType2 {
		return nil, wrap(op, pd.object, hint(syscall.EINVAL, "there is no %v", typ))
	}
	mw := &MW{pd: pd, typ: typ}
	if err := mw.adopt("MW", &pd.handle); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	c, err := allocMW(pd.pd, typ)
	if err != nil {
		mw.disown()
		return nil, wrap(op, pd.object, err)
	}
	mw.mw = c
	mw.rkey.Store(mwRKey(c))
	mw.register()
	mw.named("%s/mw%d", pd.object, mwNumber(c))
	watch(mw, &mw.handle)
	return mw, nil
}

// RKey is the window's key: the one that the last bind gave it. A peer may use
// it once that bind has completed, or when it gets it by a SEND that was posted
// to the same QP after the bind. If the bind fails, the key is void: close the
// window.
func (mw *MW) RKey() uint32 { return mw.rkey.Load() }

// Type is the window's type.
func (mw *MW) Type() MWType { return mw.typ }

// PD is the PD that the window belongs to.
func (mw *MW) PD() *PD { return mw.pd }

// Close frees the window, bound or not: ibv_dealloc_mw(3). Peers can no longer
// use its key. It is nil when called again.
//
// A type 2 window that was bound has to be closed before the QP that it was
// bound to.
func (mw *MW) Close() error {
	return mw.close("ibv_dealloc_mw", nil, func() error {
		mw.pd.dev.windows.CompareAndDelete(mw.RKey()>>8, mw)
		err := deallocMW(mw.mw)
		if err != nil {
			mw.register()
		}
		return err
	})
}

// register lets the device find a type 2 window by its key.
func (mw *MW) register() {
	if mw.typ == MWType2 {
		mw.pd.dev.windows.Store(mw.RKey()>>8, mw)
	}
}

// check refuses what the device would fail only when the QP is lost for it, or
// would crash on.
func (b *MWBind) check(qp *QP, typ MWType) error {
	switch {
	case b == nil || b.MW == nil:
		return hint(syscall.EINVAL, "no memory window to bind: set MWBind.MW")
	case b.MW.typ != typ && typ == MWType2:
		return hint(syscall.EINVAL, "%v is of type 1: bind it by QP.BindMW", b.MW)
	case b.MW.typ != typ:
		return hint(syscall.EINVAL, "%v is of type 2: bind it by PostSend, with WRBindMW", b.MW)
	case !b.MW.pd.same(qp.pd):
		return hint(syscall.EINVAL, "%v is another PD's", b.MW)
	case b.Length == 0 && typ == MWType2:
		return hint(syscall.EINVAL, "a window has at least one byte; invalidate it to take its memory away")
	case b.Length == 0 && b.MR == nil && b.Addr == 0:
		return nil
	case b.MR == nil:
		return hint(syscall.EINVAL, "no memory region to bind to: set MWBind.MR")
	}
	return b.checkRegion(b.MR.at.Load())
}

func (b *MWBind) checkRegion(r *region) error {
	const writes = AccessRemoteWrite | AccessRemoteAtomic
	switch off := b.Addr - r.addr; {
	case r.lost:
		return hint(syscall.EINVAL, "%v is lost by a Rereg that failed", b.MR)
	case !b.MW.pd.same(r.pd):
		return hint(syscall.EINVAL, "%v is another PD's", b.MR)
	case b.Access&^(writes|AccessRemoteRead|AccessZeroBased) != 0:
		return hint(syscall.EINVAL, "%v is not all for a window", b.Access)
	case r.access&AccessMWBind == 0:
		return hint(syscall.EINVAL, "%v lacks %v", b.MR, AccessMWBind)
	case b.Access&writes != 0 && r.access&AccessLocalWrite == 0:
		return hint(syscall.EINVAL, "%v lacks %v, which %v needs", b.MR, AccessLocalWrite, b.Access&writes)
	case b.Addr < r.addr || off > uint64(r.length) || b.Length > uint64(r.length)-off:
		return hint(syscall.EINVAL, "%d bytes at %#x are not within %v: it has %d at %#x", b.Length, b.Addr, b.MR, r.length, r.addr)
	}
	return nil
}

// key is the key that a type 2 window is to have.
func (b *MWBind) key() (uint32, error) {
	now := b.MW.RKey()
	switch {
	case b.RKey == 0:
		return IncRKey(now), nil
	case b.RKey>>8 != now>>8:
		return 0, hint(syscall.EINVAL, "key %#x: only the low 8 bits of %#x may change (IncRKey)", b.RKey, now)
	}
	return b.RKey, nil
}
