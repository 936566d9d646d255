package ibverbs_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// Needs no device: a machine without RDMA has an empty list and no error.
func TestDevices(t *testing.T) {
	infos, err := ibverbs.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if info.Name == "" || !strings.HasPrefix(info.UverbsName, "uverbs") {
			t.Errorf("a device without names: %+v", info)
		}
	}
}

func TestOpenNoSuchDevice(t *testing.T) {
	dev, err := ibverbs.Open("no-such-device")
	if dev != nil || !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "here") {
		t.Errorf("Open = %v, %v; want ENODEV and what there is", dev, err)
	}
}

func TestQueryDevice(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		info, attr := target.Dev.Info(), target.Attr
		if info.Name != target.Dev.Name() || info.NodeGUID != attr.NodeGUID || attr.NodeGUID == (ibverbs.GUID{}) {
			t.Errorf("info %+v and attributes' GUID %v differ", info, attr.NodeGUID)
		}
		if attr.MaxQP < 1 || attr.MaxCQE < 1 || attr.MaxSGE < 1 || attr.PhysPortCount != 1 || attr.MaxMRSize == 0 {
			t.Errorf("limits: %+v", attr)
		}
		again, err := target.Dev.Query()
		if err != nil || again != attr {
			t.Errorf("asked again: %+v, %v", again, err)
		}
		verbstest.Works(t, target.Dev, "attributes of device, port, P_Keys, GIDs")
	})
}

func TestQueryPort(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		attr, err := target.Dev.QueryPort(1)
		if err != nil {
			t.Fatal(err)
		}
		// The lab's netdevs have MTU 4200; hardware has what it has.
		if attr.State != ibverbs.PortActive || attr.ActiveMTU.Bytes() < 1024 || attr.GIDTableLen < 1 || attr.MaxMsgSize == 0 {
			t.Errorf("port 1: %+v", attr)
		}
		for _, port := range []int{0, -1, 2, 257} {
			if _, err := target.Dev.QueryPort(port); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("port %d: %v, want EINVAL", port, err)
			}
		}
		verbstest.Works(t, target.Dev, "attributes of device, port, P_Keys, GIDs")
	})
}

func TestQueryPKey(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		port := verbstest.Must[ibverbs.PortAttr](t)(target.Dev.QueryPort(1))
		if port.PKeyTableLen == 0 {
			if pkey, err := target.Dev.QueryPKey(1, 0); err == nil {
				t.Errorf("P_Key %#x from an empty table", pkey)
			}
			return
		}
		if pkey, err := target.Dev.QueryPKey(1, 0); err != nil || pkey&0x7fff == 0 {
			t.Errorf("P_Key 0: %#x, %v", pkey, err)
		}
		if _, err := target.Dev.QueryPKey(1, port.PKeyTableLen); err == nil {
			t.Error("read beyond the P_Key table")
		}
	})
}

func TestGIDTable(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		table, err := target.Dev.GIDTable()
		if err != nil {
			t.Fatal(err)
		}
		if len(table) == 0 {
			t.Fatal("no GID")
		}
		for _, e := range table {
			gid, err := target.Dev.QueryGID(e.Port, e.Index)
			if err != nil || gid != e.GID || gid.IsZero() {
				t.Errorf("entry %+v: QueryGID says %v, %v", e, gid, err)
			}
		}
		if _, err := target.Dev.QueryGID(1, 1<<20); err == nil {
			t.Error("read beyond the GID table")
		}
		verbstest.Works(t, target.Dev, "attributes of device, port, P_Keys, GIDs")
	})
}

// A RoCE port has a GID for each address of its netdev; iWARP has the MAC.
func TestGIDAddresses(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		table := verbstest.Must[[]ibverbs.GIDEntry](t)(target.Dev.GIDTable())
		for _, addr := range []netip.Addr{target.Addr, target.Addr6} {
			if !addr.IsValid() {
				continue
			}
			e, err := ibverbs.ChooseGID(table, target.Port, ibverbs.GIDTypeRoCEv2, addr, 0)
			if err != nil {
				t.Error(err)
			} else if e.NetdevIndex == 0 {
				t.Errorf("entry %+v has no netdev", e)
			}
		}
	}, verbstest.Datagrams)
	verbstest.EachLacking(t, verbstest.Datagrams, func(t *testing.T, target *verbstest.Target) {
		table := verbstest.Must[[]ibverbs.GIDEntry](t)(target.Dev.GIDTable())
		if slices.ContainsFunc(table, func(e ibverbs.GIDEntry) bool { return e.Type == ibverbs.GIDTypeRoCEv2 }) {
			t.Errorf("iWARP with a RoCE GID: %+v", table)
		}
	})
}

// A failure must not make later calls that succeed look like failures, with
// its stale errno.
func TestStaleErrno(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for range 100 {
			if _, err := ibverbs.Open("no-such-device"); err == nil {
				t.Fatal("opened nothing")
			}
			pd, err := target.Dev.AllocPD()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pd.AllocMR(4096, ibverbs.AccessRemoteWrite, ibverbs.BufferOptions{}); err == nil {
				t.Fatal("REMOTE_WRITE without LOCAL_WRITE")
			}
			cq, err := target.Dev.CreateCQ(16, ibverbs.CQOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeXRCSend, SendCQ: cq, RecvCQ: cq}); err == nil {
				t.Fatal("XRC without a domain")
			}
			qp, err := pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(qp.Close(), cq.Close(), pd.Close()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
