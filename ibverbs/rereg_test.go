package ibverbs

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// What ibv_rereg_mr returns, and what that means for the region.
func TestReregCode(t *testing.T) {
	for _, tc := range []struct {
		ret   int
		errno error
		code  ReregMRErrCode
		err   error
	}{
		{0, nil, 0, nil},
		{0, syscall.ENOENT, 0, nil},
		{-1, syscall.EINVAL, ReregMRErrInput, syscall.EINVAL},
		{-2, syscall.ENOMEM, ReregMRErrDontForkNew, syscall.ENOMEM},
		{-3, syscall.ENOMEM, ReregMRErrDoForkOld, syscall.ENOMEM},
		{-4, syscall.EFAULT, ReregMRErrCmd, syscall.EFAULT},
		{-5, syscall.EFAULT, ReregMRErrCmdAndDoForkNew, syscall.EFAULT},
		{-4, nil, ReregMRErrCmd, syscall.EIO},
		{-4, syscall.EOPNOTSUPP, ReregMRErrInput, syscall.EOPNOTSUPP},
		{-4, syscall.ENOSYS, ReregMRErrInput, syscall.ENOSYS},
	} {
		if code, err := reregCode(tc.ret, tc.errno); code != tc.code || err != tc.err {
			t.Errorf("%d, %v: %v, %v", tc.ret, tc.errno, code, err)
		}
	}
}

// reregRig is a region of a device that is none.
type reregRig struct {
	dev    *Device
	pd, to *PD
	mr     *MR
	old    *buffer
	next   []byte
}

func newReregRig(t *testing.T) *reregRig {
	t.Helper()
	r := &reregRig{dev: &Device{}, next: make([]byte, 32)}
	if err := r.dev.adopt("device"); err != nil {
		t.Fatal(err)
	}
	r.dev.object = "x"
	newPD := func(name string) *PD {
		pd := &PD{dev: r.dev, pd: &cPD{}}
		if err := pd.adopt("PD", &r.dev.handle); err != nil {
			t.Fatal(err)
		}
		pd.named("%s", name)
		return pd
	}
	r.pd, r.to = newPD("x/pd1"), newPD("x/pd2")
	var err error
	if r.old, err = mapBuffer(64, BufferOptions{}); err != nil {
		t.Fatal(err)
	}
	reg := region{pd: r.pd, buf: r.old, addr: uint64(r.old.addr()), length: 64, access: AccessLocalWrite}
	if r.mr, err = newMR("ibv_reg_mr", reg, func() (*cMR, error) { return &cMR{lkey: 1, rkey: 1}, nil }, &r.pd.handle); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.mr.close("test", nil, r.mr.free); err != nil {
			t.Error(err)
		}
		if r.isPinned(r.mr.at.Load().buf) || r.old.mapped != nil {
			t.Error("the memory is still there after Close")
		}
	})
	return r
}

// answer has the next Rereg end in one way, with new keys.
func (r *reregRig) answer(t *testing.T, code ReregMRErrCode) {
	t.Helper()
	reregister = func(mr *cMR, change ReregMRFlags, next *region) (ReregMRErrCode, error) {
		if change&ReregMRTranslation != 0 && (next.addr != uint64(addrOf(r.next)) || next.length != len(r.next)) {
			t.Errorf("registered %#x, %d bytes", next.addr, next.length)
		}
		mr.lkey, mr.rkey = 2, 3
		if code == 0 {
			return 0, nil
		}
		return code, syscall.ENOMEM
	}
	t.Cleanup(func() { reregister = reregMR })
}

func (r *reregRig) isPinned(b *buffer) bool { _, ok := pinned.Load(b); return ok }

// For each of the codes: which memory, PD and keys the region has, and which it
// has given back.
func TestReregStates(t *testing.T) {
	for _, tc := range []struct {
		code          ReregMRErrCode
		changed, lost bool
	}{
		{0, true, false},
		{ReregMRErrInput, false, false},
		{ReregMRErrDontForkNew, false, false},
		{ReregMRErrDoForkOld, true, false},
		{ReregMRErrCmd, false, true},
		{ReregMRErrCmdAndDoForkNew, false, true},
	} {
		t.Run(tc.code.String(), func(t *testing.T) {
			r := newReregRig(t)
			r.answer(t, tc.code)
			err := r.mr.Rereg(ReregMRTranslation|ReregMRPD|ReregMRAccess, ReregMRAttr{Buf: r.next, PD: r.to, Access: AccessRemoteRead})
			if tc.code == 0 && err != nil {
				t.Fatal(err)
			}
			var re *ReregMRError
			if tc.code != 0 && (!errors.As(err, &re) || re.Code != tc.code || re.Changed() != tc.changed || re.Lost() != tc.lost || !errors.Is(err, syscall.ENOMEM)) {
				t.Fatalf("%v", err)
			}
			r.check(t, tc.changed, tc.lost)
		})
	}
}

func (r *reregRig) check(t *testing.T, changed, lost bool) {
	t.Helper()
	at := r.mr.at.Load()
	busy, free := r.pd, r.to
	if changed {
		busy, free = r.to, r.pd
		if addrOf(r.mr.Bytes()) != addrOf(r.next) || r.mr.Len() != 32 || r.mr.LKey() != 2 || r.mr.RKey() != 3 || r.mr.Access() != AccessRemoteRead || r.mr.PD() != r.to {
			t.Errorf("the region is %+v", at)
		}
		if r.old.mapped != nil || !r.isPinned(at.buf) {
			t.Error("the old memory is mapped, or the new one is not pinned")
		}
	} else if at.buf != r.old || r.mr.Len() != 64 || r.mr.LKey() != 1 || r.mr.Access() != AccessLocalWrite || r.old.mapped == nil {
		t.Errorf("the region is %+v", at)
	}
	if got := r.mr.SGE(0, 1) == outside; got != lost {
		t.Errorf("lost: %v, want %v", got, lost)
	}
	if lost {
		if len(r.mr.spare) != 1 || !r.isPinned(r.mr.spare[0]) {
			t.Error("a lost region does not hold the memory that it may have")
		}
		if err := r.mr.Rereg(ReregMRAccess, ReregMRAttr{}); !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "lost") {
			t.Errorf("Rereg of a lost region: %v", err)
		}
		if err := r.to.refuseChildren(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("a PD that the region may be in: %v, want EBUSY", err)
		}
	} else if err := free.refuseChildren(); err != nil {
		t.Errorf("the PD that it is not in: %v", err)
	}
	if err := busy.refuseChildren(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("the PD that it is in: %v, want EBUSY", err)
	}
}

// Nothing reaches C of what makes no sense.
func TestReregErrors(t *testing.T) {
	r := newReregRig(t)
	reregister = func(*cMR, ReregMRFlags, *region) (ReregMRErrCode, error) {
		t.Error("it reached C")
		return 0, nil
	}
	t.Cleanup(func() { reregister = reregMR })
	closed := &PD{dev: r.dev}
	if err := closed.adopt("PD"); err != nil {
		t.Fatal(err)
	}
	closed.refuse = true
	for _, tc := range []struct {
		name   string
		change ReregMRFlags
		attr   ReregMRAttr
		is     error
		word   string
	}{
		{"nothing", 0, ReregMRAttr{}, syscall.EINVAL, "nothing to change"},
		{"unknown", 8, ReregMRAttr{}, syscall.EINVAL, "nothing to change"},
		{"no memory", ReregMRTranslation, ReregMRAttr{}, syscall.EINVAL, "Buf"},
		{"empty memory", ReregMRTranslation, ReregMRAttr{Buf: []byte{}}, syscall.EINVAL, "Buf"},
		{"memory without its flag", ReregMRAccess, ReregMRAttr{Buf: r.next}, syscall.EINVAL, "Buf"},
		{"no PD", ReregMRPD, ReregMRAttr{}, syscall.EINVAL, "PD goes"},
		{"PD without its flag", ReregMRAccess, ReregMRAttr{PD: r.to}, syscall.EINVAL, "PD goes"},
		{"access without its flag", ReregMRPD, ReregMRAttr{PD: r.to, Access: 1}, syscall.EINVAL, "Access goes"},
		{"another device's PD", ReregMRPD, ReregMRAttr{PD: &PD{dev: &Device{}}}, syscall.EINVAL, "another device"},
		{"closed PD", ReregMRPD | ReregMRTranslation, ReregMRAttr{PD: closed, Buf: r.next}, os.ErrClosed, "new PD"},
	} {
		err := r.mr.Rereg(tc.change, tc.attr)
		var re *ReregMRError
		if !errors.As(err, &re) || re.Lost() || re.Changed() || !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.word) {
			t.Errorf("%s: %v; want %v and a word on %q", tc.name, err, tc.is, tc.word)
		}
	}
	r.check(t, false, false)
	defer r.mr.at.Store(r.mr.at.Load())
	r.mr.at.Store(&region{pd: r.pd}) // a null region, or device memory
	if err := r.mr.Rereg(ReregMRAccess, ReregMRAttr{}); !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "memory of this process") {
		t.Errorf("a region without memory: %v", err)
	}
}
