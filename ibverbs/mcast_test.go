package ibverbs_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// join has target's netdev take part in a multicast group until the test ends,
// and gives the group's GID.
func join(t *testing.T, target *verbstest.Target, group netip.Addr) ibverbs.GID {
	t.Helper()
	ifi, err := net.InterfaceByName(target.Netdev)
	if err != nil {
		t.Fatal(err)
	}
	network := map[bool]string{true: "udp4", false: "udp6"}[group.Is4()]
	conn, err := net.ListenMulticastUDP(network, ifi, net.UDPAddrFromAddrPort(netip.AddrPortFrom(group, 0)))
	if err != nil {
		t.Fatal(err)
	}
	verbstest.Close(t, conn)
	return verbstest.Must[ibverbs.GID](t)(ibverbs.McastGID(group, ibverbs.GIDTypeRoCEv2))
}

// A message to a group comes to all QPs that are attached to it, and to no
// others.
func TestMcast(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for name, tc := range map[string]struct{ from, group netip.Addr }{
			"IPv4": {target.Addr, netip.MustParseAddr("239.7.7.1")},
			"IPv6": {target.Addr6, netip.MustParseAddr("ff15::7:1")},
		} {
			t.Run(name, func(t *testing.T) { testMcast(t, target, tc.from, tc.group) })
		}
		verbstest.Works(t, target.Dev, "UD QPs, address handles, GRHs, multicast")
	}, verbstest.Datagrams)
}

func testMcast(t *testing.T, target *verbstest.Target, from, group netip.Addr) {
	gid := join(t, target, group)
	sender := verbstest.UD(t, target, verbstest.PairCap)
	attr := verbstest.AHAttr(t, target, from)
	attr.DGID, attr.HopLimit, attr.TrafficClass = gid, 1, 0x20
	ah := verbstest.AH(t, sender.PD, attr)
	unicast := verbstest.AH(t, sender.PD, verbstest.AHAttr(t, target, from))

	var ends []*verbstest.End
	var mrs []*ibverbs.MR
	for range 3 {
		e := verbstest.UD(t, target, verbstest.PairCap)
		mr := verbstest.MR(t, e.PD, 1024)
		verbstest.Receive(t, e.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{mr.SGE(0, 1024)}}, ibverbs.RecvWR{SGList: []ibverbs.SGE{mr.SGE(0, 1024)}})
		ends, mrs = append(ends, e), append(mrs, mr)
	}
	for _, e := range ends[:2] {
		if err := errors.Join(e.QP.AttachMcast(gid, 0), e.QP.AttachMcast(gid, 0)); err != nil {
			t.Fatal(err)
		}
	}
	send := func(ah *ibverbs.AH, qpn uint32, text string) {
		t.Helper()
		verbstest.Post(t, sender.QP, ibverbs.SendWR{
			Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, Inline: []byte(text), AH: ah, RemoteQPN: qpn, RemoteQKey: verbstest.QKey,
		})
		verbstest.Complete(t, sender.CQ, 1)
	}
	send(ah, ibverbs.McastQPN, "to all")
	want := ibverbs.GRH{
		Version: map[bool]uint8{true: 4, false: 6}[from.Is4()], TrafficClass: 0x20, HopLimit: 1, NextHeader: ibverbs.NextHeaderUDP,
		PayloadLength: 8 + 12 + 8 + 8 + 4, SGID: ibverbs.GIDFromAddr(from), DGID: gid,
	}
	for i, e := range ends[:2] {
		wc := datagram(t, e, mrs[i], []byte("to all"), sender)
		grh, err := ibverbs.ParseGRH(mrs[i].Bytes())
		if err != nil || grh != want {
			t.Errorf("GRH %+v, %v; want %+v", grh, err, want)
		}
		_, err = target.Dev.InitAHFromWC(target.Port, &wc, mrs[i].Bytes())
		refused(t, "answering from the group", err, syscall.EINVAL, "multicast")
		_, err = grh.ReversePath(verbstest.Must[[]ibverbs.GIDEntry](t)(target.Dev.GIDTable()), target.Port, &wc)
		refused(t, "answering from the group", err, syscall.EINVAL, "multicast")
	}
	// The first one leaves. What is sent then does not come to it, nor did the
	// first message come to the third end: each gets one for itself next.
	refused(t, "Close while attached", ends[0].QP.Close(), syscall.EBUSY, "DetachMcast")
	if err := ends[0].QP.DetachMcast(gid, 0); err != nil {
		t.Fatal(err)
	}
	refused(t, "detaching again", ends[0].QP.DetachMcast(gid, 0), syscall.EINVAL, "")
	send(ah, ibverbs.McastQPN, "to one")
	datagram(t, ends[1], mrs[1], []byte("to one"), sender)
	for _, i := range []int{0, 2} {
		send(unicast, ends[i].QP.QPN(), "to you")
		datagram(t, ends[i], mrs[i], []byte("to you"), sender)
	}
	if err := ends[1].QP.DetachMcast(gid, 0); err != nil {
		t.Fatal(err)
	}
}

func TestMcastErrors(t *testing.T) {
	group := verbstest.Must[ibverbs.GID](t)(ibverbs.McastGID(netip.MustParseAddr("239.7.7.2"), ibverbs.GIDTypeRoCEv2))
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		e := verbstest.UD(t, target, verbstest.PairCap)
		own := ibverbs.GIDFromAddr(target.Addr)
		refused(t, "attaching to an address", e.QP.AttachMcast(own, 0), syscall.EINVAL, "no multicast group")
		refused(t, "detaching from an address", e.QP.DetachMcast(own, 0), syscall.EINVAL, "no multicast group")
		a, _ := verbstest.Pair(t, target, verbstest.PairCap, nil)
		refused(t, "attaching an RC QP", a.QP.AttachMcast(group, 0), syscall.EINVAL, "")
		qp := verbstest.Must[*ibverbs.QP](t)(e.PD.CreateQP(ibverbs.QPInitAttr{Type: ibverbs.QPTypeUD, SendCQ: e.CQ, RecvCQ: e.CQ, Cap: verbstest.PairCap}))
		if err := qp.Close(); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{"AttachMcast": qp.AttachMcast(group, 0), "DetachMcast": qp.DetachMcast(group, 0)} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s after Close: %v, want os.ErrClosed", name, err)
			}
		}
	}, verbstest.Datagrams)
	verbstest.EachLacking(t, verbstest.Datagrams, func(t *testing.T, target *verbstest.Target) {
		a, _ := verbstest.Pair(t, target, verbstest.PairCap, nil)
		refused(t, "AttachMcast", a.QP.AttachMcast(group, 0), errors.ErrUnsupported, "multicast")
		refused(t, "DetachMcast", a.QP.DetachMcast(group, 0), errors.ErrUnsupported, "multicast")
	})
}
