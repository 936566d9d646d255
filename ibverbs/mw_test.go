package ibverbs_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// windowAccess is a region's that windows of all kinds may be bound to.
const windowAccess = verbstest.AllAccess | ibverbs.AccessMWBind

// windowed is a pair of ends of which b lets a in through a window.
type windowed struct {
	a, b *verbstest.End
	src  *ibverbs.MR // a's
	mr   *ibverbs.MR // b's, 4 pages
	mw   *ibverbs.MW // b's
}

// eachWindow runs fn with QPs that post through ibv_post_send, and with ones
// that post through ibv_wr_*.
func eachWindow(t *testing.T, typ ibverbs.MWType, fn func(*testing.T, *windowed)) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for name, ops := range map[string]ibverbs.SendOps{"ibv_post_send": 0, "ibv_wr": rcOps} {
			t.Run(name, func(t *testing.T) { fn(t, newWindowed(t, target, typ, ops)) })
		}
	}, verbstest.MemoryWindows, verbstest.SendOps)
}

func newWindowed(t *testing.T, target *verbstest.Target, typ ibverbs.MWType, ops ibverbs.SendOps) *windowed {
	t.Helper()
	w := &windowed{}
	w.a, w.b = verbstest.PairWith(t, target, ibverbs.QPInitAttr{Cap: verbstest.PairCap, SendOps: ops}, nil)
	w.src = verbstest.MR(t, w.a.PD, 4*os.Getpagesize())
	verbstest.Pattern(w.src.Bytes(), 9)
	w.mr = verbstest.Must[*ibverbs.MR](t)(w.b.PD.AllocMR(4*os.Getpagesize(), windowAccess, ibverbs.BufferOptions{}))
	verbstest.Close(t, w.mr)
	w.mw = verbstest.Must[*ibverbs.MW](t)(w.b.PD.AllocMW(typ))
	verbstest.Close(t, w.mw)
	return w
}

// bind is for the second page of the region.
func (w *windowed) bind() ibverbs.MWBind {
	page := uint64(os.Getpagesize())
	return ibverbs.MWBind{MW: w.mw, MR: w.mr, Addr: w.mr.Addr() + page, Length: page, Access: ibverbs.AccessRemoteWrite | ibverbs.AccessRemoteRead}
}

// post has b carry out a work request.
func (w *windowed) post(t *testing.T, wr ibverbs.SendWR) {
	t.Helper()
	wr.Flags |= ibverbs.SendSignaled
	verbstest.Post(t, w.b.QP, wr)
	verbstest.Complete(t, w.b.CQ, 1)
}

// access has a do something to b's memory, and returns how that ended.
func (w *windowed) access(t *testing.T, op ibverbs.WROpcode, addr uint64, length int, rkey uint32) ibverbs.WCStatus {
	t.Helper()
	verbstest.Post(t, w.a.QP, ibverbs.SendWR{
		Opcode: op, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{w.src.SGE(0, length)}, RemoteAddr: addr, RKey: rkey,
	})
	return verbstest.Poll(t, w.a.CQ, 1)[0].Status
}

// A peer writes and reads through a window of type 2, by each key that it has
// had, until it is invalidated.
func TestWindowType2(t *testing.T) {
	eachWindow(t, ibverbs.MWType2, func(t *testing.T, w *windowed) {
		page := os.Getpagesize()
		for round := range 3 {
			before := w.mw.RKey()
			// A slot that has held immediate data before.
			verbstest.Receive(t, w.a.QP, ibverbs.RecvWR{})
			w.post(t, ibverbs.SendWR{Opcode: ibverbs.WRSendWithImm, ImmData: 0xffff})
			verbstest.Complete(t, w.a.CQ, 1)
			bind := w.bind()
			w.post(t, ibverbs.SendWR{WRID: 7, Opcode: ibverbs.WRBindMW, Bind: &bind})
			if w.mw.RKey() != ibverbs.IncRKey(before) {
				t.Fatalf("key %#x after %#x", w.mw.RKey(), before)
			}
			verbstest.Pattern(w.src.Bytes(), round)
			if s := w.access(t, ibverbs.WRRDMAWrite, bind.Addr+8, page-8, w.mw.RKey()); s != ibverbs.WCStatusSuccess {
				t.Fatalf("write through the window: %v", s)
			}
			if !bytes.Equal(w.mr.Bytes()[page+8:2*page], w.src.Bytes()[:page-8]) {
				t.Error("the data differs")
			}
			clear(w.src.Bytes())
			if s := w.access(t, ibverbs.WRRDMARead, bind.Addr, page, w.mw.RKey()); s != ibverbs.WCStatusSuccess {
				t.Fatalf("read through the window: %v", s)
			}
			if !bytes.Equal(w.mr.Bytes()[page:2*page], w.src.Bytes()[:page]) {
				t.Error("what was read differs")
			}
			w.post(t, ibverbs.SendWR{Opcode: ibverbs.WRLocalInv, InvalidateRKey: w.mw.RKey()})
		}
		if s := w.access(t, ibverbs.WRRDMAWrite, w.bind().Addr, 8, w.mw.RKey()); s != ibverbs.WCStatusRemAccessErr {
			t.Errorf("write through an invalidated window: %v, want REM_ACCESS_ERR", s)
		}
		verbstest.Works(t, w.b.PD.Device(), "memory windows")
	})
}

// Binding, invalidating and binding again in one batch: each sees the key that
// the one before left.
func TestWindowBatch(t *testing.T) {
	eachWindow(t, ibverbs.MWType2, func(t *testing.T, w *windowed) {
		bind, key := w.bind(), ibverbs.IncRKey(w.mw.RKey())
		verbstest.Receive(t, w.a.QP, ibverbs.RecvWR{WRID: 1}, ibverbs.RecvWR{WRID: 2})
		verbstest.Post(t, w.b.QP,
			ibverbs.SendWR{WRID: 0, Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled},
			ibverbs.SendWR{WRID: 1, Opcode: ibverbs.WRBindMW, Flags: ibverbs.SendSignaled, Bind: &bind},
			ibverbs.SendWR{WRID: 2, Opcode: ibverbs.WRLocalInv, Flags: ibverbs.SendSignaled, InvalidateRKey: key},
			ibverbs.SendWR{WRID: 3, Opcode: ibverbs.WRBindMW, Flags: ibverbs.SendSignaled, Bind: &bind},
			ibverbs.SendWR{WRID: 4, Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled},
		)
		var ops []ibverbs.WCOpcode
		for i, wc := range verbstest.Complete(t, w.b.CQ, 5) {
			if wc.WRID != uint64(i) {
				t.Errorf("completion %d: %+v", i, wc)
			}
			ops = append(ops, wc.Opcode)
		}
		want := []ibverbs.WCOpcode{ibverbs.WCSend, ibverbs.WCBindMW, ibverbs.WCLocalInv, ibverbs.WCBindMW, ibverbs.WCSend}
		if !slices.Equal(ops, want) {
			t.Errorf("completions %v, want %v", ops, want)
		}
		verbstest.Complete(t, w.a.CQ, 2)
		if s := w.access(t, ibverbs.WRRDMAWrite, bind.Addr, 8, ibverbs.IncRKey(key)); s != ibverbs.WCStatusSuccess {
			t.Errorf("write by the last key: %v", s)
		}
		if s := w.access(t, ibverbs.WRRDMAWrite, bind.Addr, 8, key); s != ibverbs.WCStatusRemAccessErr {
			t.Errorf("write by the first key: %v", s)
		}
	})
}

// The peer invalidates the window with its last message.
func TestWindowRemoteInvalidate(t *testing.T) {
	eachWindow(t, ibverbs.MWType2, func(t *testing.T, w *windowed) {
		bind := w.bind()
		w.post(t, ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &bind})
		verbstest.Receive(t, w.b.QP, ibverbs.RecvWR{})
		verbstest.Post(t, w.a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSendWithInv, Flags: ibverbs.SendSignaled, InvalidateRKey: w.mw.RKey()})
		verbstest.Complete(t, w.a.CQ, 1)
		wc := verbstest.Complete(t, w.b.CQ, 1)[0]
		if wc.Flags&ibverbs.WCWithInv == 0 || wc.InvalidatedRKey() != w.mw.RKey() {
			t.Errorf("%+v, invalidated %#x, want %#x", wc, wc.InvalidatedRKey(), w.mw.RKey())
		}
		// Once more would be too much for rxe, whose kernel part oopses.
		n, err := w.b.QP.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRLocalInv, InvalidateRKey: w.mw.RKey()}})
		if n != 0 {
			t.Errorf("%d accepted", n)
		}
		refused(t, "invalidating what the peer has invalidated", err, syscall.EINVAL, "is bound")
		w.post(t, ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &bind})
		if s := w.access(t, ibverbs.WRRDMAWrite, bind.Addr, 8, w.mw.RKey()); s != ibverbs.WCStatusSuccess {
			t.Errorf("write through the window that was bound again: %v", s)
		}
	})
}

// A peer that goes beyond the region, or does what the window does not allow,
// is refused.
func TestWindowLimits(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for name, tc := range map[string]struct {
			op     ibverbs.WROpcode
			access ibverbs.Access
			addr   func(w *windowed) uint64
		}{
			"beyond the region":        {ibverbs.WRRDMAWrite, ibverbs.AccessRemoteWrite, func(w *windowed) uint64 { return w.mr.Addr() + uint64(w.mr.Len()) - 4 }},
			"before the region":        {ibverbs.WRRDMAWrite, ibverbs.AccessRemoteWrite, func(w *windowed) uint64 { return w.mr.Addr() - 8 }},
			"write where one may read": {ibverbs.WRRDMAWrite, ibverbs.AccessRemoteRead, func(w *windowed) uint64 { return w.bind().Addr }},
			"read where one may write": {ibverbs.WRRDMARead, ibverbs.AccessRemoteWrite, func(w *windowed) uint64 { return w.bind().Addr }},
		} {
			t.Run(name, func(t *testing.T) {
				w := newWindowed(t, target, ibverbs.MWType2, 0)
				bind := w.bind()
				bind.Access = tc.access
				w.post(t, ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &bind})
				if s := w.access(t, tc.op, tc.addr(w), 8, w.mw.RKey()); s != ibverbs.WCStatusRemAccessErr {
					t.Errorf("%v, want REM_ACCESS_ERR", s)
				}
			})
		}
	}, verbstest.MemoryWindows)
}

func TestWindowZeroBased(t *testing.T) {
	eachWindow(t, ibverbs.MWType2, func(t *testing.T, w *windowed) {
		bind := w.bind()
		bind.Access |= ibverbs.AccessZeroBased
		w.post(t, ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &bind})
		if s := w.access(t, ibverbs.WRRDMAWrite, 16, 64, w.mw.RKey()); s != ibverbs.WCStatusSuccess {
			t.Fatal(s)
		}
		if at := os.Getpagesize() + 16; !bytes.Equal(w.mr.Bytes()[at:at+64], w.src.Bytes()[:64]) {
			t.Error("the data is not at the window's offset 16")
		}
	})
}

// A window of type 1 is bound, bound anew elsewhere, and bound to nothing.
func TestWindowType1(t *testing.T) {
	eachWindow(t, ibverbs.MWType1, func(t *testing.T, w *windowed) {
		page := os.Getpagesize()
		rebind := func(bind ibverbs.MWBind) {
			t.Helper()
			before := w.mw.RKey()
			if err := w.b.QP.BindMW(5, ibverbs.SendSignaled, bind); err != nil {
				t.Fatal(err)
			}
			if wc := verbstest.Complete(t, w.b.CQ, 1)[0]; wc.WRID != 5 || wc.Opcode != ibverbs.WCBindMW {
				t.Errorf("%+v", wc)
			}
			if w.mw.RKey() == before {
				t.Errorf("the key is %#x still", before)
			}
		}
		for i := range 3 {
			bind := w.bind()
			bind.Addr = w.mr.Addr() + uint64(i*page)
			rebind(bind)
			if s := w.access(t, ibverbs.WRRDMAWrite, bind.Addr, page, w.mw.RKey()); s != ibverbs.WCStatusSuccess {
				t.Fatal(s)
			}
			if !bytes.Equal(w.mr.Bytes()[i*page:(i+1)*page], w.src.Bytes()[:page]) {
				t.Error("the data differs")
			}
		}
		refused(t, "region with a window", w.mr.Close(), syscall.EBUSY, "window")
		rebind(ibverbs.MWBind{MW: w.mw})
		if s := w.access(t, ibverbs.WRRDMAWrite, w.mr.Addr(), 8, w.mw.RKey()); s != ibverbs.WCStatusRemAccessErr {
			t.Errorf("write through a window that is bound to nothing: %v", s)
		}
		if err := w.mr.Close(); err != nil {
			t.Error(err)
		}
		verbstest.Works(t, w.b.PD.Device(), "memory windows")
	})
}

// A region and a QP live as long as the window that is bound to them, and work
// after a refused Close.
func TestWindowCloseOrder(t *testing.T) {
	eachWindow(t, ibverbs.MWType2, func(t *testing.T, w *windowed) {
		bind := w.bind()
		w.post(t, ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &bind})
		refused(t, "region", w.mr.Close(), syscall.EBUSY, "window")
		refused(t, "QP", w.b.QP.Close(), syscall.EBUSY, "1 MW ("+w.mw.String()+")")
		refused(t, "PD", w.b.PD.Close(), syscall.EBUSY, "1 MW ("+w.mw.String()+")")
		if s := w.access(t, ibverbs.WRRDMAWrite, bind.Addr, 8, w.mw.RKey()); s != ibverbs.WCStatusSuccess {
			t.Errorf("write after refused Closes: %v", s)
		}
		for _, object := range []interface{ Close() error }{w.mw, w.mw, w.mr, w.b.QP} {
			if err := object.Close(); err != nil {
				t.Error(err)
			}
		}
		if w.mr.Bytes() != nil {
			t.Error("the region is open")
		}
	})
}

// What has no window says so.
func TestNoWindows(t *testing.T) {
	verbstest.EachLacking(t, verbstest.MemoryWindows, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		for _, typ := range []ibverbs.MWType{ibverbs.MWType1, ibverbs.MWType2} {
			_, err := pd.AllocMW(typ)
			refused(t, typ.String(), err, errors.ErrUnsupported, "ibv_alloc_mw")
		}
		verbstest.Refused(t, target.Dev, "memory windows")
	})
}

// What the device would fail, lose the QP for or crash on is refused before.
func TestWindowErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		w, v := newWindowed(t, target, ibverbs.MWType2, 0), newWindowed(t, target, ibverbs.MWType1, 0)
		plain := verbstest.MR(t, w.b.PD, 4096)
		readOnly := verbstest.Must[*ibverbs.MR](t)(w.b.PD.AllocMR(4096, ibverbs.AccessMWBind, ibverbs.BufferOptions{}))
		verbstest.Close(t, readOnly)
		foreign := verbstest.Must[*ibverbs.MW](t)(w.a.PD.AllocMW(ibverbs.MWType2))
		verbstest.Close(t, foreign)
		type bindCase struct {
			name   string
			change func(*ibverbs.MWBind)
			is     error
			word   string
		}
		both := []bindCase{
			{"no window", func(b *ibverbs.MWBind) { b.MW = nil }, syscall.EINVAL, "MWBind.MW"},
			{"no region", func(b *ibverbs.MWBind) { b.MR = nil }, syscall.EINVAL, "MWBind.MR"},
			{"another PD's region", func(b *ibverbs.MWBind) { b.MR = w.src }, syscall.EINVAL, "another PD"},
			{"before the region", func(b *ibverbs.MWBind) { b.Addr = b.MR.Addr() - 1 }, syscall.EINVAL, "not within"},
			{"beyond the region", func(b *ibverbs.MWBind) { b.Length = uint64(b.MR.Len()) }, syscall.EINVAL, "not within"},
			{"overflow", func(b *ibverbs.MWBind) { b.Length = 1<<64 - 1 }, syscall.EINVAL, "not within"},
			{"local access", func(b *ibverbs.MWBind) { b.Access |= ibverbs.AccessLocalWrite }, syscall.EINVAL, "for a window"},
		}
		for _, tc := range append(both,
			bindCase{"another PD's window", func(b *ibverbs.MWBind) { b.MW = foreign }, syscall.EINVAL, "another PD"},
			bindCase{"region without MW_BIND", func(b *ibverbs.MWBind) { b.MR = plain }, syscall.EINVAL, "lacks MW_BIND"},
			bindCase{"write to what is only read", func(b *ibverbs.MWBind) { b.MR = readOnly }, syscall.EINVAL, "LOCAL_WRITE"},
			bindCase{"nothing", func(b *ibverbs.MWBind) { b.Length = 0 }, syscall.EINVAL, "at least one byte"},
			bindCase{"another window's key", func(b *ibverbs.MWBind) { b.RKey = b.MW.RKey() + 256 }, syscall.EINVAL, "IncRKey"},
		) {
			bind := w.bind()
			tc.change(&bind)
			n, err := w.b.QP.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRBindMW, Bind: &bind}})
			if n != 0 {
				t.Errorf("%s: accepted", tc.name)
			}
			refused(t, tc.name, err, tc.is, tc.word)
		}
		for _, tc := range append(both,
			bindCase{"type 2", func(b *ibverbs.MWBind) { b.MW = foreign }, syscall.EINVAL, "WRBindMW"},
			bindCase{"bound to nothing before it was bound", func(b *ibverbs.MWBind) { *b = ibverbs.MWBind{MW: b.MW} }, syscall.EINVAL, "not bound"},
		) {
			bind := v.bind()
			tc.change(&bind)
			refused(t, "type 1, "+tc.name, v.b.QP.BindMW(1, 0, bind), tc.is, tc.word)
		}
		windowClosed(t, w, v)
	}, verbstest.MemoryWindows)
}

// windowClosed tries the rest of a window's errors, up to closed objects.
func windowClosed(t *testing.T, w, v *windowed) {
	t.Helper()
	post := func(what string, wr ibverbs.SendWR, is error, word string) {
		t.Helper()
		n, err := w.b.QP.PostSend([]ibverbs.SendWR{wr})
		if n != 0 {
			t.Errorf("%s: accepted", what)
		}
		refused(t, what, err, is, word)
	}
	bind, one := w.bind(), v.bind()
	post("no MWBind", ibverbs.SendWR{Opcode: ibverbs.WRBindMW}, syscall.EINVAL, "MWBind.MW")
	post("type 1 window", ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &one}, syscall.EINVAL, "QP.BindMW")
	post("data", ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &bind, SGList: []ibverbs.SGE{w.mr.SGE(0, 8)}}, syscall.EINVAL, "no SGList")
	post("inline data", ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &bind, Inline: []byte{1}}, syscall.EINVAL, "inline")
	post("key of no window", ibverbs.SendWR{Opcode: ibverbs.WRLocalInv, InvalidateRKey: w.mr.RKey()}, syscall.EINVAL, "is bound")
	post("key of a window that is not bound", ibverbs.SendWR{Opcode: ibverbs.WRLocalInv, InvalidateRKey: w.mw.RKey()}, syscall.EINVAL, "is bound")
	for _, typ := range []ibverbs.MWType{0, 3} {
		_, err := w.b.PD.AllocMW(typ)
		refused(t, typ.String(), err, syscall.EINVAL, typ.String())
	}
	for _, object := range []interface{ Close() error }{v.mw, w.mr} {
		if err := object.Close(); err != nil {
			t.Error(err)
		}
	}
	refused(t, "closed window", v.b.QP.BindMW(1, 0, one), os.ErrClosed, "the memory window")
	post("closed region", ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &bind}, os.ErrClosed, "the memory region")
	if err := v.b.QP.Close(); err != nil {
		t.Error(err)
	}
	refused(t, "closed QP", v.b.QP.BindMW(1, 0, one), os.ErrClosed, "ibv_bind_mw")
}
