package ibverbs_test

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// What C or the wire would cut short is refused, by CreateAH and by Modify
// alike; the rest of what is wrong by the kernel, with a word on it.
func TestAHErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd, cq := verbstest.PD(t, target.Dev), verbstest.CQ(t, target.Dev, 16)
		qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap}))
		verbstest.Close(t, qp)
		verbstest.ToInit(t, target, qp)
		for _, tc := range []struct {
			name   string
			change func(*ibverbs.AHAttr)
			is     error
			word   string
		}{
			{"no port", func(a *ibverbs.AHAttr) { a.Port = 0 }, syscall.EINVAL, "Port"},
			{"no such port", func(a *ibverbs.AHAttr) { a.Port = 9 }, syscall.EINVAL, ""},
			{"flow label", func(a *ibverbs.AHAttr) { a.FlowLabel = 1 << 20 }, syscall.EINVAL, "FlowLabel 0x100000"},
			{"SL", func(a *ibverbs.AHAttr) { a.SL = 16 }, syscall.EINVAL, "SL 16"},
			{"source path bits", func(a *ibverbs.AHAttr) { a.SrcPathBits = 128 }, syscall.EINVAL, "SrcPathBits 128"},
			{"not global", func(a *ibverbs.AHAttr) { a.IsGlobal = false }, syscall.EINVAL, "IsGlobal"},
			{"an empty GID", func(a *ibverbs.AHAttr) { a.SGIDIndex = 200 }, syscall.ENODATA, "SGIDIndex 200"},
		} {
			attr := verbstest.AHAttr(t, target, target.Addr)
			tc.change(&attr)
			ah, err := pd.CreateAH(attr)
			if err == nil {
				ah.Close()
			}
			refused(t, tc.name, err, tc.is, tc.word)
			rtr := verbstest.RTRAttr(t, target, 1)
			rtr.AH = attr
			refused(t, tc.name+" in Modify", qp.ToRTR(rtr), tc.is, tc.word)
		}
		rtr := verbstest.RTRAttr(t, target, 1)
		rtr.AltAH = ibverbs.AHAttr{FlowLabel: 1 << 21, Port: 1}
		err := qp.Modify(rtr, ibverbs.QPAttrState|ibverbs.QPAttrAltPath)
		refused(t, "alternate path", err, syscall.EINVAL, "alternate path")
		for field, change := range map[string]func(*ibverbs.QPAttr){
			"DEST_QPN": func(a *ibverbs.QPAttr) { a.DestQPN = 1 << 24 },
			"RQ_PSN":   func(a *ibverbs.QPAttr) { a.RQPSN = 1 << 24 },
		} {
			rtr := verbstest.RTRAttr(t, target, 1)
			change(&rtr)
			refused(t, field, qp.ToRTR(rtr), syscall.EINVAL, field+" 0x1000000")
		}
	}, verbstest.Datagrams)
}

func TestNoAH(t *testing.T) {
	verbstest.EachLacking(t, verbstest.Datagrams, func(t *testing.T, target *verbstest.Target) {
		_, err := verbstest.PD(t, target.Dev).CreateAH(ibverbs.AHAttr{Port: 1})
		refused(t, "CreateAH", err, errors.ErrUnsupported, "address handles")
		_, _, err = target.Dev.ResolveEthL2FromGID(ibverbs.AHAttr{Port: 1, IsGlobal: true})
		refused(t, "ResolveEthL2FromGID", err, syscall.EINVAL, "")
		verbstest.Refused(t, target.Dev, "UD QPs, address handles, GRHs, multicast")
	})
}

// An AH belongs to its PD, closes in any order with others, and closes once.
func TestAHClose(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.Must[*ibverbs.PD](t)(target.Dev.AllocPD())
		attr := verbstest.AHAttr(t, target, target.Addr)
		ah := verbstest.Must[*ibverbs.AH](t)(pd.CreateAH(attr))
		if ah.Attr() != attr || ah.PD() != pd {
			t.Errorf("%+v of %v, want %+v of %v", ah.Attr(), ah.PD(), attr, pd)
		}
		refused(t, "PD with an AH", pd.Close(), syscall.EBUSY, "1 AH ("+ah.String()+")")
		for range 2 {
			if err := errors.Join(ah.Close(), pd.Close()); err != nil {
				t.Error(err)
			}
		}
		wc := ibverbs.WC{Opcode: ibverbs.WCRecv}
		_, create := pd.CreateAH(attr)
		_, fromWC := pd.CreateAHFromWC(1, &wc, make([]byte, ibverbs.GRHSize))
		for name, err := range map[string]error{"CreateAH": create, "CreateAHFromWC": fromWC} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s after Close: %v, want os.ErrClosed", name, err)
			}
		}
	}, verbstest.Datagrams)
}

// An AH that is closed while others post to it: each post works, or says so,
// and none uses an AH that has gone.
func TestAHCloseRaces(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		attr := verbstest.AHAttr(t, target, target.Addr)
		for range 20 {
			e := verbstest.UD(t, target, verbstest.PairCap)
			ah := verbstest.Must[*ibverbs.AH](t)(e.PD.CreateAH(attr))
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for {
						_, err := e.QP.PostSend([]ibverbs.SendWR{{
							Opcode: ibverbs.WRSend, Inline: []byte{1}, AH: ah, RemoteQPN: e.QP.QPN(), RemoteQKey: verbstest.QKey,
						}})
						if errors.Is(err, os.ErrClosed) {
							return
						}
						if err != nil && !errors.Is(err, ibverbs.ErrQueueFull) {
							t.Error(err)
							return
						}
					}
				})
			}
			for range 2 {
				wg.Go(func() {
					if err := ah.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
	}, verbstest.Datagrams)
}

// What InitAHFromWC would misread is refused before C reads it.
func TestInitAHErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		own := ibverbs.GIDFromAddr(target.Addr)
		grh := ibverbs.GRH{Version: 4, NextHeader: ibverbs.NextHeaderUDP, HopLimit: 3, SGID: own, DGID: own}
		good := verbstest.Must[[]byte](t)(grh.AppendBinary(nil))
		wc := ibverbs.WC{Opcode: ibverbs.WCRecv, Flags: ibverbs.WCGRH}
		header := func(change func(*ibverbs.GRH)) []byte {
			g := grh
			change(&g)
			return verbstest.Must[[]byte](t)(g.AppendBinary(nil))
		}
		for _, tc := range []struct {
			name string
			port int
			wc   *ibverbs.WC
			grh  []byte
			is   error
			word string
		}{
			{"no such port", 2, &wc, good, syscall.EINVAL, "port 2"},
			{"no completion", 1, nil, good, syscall.EINVAL, "no completion"},
			{"a failure", 1, &ibverbs.WC{Status: ibverbs.WCStatusWRFlushErr, Opcode: ibverbs.WCRecv, Flags: ibverbs.WCGRH}, good, syscall.EINVAL, "WR_FLUSH_ERR"},
			{"a send", 1, &ibverbs.WC{Opcode: ibverbs.WCSend, Flags: ibverbs.WCGRH}, good, syscall.EINVAL, "SEND"},
			{"too short", 1, &wc, good[:39], syscall.EINVAL, "39 bytes"},
			{"nothing", 1, &wc, nil, syscall.EINVAL, "0 bytes"},
			{"no header", 1, &wc, make([]byte, 40), syscall.EINVAL, "neither"},
			{"multicast", 1, &wc, header(func(g *ibverbs.GRH) { g.DGID = ibverbs.GID{10: 0xff, 11: 0xff, 12: 239, 15: 1} }), syscall.EINVAL, "multicast"},
			{"TCP", 1, &wc, header(func(g *ibverbs.GRH) { g.NextHeader = 6 }), syscall.EINVAL, "next header 6"},
			{"not ours", 1, &wc, header(func(g *ibverbs.GRH) { g.DGID[15] ^= 0x5a }), syscall.EINVAL, "GID of port 1"},
		} {
			_, err := target.Dev.InitAHFromWC(tc.port, tc.wc, tc.grh)
			refused(t, tc.name, err, tc.is, tc.word)
		}
		attr, err := target.Dev.InitAHFromWC(target.Port, &wc, append(good, "the message"...))
		want := verbstest.AHAttr(t, target, target.Addr)
		if want.HopLimit = 3; err != nil || attr != want {
			t.Errorf("%+v, %v; want %+v", attr, err, want)
		}
		// InfiniBand within a subnet: no header, and the LID counts.
		local := ibverbs.WC{Opcode: ibverbs.WCRecv, SLID: 77, SL: 3, DLIDPathBits: 5}
		attr, err = target.Dev.InitAHFromWC(target.Port, &local, nil)
		if want := (ibverbs.AHAttr{DLID: 77, SL: 3, SrcPathBits: 5, Port: uint8(target.Port)}); err != nil || attr != want {
			t.Errorf("without a GRH: %+v, %v; want %+v", attr, err, want)
		}
	}, verbstest.Datagrams)
}

// A neighbour's Ethernet address is what the kernel's table says.
func TestResolveEthL2(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for _, tc := range []struct{ own, peer, mac string }{
			{target.Addr.String(), target.Addr.Next().String(), "02:00:5e:10:20:30"},
			{target.Addr6.String(), target.Addr6.Next().String(), "02:00:5e:10:20:31"},
		} {
			neighbour := []string{"neigh", "replace", tc.peer, "lladdr", tc.mac, "nud", "permanent", "dev", target.Netdev}
			if out, err := exec.Command("ip", neighbour...).CombinedOutput(); err != nil {
				t.Fatalf("ip %v: %v: %s", neighbour, err, out)
			}
			t.Cleanup(func() { exec.Command("ip", "neigh", "del", tc.peer, "dev", target.Netdev).Run() })
			gid := verbstest.Must[ibverbs.GID](t)(ibverbs.ParseGID(tc.own))
			attr := verbstest.AHAttr(t, target, gid.Addr())
			attr.DGID = verbstest.Must[ibverbs.GID](t)(ibverbs.ParseGID(tc.peer))
			mac, vlan, err := target.Dev.ResolveEthL2FromGID(attr)
			if err != nil || mac.String() != tc.mac || vlan != ibverbs.NoVLAN {
				t.Errorf("%s to %s: %v, VLAN %#x, %v; want %s", tc.own, tc.peer, mac, vlan, err, tc.mac)
			}
			attr.FlowLabel = 1 << 20
			_, _, err = target.Dev.ResolveEthL2FromGID(attr)
			refused(t, "a flow label of 21 bits", err, syscall.EINVAL, "FlowLabel")
		}
	}, verbstest.Datagrams)
}
