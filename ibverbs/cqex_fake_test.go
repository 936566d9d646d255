package ibverbs

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goverbs/goverbs/internal/fakecq"
)

// drain takes completions in batches until there are none, several times, and
// returns their WRIDs. It gives up where there are more than can be.
func drain(t *testing.T, cq *fakecq.CQ, singly bool, room int) (wrIDs []uint64) {
	t.Helper()
	for empty := 0; empty < 3 && len(wrIDs) <= 2*fakecq.Room; {
		wcs := make([]WCEx, room)
		n, err := pollCQEx((*cCQEx)(cq.Pointer()), 0, singly, wcs)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			empty++
		}
		for _, wc := range wcs[:n] {
			wrIDs = append(wrIDs, wc.WRID)
		}
	}
	return wrIDs
}

// However long the batches, each completion comes once: singly from every
// release of rxe's provider, and in whole batches from one that is right.
func TestPollCQEx(t *testing.T) {
	for _, tc := range []struct {
		release int
		singly  bool
		right   bool
	}{
		{44, true, true}, {55, true, true}, {59, true, true}, {59, false, true},
		// That the fake has the faults for which singly is there.
		{44, false, false}, {55, false, false},
	} {
		right := true
		for room := 1; room <= 2*fakecq.Room; room++ {
			cq := fakecq.New(tc.release, 0)
			var want []uint64
			for _, n := range []int{fakecq.Room, 1, 0, 5} {
				first := uint64(len(want))
				for i := range n {
					cq.Push(first+uint64(i), 0, 0, 0)
					want = append(want, first+uint64(i))
				}
				if got := drain(t, cq, tc.singly, room); !cmp.Equal(got, want[first:], cmpopts.EquateEmpty()) || cq.Locked() != 0 {
					right = false
				}
			}
			cq.Free()
		}
		if right != tc.right {
			t.Errorf("release %d, singly %v: right is %v, want %v", tc.release, tc.singly, right, tc.right)
		}
	}
}

// Only what was asked for is read, for a provider has nothing else; and of a
// failure only what holds.
func TestPollCQExFields(t *testing.T) {
	const base = 100
	whole := WCEx{
		WRID: 7, Opcode: WCTMRecv, VendorErr: base + 1, Flags: base + 2, ByteLen: base + 3, imm: base + 4, QPN: base + 5,
		SrcQP: base + 6, SLID: base + 7, SL: base + 8, DLIDPathBits: base + 9, CompletionTS: base<<32 + 10, CVLAN: base + 11,
		FlowTag: base + 12, TMTag: base<<32 + 13, TMPriv: base + 14, CompletionWallclockNS: base<<32 + 15,
	}
	always := WCEx{WRID: 7, Opcode: WCTMRecv, VendorErr: base + 1, Flags: base + 2}
	with := func(set func(*WCEx)) WCEx {
		wc := always
		set(&wc)
		return wc
	}
	const all = 1<<12 - 1
	noTag := whole
	noTag.Opcode, noTag.TMTag, noTag.TMPriv = WCRecv, 0, 0
	for _, tc := range []struct {
		fields WCExFlags
		status WCStatus
		want   WCEx
	}{
		{0, 0, always},
		{all, 0, whole},
		{all, 0, noTag},
		{WCExByteLen, 0, with(func(wc *WCEx) { wc.ByteLen = base + 3 })},
		{WCExImm, 0, with(func(wc *WCEx) { wc.imm = base + 4 })},
		{WCExQPNum, 0, with(func(wc *WCEx) { wc.QPN = base + 5 })},
		{WCExSrcQP, 0, with(func(wc *WCEx) { wc.SrcQP = base + 6 })},
		{WCExSLID, 0, with(func(wc *WCEx) { wc.SLID = base + 7 })},
		{WCExSL, 0, with(func(wc *WCEx) { wc.SL = base + 8 })},
		{WCExDLIDPathBits, 0, with(func(wc *WCEx) { wc.DLIDPathBits = base + 9 })},
		{WCExCompletionTS, 0, with(func(wc *WCEx) { wc.CompletionTS = base<<32 + 10 })},
		{WCExCVLAN, 0, with(func(wc *WCEx) { wc.CVLAN = base + 11 })},
		{WCExFlowTag, 0, with(func(wc *WCEx) { wc.FlowTag = base + 12 })},
		{WCExTMInfo, 0, with(func(wc *WCEx) { wc.TMTag, wc.TMPriv = base<<32+13, base+14 })},
		{WCExCompletionWallclockNS, 0, with(func(wc *WCEx) { wc.CompletionWallclockNS = base<<32 + 15 })},
		{all, WCStatusWRFlushErr, WCEx{
			WRID: 7, Status: WCStatusWRFlushErr, VendorErr: base + 1, QPN: base + 5,
			CompletionTS: base<<32 + 10, CompletionWallclockNS: base<<32 + 15,
		}},
	} {
		cq := fakecq.New(59, uint64(tc.fields))
		opcode := tc.want.Opcode
		cq.Push(7, uint32(tc.status), uint32(opcode), base)
		wcs := []WCEx{whole} // whatever was there before
		n, err := pollCQEx((*cCQEx)(cq.Pointer()), tc.fields, false, wcs)
		if n != 1 || err != nil || wcs[0] != tc.want {
			t.Errorf("%v: %d, %v, %s", tc.fields, n, err, cmp.Diff(tc.want, wcs[0], cmp.AllowUnexported(WCEx{})))
		}
		cq.Free()
	}
}

func TestPollCQExFails(t *testing.T) {
	cq := fakecq.New(59, 0)
	defer cq.Free()
	cq.Push(1, 0, 0, 0)
	for _, errno := range []int{int(syscall.EIO), -int(syscall.EIO)} {
		cq.Fail(errno)
		if n, err := pollCQEx((*cCQEx)(cq.Pointer()), 0, false, make([]WCEx, 1)); n != 0 || err != syscall.EIO {
			t.Errorf("start_poll returns %d: %d, %v, want EIO", errno, n, err)
		}
	}
	cq.Fail(0)
	if got := drain(t, cq, false, 1); len(got) != 1 || cq.Locked() != 0 {
		t.Errorf("afterwards %v, locked %d", got, cq.Locked())
	}
}
