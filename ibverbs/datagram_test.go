package ibverbs_test

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// eachFamily runs fn for an IPv4 and an IPv6 address of target.
func eachFamily(t *testing.T, target *verbstest.Target, fn func(t *testing.T, addr netip.Addr)) {
	t.Helper()
	if !target.Addr.Is4() || !target.Addr6.IsValid() {
		t.Fatalf("%s needs an IPv4 and an IPv6 address, it has %v and %v", target.Netdev, target.Addr, target.Addr6)
	}
	t.Run("IPv4", func(t *testing.T) { fn(t, target.Addr) })
	t.Run("IPv6", func(t *testing.T) { fn(t, target.Addr6) })
}

// datagram receives one message, and sees that it is the one that was sent.
func datagram(t *testing.T, to *verbstest.End, mr *ibverbs.MR, payload []byte, from *verbstest.End) ibverbs.WC {
	t.Helper()
	wc := verbstest.Complete(t, to.CQ, 1)[0]
	if wc.Opcode != ibverbs.WCRecv || wc.SrcQP != from.QP.QPN() || wc.QPN != to.QP.QPN() || wc.Flags&ibverbs.WCGRH == 0 ||
		int(wc.ByteLen) != ibverbs.GRHSize+len(payload) {
		t.Fatalf("%+v, from QP %d to %d; want %d bytes with a GRH", wc, from.QP.QPN(), to.QP.QPN(), ibverbs.GRHSize+len(payload))
	}
	if got := mr.Bytes()[ibverbs.GRHSize:wc.ByteLen]; !bytes.Equal(got, payload) {
		t.Fatal("the data differs")
	}
	return wc
}

// Each message's GRH tells who sent it and how, and each way of answering gets
// the answer to its sender.
func TestUD(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		eachFamily(t, target, func(t *testing.T, addr netip.Addr) {
			a, b := verbstest.UD(t, target, verbstest.PairCap), verbstest.UD(t, target, verbstest.PairCap)
			amr, bmr := verbstest.MR(t, a.PD, 2048), verbstest.MR(t, b.PD, 2048)
			attr := verbstest.AHAttr(t, target, addr)
			attr.TrafficClass = verbstest.Must[uint8](t)(ibverbs.TrafficClass(46))
			there := verbstest.AH(t, a.PD, attr)

			payload := make([]byte, 1000)
			verbstest.Pattern(payload, 1)
			copy(amr.Bytes(), payload)
			for _, op := range []ibverbs.WROpcode{ibverbs.WRSend, ibverbs.WRSendWithImm} {
				verbstest.Receive(t, b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{bmr.SGE(0, 2048)}})
				verbstest.Post(t, a.QP, ibverbs.SendWR{
					WRID: 7, Opcode: op, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{amr.SGE(0, 300), amr.SGE(300, 700)}, ImmData: 0x01020304,
					AH: there, RemoteQPN: b.QP.QPN(), RemoteQKey: verbstest.QKey,
				})
				if wc := verbstest.Complete(t, a.CQ, 1)[0]; wc.WRID != 7 || wc.Opcode != ibverbs.WCSend {
					t.Errorf("send: %+v", wc)
				}
				wc := datagram(t, b, bmr, payload, a)
				if withImm := wc.Flags&ibverbs.WCWithImm != 0; withImm != (op == ibverbs.WRSendWithImm) || withImm && wc.ImmData() != 0x01020304 {
					t.Errorf("%v: flags %v, immediate %#x", op, wc.Flags, wc.ImmData())
				}
				checkGRH(t, target, bmr.Bytes(), addr, len(payload), op)
				for name, back := range answers(t, target, b, &wc, bmr.Bytes()) {
					answer(t, b, a, amr, back, name)
				}
			}
		})
		verbstest.Works(t, target.Dev, "UD QPs, address handles, GRHs, multicast")
	}, verbstest.Datagrams)
}

// checkGRH sees that a message's GRH says what its AH did.
func checkGRH(t *testing.T, target *verbstest.Target, b []byte, addr netip.Addr, payload int, op ibverbs.WROpcode) {
	t.Helper()
	grh, err := ibverbs.ParseGRH(b)
	if err != nil {
		t.Fatalf("%v in % x", err, b[:ibverbs.GRHSize])
	}
	version := map[bool]uint8{true: 4, false: 6}[addr.Is4()]
	// UDP's header, BTH, DETH, the immediate data, the message, ICRC.
	length := 8 + 12 + 8 + payload + 4
	if op == ibverbs.WRSendWithImm {
		length += 4
	}
	want := ibverbs.GRH{
		Version: version, TrafficClass: 46 << 2, NextHeader: ibverbs.NextHeaderUDP, HopLimit: hopLimit(t, target, addr), PayloadLength: uint16(length),
		SGID: ibverbs.GIDFromAddr(addr), DGID: ibverbs.GIDFromAddr(addr),
	}
	if grh != want || grh.DSCP() != 46 {
		t.Errorf("GRH %+v, want %+v", grh, want)
	}
}

// hopLimit is that of the kernel's routes, which it gives to all unicast paths.
func hopLimit(t *testing.T, target *verbstest.Target, addr netip.Addr) uint8 {
	t.Helper()
	file := "/proc/sys/net/ipv4/ip_default_ttl"
	if !addr.Is4() {
		file = "/proc/sys/net/ipv6/conf/" + target.Netdev + "/hop_limit"
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 8)
	if err != nil {
		t.Fatal(err)
	}
	return uint8(n)
}

// answers are AHs to the sender of a message, by each way of making one.
func answers(t *testing.T, target *verbstest.Target, e *verbstest.End, wc *ibverbs.WC, b []byte) map[string]*ibverbs.AH {
	t.Helper()
	fromWC := verbstest.Must[*ibverbs.AH](t)(e.PD.CreateAHFromWC(target.Port, wc, b))
	verbstest.Close(t, fromWC)
	grh := verbstest.Must[ibverbs.GRH](t)(ibverbs.ParseGRH(b))
	table := verbstest.Must[[]ibverbs.GIDEntry](t)(target.Dev.GIDTable())
	attr := verbstest.Must[ibverbs.AHAttr](t)(grh.ReversePath(table, target.Port, wc))
	init := verbstest.Must[ibverbs.AHAttr](t)(target.Dev.InitAHFromWC(target.Port, wc, b))
	if init.HopLimit = attr.HopLimit; init != attr {
		t.Errorf("InitAHFromWC says %+v, ReversePath %+v", init, attr)
	}
	return map[string]*ibverbs.AH{"CreateAHFromWC": fromWC, "ReversePath": verbstest.AH(t, e.PD, attr)}
}

// answer sends a short message from one end to another, inline.
func answer(t *testing.T, from, to *verbstest.End, mr *ibverbs.MR, ah *ibverbs.AH, text string) {
	t.Helper()
	verbstest.Receive(t, to.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{mr.SGE(1024, 1024)}})
	verbstest.Post(t, from.QP, ibverbs.SendWR{
		Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, Inline: []byte(text),
		AH: ah, RemoteQPN: to.QP.QPN(), RemoteQKey: verbstest.QKey,
	})
	verbstest.Complete(t, from.CQ, 1)
	wc := verbstest.Complete(t, to.CQ, 1)[0]
	if got := mr.Bytes()[1024+ibverbs.GRHSize : 1024+wc.ByteLen]; string(got) != text || wc.SrcQP != from.QP.QPN() {
		t.Errorf("answer %q from QP %d, want %q from %d", got, wc.SrcQP, text, from.QP.QPN())
	}
}

// A message with another Q_Key is dropped, and the next one comes.
func TestUDQKey(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		a, b := verbstest.UD(t, target, verbstest.PairCap), verbstest.UD(t, target, verbstest.PairCap)
		mr := verbstest.MR(t, b.PD, 1024)
		ah := verbstest.AH(t, a.PD, verbstest.AHAttr(t, target, target.Addr))
		for range 2 {
			verbstest.Receive(t, b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{mr.SGE(0, 1024)}})
		}
		for i, qkey := range []uint32{verbstest.QKey + 1, verbstest.QKey, verbstest.QKey} {
			verbstest.Post(t, a.QP, ibverbs.SendWR{
				Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, Inline: []byte{byte(i)},
				AH: ah, RemoteQPN: b.QP.QPN(), RemoteQKey: qkey,
			})
			verbstest.Complete(t, a.CQ, 1)
			if i > 0 {
				verbstest.Complete(t, b.CQ, 1)
				if got := mr.Bytes()[ibverbs.GRHSize]; int(got) != i {
					t.Errorf("message %d came, want %d", got, i)
				}
			}
		}
	}, verbstest.Datagrams)
}

// What would be dropped for its length, with a completion that says success, is
// refused; a message of exactly the MTU comes.
func TestUDLength(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		a, b := verbstest.UD(t, target, verbstest.PairCap), verbstest.UD(t, target, verbstest.PairCap)
		port := verbstest.Must[ibverbs.PortAttr](t)(target.Dev.QueryPort(target.Port))
		mtu := port.ActiveMTU.Bytes()
		amr, bmr := verbstest.MR(t, a.PD, mtu+1), verbstest.MR(t, b.PD, mtu+ibverbs.GRHSize)
		verbstest.Pattern(amr.Bytes(), 4)
		verbstest.Receive(t, b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{bmr.SGE(0, mtu+ibverbs.GRHSize)}})
		wr := ibverbs.SendWR{
			Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{amr.SGE(0, mtu)},
			AH: verbstest.AH(t, a.PD, verbstest.AHAttr(t, target, target.Addr)), RemoteQPN: b.QP.QPN(), RemoteQKey: verbstest.QKey,
		}
		long := wr
		long.SGList = []ibverbs.SGE{amr.SGE(0, mtu), amr.SGE(mtu, 1)}
		n, err := a.QP.PostSend([]ibverbs.SendWR{wr, long})
		if n != 1 {
			t.Errorf("%d accepted, want 1", n)
		}
		refused(t, "a long message", err, syscall.EMSGSIZE, "MTU")
		verbstest.Complete(t, a.CQ, 1)
		datagram(t, b, bmr, amr.Bytes()[:mtu], a)
	}, verbstest.Datagrams)
}

// What the port's MTU allows is asked again where a message is too long for
// what was known.
func TestUDLengthGrows(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ifi, err := net.InterfaceByName(target.Netdev)
		if err != nil {
			t.Fatal(err)
		}
		setMTU := func(mtu int) { ip(t, "link", "set", target.Netdev, "mtu", strconv.Itoa(mtu)) }
		setMTU(1500)
		t.Cleanup(func() { setMTU(ifi.MTU) })
		a, b := verbstest.UD(t, target, verbstest.PairCap), verbstest.UD(t, target, verbstest.PairCap)
		amr, bmr := verbstest.MR(t, a.PD, 2048), verbstest.MR(t, b.PD, 4096)
		verbstest.Pattern(amr.Bytes(), 5)
		verbstest.Receive(t, b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{bmr.SGE(0, 4096)}})
		wr := ibverbs.SendWR{
			Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{amr.SGE(0, 2048)},
			AH: verbstest.AH(t, a.PD, verbstest.AHAttr(t, target, target.Addr)), RemoteQPN: b.QP.QPN(), RemoteQKey: verbstest.QKey,
		}
		_, err = a.QP.PostSend([]ibverbs.SendWR{wr})
		refused(t, "2048 bytes", err, syscall.EMSGSIZE, "at most 1024")
		setMTU(4200)
		verbstest.Post(t, a.QP, wr)
		verbstest.Complete(t, a.CQ, 1)
		datagram(t, b, bmr, amr.Bytes(), a)
	}, verbstest.Datagrams)
}

// A work request whose AH is closed before it is sent ends: as failed where the
// device looks the AH up then, which is what AH's documentation warns of.
func TestAHClosedEarly(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		e := verbstest.UD(t, target, verbstest.PairCap)
		ah := verbstest.Must[*ibverbs.AH](t)(e.PD.CreateAH(verbstest.AHAttr(t, target, target.Addr)))
		// In state SQD, what is posted has to wait.
		attr := ibverbs.QPAttr{State: ibverbs.QPStateSQD, EnSQDAsyncNotify: true}
		if err := e.QP.Modify(attr, ibverbs.QPAttrState|ibverbs.QPAttrEnSQDAsyncNotify); err != nil {
			t.Fatal(err)
		}
		awaitEvent(t, target.Dev, ibverbs.EventSQDrained)
		wr := ibverbs.SendWR{WRID: 3, Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, AH: ah, RemoteQPN: e.QP.QPN(), RemoteQKey: verbstest.QKey}
		verbstest.Post(t, e.QP, wr)
		if err := ah.Close(); err != nil {
			t.Fatal(err)
		}
		if err := e.QP.Modify(ibverbs.QPAttr{State: ibverbs.QPStateRTS}, ibverbs.QPAttrState); err != nil {
			t.Fatal(err)
		}
		wr.WRID, wr.AH = 4, verbstest.AH(t, e.PD, verbstest.AHAttr(t, target, target.Addr))
		verbstest.Post(t, e.QP, wr)
		wcs := verbstest.Poll(t, e.CQ, 2)
		t.Logf("%v, then %v", wcs[0].Status, wcs[1].Status)
		// rxe says LOC_QP_OP_ERR (6.1) or WR_FLUSH_ERR (6.12); a device that has
		// copied the path says SUCCESS, and then to both.
		failures := []ibverbs.WCStatus{ibverbs.WCStatusLocQPOpErr, ibverbs.WCStatusWRFlushErr}
		first, second := wcs[0], wcs[1]
		sent := first.Status == ibverbs.WCStatusSuccess && second.Status == ibverbs.WCStatusSuccess
		failed := slices.Contains(failures, first.Status) && second.Status == ibverbs.WCStatusWRFlushErr
		if first.WRID != 3 || second.WRID != 4 || !sent && !failed {
			t.Errorf("%+v, then %+v; want both sent, or the first one failed and the second one flushed", first, second)
		}
	}, verbstest.Datagrams)
}

func TestUDErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		e := verbstest.UD(t, target, verbstest.PairCap)
		attr := verbstest.AHAttr(t, target, target.Addr)
		ah, other := verbstest.AH(t, e.PD, attr), verbstest.AH(t, verbstest.PD(t, target.Dev), attr)
		closed := verbstest.Must[*ibverbs.AH](t)(e.PD.CreateAH(attr))
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		good := ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, AH: ah, RemoteQPN: e.QP.QPN(), RemoteQKey: verbstest.QKey}
		for _, tc := range []struct {
			name   string
			change func(*ibverbs.SendWR)
			is     error
			word   string
		}{
			{"no AH", func(wr *ibverbs.SendWR) { wr.AH = nil }, syscall.EINVAL, "SendWR.AH"},
			{"a closed AH", func(wr *ibverbs.SendWR) { wr.AH = closed }, os.ErrClosed, closed.String()},
			{"another PD's AH", func(wr *ibverbs.SendWR) { wr.AH = other }, syscall.EINVAL, "another PD"},
			{"a QPN of 25 bits", func(wr *ibverbs.SendWR) { wr.RemoteQPN = 1 << 24 }, syscall.EINVAL, "24 bits"},
			{"WRITE", func(wr *ibverbs.SendWR) { wr.Opcode = ibverbs.WRRDMAWrite }, syscall.EINVAL, "UD QPs have no"},
		} {
			wr := good
			tc.change(&wr)
			n, err := e.QP.PostSend([]ibverbs.SendWR{good, wr, good})
			if n != 1 {
				t.Errorf("%s: %d accepted, want 1", tc.name, n)
			}
			refused(t, tc.name, err, tc.is, tc.word)
			verbstest.Complete(t, e.CQ, 1)
		}
		// No post keeps its AHs: the end of the test closes them.
		a, _ := verbstest.Pair(t, target, verbstest.PairCap, nil)
		good.AH = verbstest.AH(t, a.PD, attr)
		_, err := a.QP.PostSend([]ibverbs.SendWR{good})
		refused(t, "an AH on an RC QP", err, syscall.EINVAL, "for UD QPs")
	}, verbstest.Datagrams)
}

// Posting datagrams allocates nothing, whether to one AH or to several.
func TestUDNoAllocation(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		e := verbstest.UD(t, target, verbstest.PairCap)
		mr := verbstest.MR(t, e.PD, 1024)
		var sends []ibverbs.SendWR
		var recvs []ibverbs.RecvWR
		for range 4 {
			ah := verbstest.AH(t, e.PD, verbstest.AHAttr(t, target, target.Addr))
			sends = append(sends, ibverbs.SendWR{
				Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{mr.SGE(0, 64)},
				AH: ah, RemoteQPN: e.QP.QPN(), RemoteQKey: verbstest.QKey,
			})
			recvs = append(recvs, ibverbs.RecvWR{SGList: []ibverbs.SGE{mr.SGE(512, 512)}})
		}
		wcs := make([]ibverbs.WC, 8)
		allocs := testing.AllocsPerRun(50, func() {
			if n, err := e.QP.PostRecv(recvs); n != len(recvs) {
				t.Fatal(err)
			}
			if n, err := e.QP.PostSend(sends); n != len(sends) {
				t.Fatal(err)
			}
			for got := 0; got < len(sends)+len(recvs); {
				n, err := e.CQ.Spin(wcs, verbstest.Limit)
				if err != nil {
					t.Fatal(err)
				}
				got += n
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations a round, want 0", allocs)
		}
	}, verbstest.Datagrams)
}

// The same through ibv_wr_*.
func TestUDSendOps(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		eachFamily(t, target, func(t *testing.T, addr netip.Addr) {
			a, b := verbstest.NewEnd(t, target, verbstest.PairCap), verbstest.UD(t, target, verbstest.PairCap)
			a.CreateUD(t, target, ibverbs.QPInitAttr{Cap: verbstest.PairCap, SendOps: ibverbs.SendOpSend | ibverbs.SendOpSendWithImm})
			mr := verbstest.MR(t, b.PD, 2048)
			answer(t, a, b, mr, verbstest.AH(t, a.PD, verbstest.AHAttr(t, target, addr)), "through ibv_wr_*")
		})
	}, verbstest.Datagrams)
}

// The documentation's example works.
func TestExampleDatagrams(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for _, addr := range []netip.Addr{target.Addr, target.Addr6} {
			answer, err := ask(verbstest.Context(t), target.Dev, addr, "well?")
			if want := `you asked "well?"`; err != nil || answer != want {
				t.Errorf("from %v: %q, %v; want %q", addr, answer, err, want)
			}
		}
	}, verbstest.Datagrams)
}
