package ibverbs_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

func TestQueryEx(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		attr, err := target.Dev.QueryEx()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(target.Attr, attr.DeviceAttr); diff != "" {
			t.Errorf("the basic attributes are not those of ibv_query_device: %s", diff)
		}
		if int(attr.PhysPortCountEx) != attr.PhysPortCount {
			t.Errorf("%d ports, and %d extended", attr.PhysPortCount, attr.PhysPortCountEx)
		}
		// Software has no clock, no segmentation, no hash, no pacing.
		if attr.CompletionTimestampMask != 0 || attr.TSO.MaxTSO != 0 || attr.RSS.MaxRWQIndTables != 0 ||
			attr.PacketPacing.RateLimitMax != 0 || attr.TM.MaxNumTags != 0 || attr.MaxDMSize != 0 {
			t.Errorf("a software device has hardware's features: %+v", attr)
		}
	})
}

func TestDeviceQueriesRefused(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		if clock, err := target.Dev.RawClock(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("RawClock: %v, %v", clock, err)
		}
		verbstest.Refused(t, target.Dev, "the raw clock")
		if mbps, err := target.Dev.QueryPortSpeed(target.Port); err == nil {
			if mbps == 0 {
				t.Error("QueryPortSpeed: 0 Mbit/s")
			}
			verbstest.Works(t, target.Dev, "the speed of a port")
		} else if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("QueryPortSpeed: %v", err)
		} else {
			verbstest.Refused(t, target.Dev, "the speed of a port")
		}
		if _, err := target.Dev.QueryPortSpeed(9); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("QueryPortSpeed(9): %v", err)
		}
	})
}

func TestQueryGIDEx(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		table, err := target.Dev.GIDTable()
		if err != nil || len(table) == 0 {
			t.Fatalf("%d GIDs, %v", len(table), err)
		}
		for _, want := range table {
			got, err := target.Dev.QueryGIDEx(want.Port, want.Index)
			if err != nil || got != want {
				t.Errorf("%+v, %v; the table has %+v", got, err, want)
			}
		}
		for _, index := range []int{-1, 1 << 20} {
			if got, err := target.Dev.QueryGIDEx(target.Port, index); err == nil {
				t.Errorf("index %d: %+v and no error", index, got)
			}
		}
	})
}

func TestPKeyIndex(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		port := verbstest.Must[ibverbs.PortAttr](t)(target.Dev.QueryPort(target.Port))
		if port.PKeyTableLen == 0 { // iWARP
			if index, err := target.Dev.PKeyIndex(target.Port, 0xffff); !errors.Is(err, syscall.ENOENT) {
				t.Errorf("index %d in an empty table, %v; want ENOENT", index, err)
			}
			return
		}
		key, err := target.Dev.QueryPKey(target.Port, 0)
		if err != nil {
			t.Fatal(err)
		}
		if index, err := target.Dev.PKeyIndex(target.Port, key); err != nil || index != 0 {
			t.Errorf("P_Key %#x: index %d, %v", key, index, err)
		}
		if index, err := target.Dev.PKeyIndex(target.Port, 0x1234); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("P_Key 0x1234: index %d, %v; want ENOENT", index, err)
		}
	})
}

func TestDeviceNumbers(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		index, err := target.Dev.Index()
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("rdma", "dev", "show", target.Dev.Name()).Output()
		if err != nil || !strings.HasPrefix(string(out), strconv.Itoa(index)+":") {
			t.Errorf("index %d, %v; rdma says %s", index, err, out)
		}
	})
}

// siw maps queues where rdma-core takes one address for none: see plugSIW.
func TestManyQueues(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		for range 100 {
			cq := verbstest.CQ(t, target.Dev, 16)
			qp, err := pd.CreateQP(ibverbs.QPInitAttr{
				Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq,
				Cap: ibverbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1},
			})
			if err != nil {
				t.Fatal(err)
			}
			verbstest.Close(t, qp)
		}
	})
}

// forkChild makes this test binary call ForkInit, which lasts for ever.
const forkChild = "GOVERBS_TEST_FORK"

func TestForkInit(t *testing.T) {
	if os.Getenv(forkChild) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestForkInit$", "-test.v")
		cmd.Env = append(os.Environ(), forkChild+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	before := ibverbs.IsForkInitialized()
	if err := ibverbs.ForkInit(); err != nil {
		t.Fatal(err)
	}
	after := ibverbs.IsForkInitialized()
	t.Logf("before: %v, after: %v", before, after)
	if after == ibverbs.ForkDisabled {
		t.Errorf("fork support is %v after ForkInit", after)
	}
}
