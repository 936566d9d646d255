package ibverbs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// No driver of the lab has completion counters, and rdma-core only from 65 on.
func TestNoCompCntr(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		_, err := target.Dev.QueryCompCntrCaps()
		refused(t, "QueryCompCntrCaps", err, errors.ErrUnsupported, "ibv_query_comp_cntr_caps")
		_, err = target.Dev.CreateCompCntr(ibverbs.CompCntrWRs)
		refused(t, "CreateCompCntr", err, errors.ErrUnsupported, "ibv_create_comp_cntr")
		verbstest.Refused(t, target.Dev, "completion counters")
	})
}

// With counters that are preloaded: what goes to C and comes back, and who
// closes before whom.
func TestCompCntr(t *testing.T) {
	const inside = "GOVERBS_TEST_COMPCNTR"
	target := verbstest.Device(t)
	if os.Getenv(inside) != "" {
		testCompCntr(t, target)
		return
	}
	lib := filepath.Join(t.TempDir(), "compcntr.so")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", lib, "testdata/compcntr.c").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCompCntr$", "-test.v")
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+lib, inside+"=1",
		// Under AddressSanitizer its library would want to be the first.
		"ASAN_OPTIONS=verify_asan_link_order=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func testCompCntr(t *testing.T, target *verbstest.Target) {
	caps, err := target.Dev.QueryCompCntrCaps()
	if want := (ibverbs.CompCntrCaps{MaxValue: 1 << 48, MaxCounters: 7, Ops: 0x3f}); err != nil || caps != want {
		t.Errorf("%+v, %v; want %+v", caps, err, want)
	}
	cntr := verbstest.Must[*ibverbs.CompCntr](t)(target.Dev.CreateCompCntr(ibverbs.CompCntrBytes))
	if cntr.String() != target.Dev.Name()+"/compcntr40" || cntr.Type() != ibverbs.CompCntrBytes || cntr.Device() != target.Dev {
		t.Errorf("created %v, of %v", cntr, cntr.Type())
	}
	_, err = target.Dev.CreateCompCntr(2)
	refused(t, "an unknown type", err, syscall.EINVAL, "ibv_create_comp_cntr")
	counts := func(ok, failed uint64) {
		t.Helper()
		gotOK, err := cntr.Read()
		gotFailed, err2 := cntr.ReadErr()
		if gotOK != ok || gotFailed != failed || err != nil || err2 != nil {
			t.Errorf("%d and %d (%v, %v), want %d and %d", gotOK, gotFailed, err, err2, ok, failed)
		}
	}
	for _, err := range []error{cntr.Set(10), cntr.SetErr(1 << 40), cntr.Inc(3), cntr.IncErr(2)} {
		if err != nil {
			t.Error(err)
		}
	}
	counts(13, 1<<40+2)
	testAttachCompCntr(t, target, cntr)
	counts(13+1000*uint64(ibverbs.CompCntrSend|ibverbs.CompCntrRemoteRDMAWrite), 1<<40+2)

	for range 2 {
		if err := cntr.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err = cntr.Read()
	refused(t, "Read after Close", err, os.ErrClosed, "ibv_read_comp_cntr")
	refused(t, "Inc after Close", cntr.Inc(1), os.ErrClosed, "ibv_inc_comp_cntr")
}

func testAttachCompCntr(t *testing.T, target *verbstest.Target, cntr *ibverbs.CompCntr) {
	pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
	qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{
		Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap,
	}))
	refused(t, "unknown operations", qp.AttachCompCntr(cntr, 1<<10), syscall.EINVAL, "ibv_qp_attach_comp_cntr")
	for _, ops := range []ibverbs.CompCntrOps{ibverbs.CompCntrSend, ibverbs.CompCntrRemoteRDMAWrite} {
		if err := qp.AttachCompCntr(cntr, ops); err != nil {
			t.Error(err)
		}
	}
	// A later failure does not undo what went before.
	refused(t, "unknown operations", qp.AttachCompCntr(cntr, 1<<10), syscall.EINVAL, "ibv_qp_attach_comp_cntr")
	refused(t, "Close while attached", cntr.Close(), syscall.EBUSY, qp.String())
	if err := qp.Close(); err != nil {
		t.Error(err)
	}
}
