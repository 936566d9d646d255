package rdmacm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// TestGetAddrInfo: what is found leads there.
func TestGetAddrInfo(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		listener := thinListener(t, target)
		port := strconv.Itoa(int(listener.id.LocalPort()))
		infos, err := rdmacm.GetAddrInfo(ctx, target.Addr.String(), port, rdmacm.AddrInfo{Flags: rdmacm.AddrInfoNumericHost})
		if err != nil {
			t.Fatal(err)
		}
		info := infos[0]
		if info.Dst != listener.id.LocalAddr() || info.Family != syscall.AF_INET || info.QPType != ibverbs.QPTypeRC || info.PortSpace != rdmacm.PortSpaceTCP {
			t.Fatalf("got %+v, want the way to %v", info, listener.id.LocalAddr())
		}
		client := newThinIn(t, info.PortSpace)
		client.resolve(t, info.Dst)
		if client.id.PeerPort() != info.Dst.Port() {
			t.Errorf("the peer's port is %d, want %d", client.id.PeerPort(), info.Dst.Port())
		}
		infos, err = rdmacm.GetAddrInfo(ctx, target.Addr6.String(), "7", rdmacm.AddrInfo{
			Flags: rdmacm.AddrInfoPassive | rdmacm.AddrInfoNumericHost, PortSpace: rdmacm.PortSpaceUDP,
		})
		if err != nil || infos[0].Src != netip.AddrPortFrom(target.Addr6, 7) || infos[0].QPType != ibverbs.QPTypeUD || infos[0].Dst.IsValid() {
			t.Errorf("where to listen: %+v, %v", infos, err)
		}
		var dnsErr *net.DNSError
		if _, err := rdmacm.GetAddrInfo(ctx, "no.such.host.invalid", "7", rdmacm.AddrInfo{Flags: rdmacm.AddrInfoNumericHost}); !errors.As(err, &dnsErr) || !dnsErr.IsNotFound {
			t.Errorf("an unknown host: %v, want a *net.DNSError", err)
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := rdmacm.GetAddrInfo(cancelled, "localhost", "7", rdmacm.AddrInfo{}); !errors.Is(err, context.Canceled) {
			t.Errorf("with a cancelled context: %v", err)
		}
	})
}

// TestNewerCalls: what rdma-core 44 lacks is refused as such, or works.
func TestNewerCalls(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		p := newThin(t)
		err := p.id.ResolveAddrInfo(target.Addr.String(), "7", rdmacm.AddrInfo{Flags: rdmacm.AddrInfoDNS | rdmacm.AddrInfoNumericHost})
		_, queryErr := p.id.QueryAddrInfo()
		writeErr := p.id.WriteEvent(7, 8)
		if errors.Is(err, errors.ErrUnsupported) {
			if !errors.Is(queryErr, errors.ErrUnsupported) || !errors.Is(writeErr, errors.ErrUnsupported) {
				t.Errorf("ResolveAddrInfo: %v; QueryAddrInfo: %v; WriteEvent: %v; want all or none unsupported", err, queryErr, writeErr)
			}
			return
		}
		if err != nil || writeErr != nil {
			t.Fatalf("ResolveAddrInfo: %v; WriteEvent: %v", err, writeErr)
		}
		for range 2 {
			switch ev := p.event(t); ev.Type {
			case rdmacm.EventUser:
				if ev.Status != 7 || ev.Arg != 8 || ev.Err() != nil {
					t.Errorf("got %+v", ev)
				}
			case rdmacm.EventAddrInfoResolved:
				if infos, err := p.id.QueryAddrInfo(); err != nil || infos[0].Dst != netip.AddrPortFrom(target.Addr, 7) {
					t.Errorf("got %+v, %v", infos, err)
				}
			default:
				t.Errorf("event %v: %v", ev.Type, ev.Err())
			}
		}
	})
}

// TestNoIBAddr: only InfiniBand has InfiniBand's addresses.
func TestNoIBAddr(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		p := newThinIn(t, rdmacm.PortSpaceIB)
		gid := ibverbs.GIDFromAddr(target.Addr)
		addr := rdmacm.IBAddr{PKey: 0xffff, GID: gid, ServiceID: rdmacm.IBServiceID(rdmacm.PortSpaceIB, 7), ServiceIDMask: ^uint64(0)}
		if err := p.id.BindIBAddr(addr); !errors.Is(err, syscall.ENODEV) {
			t.Errorf("BindIBAddr: %v, want ENODEV", err)
		}
		if err := p.id.ResolveIBAddr(&addr, addr, verbstest.Limit); !errors.Is(err, syscall.ENODEV) {
			t.Errorf("ResolveIBAddr: %v, want ENODEV", err)
		}
		if p.id.LocalIBAddr() != nil || p.id.PeerIBAddr() != nil {
			t.Errorf("bound to %v, %v", p.id.LocalIBAddr(), p.id.PeerIBAddr())
		}
	})
}

// TestPortSpaceIB: IP addresses lead to a connection in the IB port space too.
func TestPortSpaceIB(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		listener := newThinIn(t, rdmacm.PortSpaceIB)
		if err := errors.Join(listener.id.BindAddr(netip.AddrPortFrom(target.Addr, 0)), listener.id.Listen(0)); err != nil {
			t.Fatal(err)
		}
		client := newThinIn(t, rdmacm.PortSpaceIB)
		client.resolve(t, listener.id.LocalAddr())
		client.createQP(t)
		if err := client.id.Connect(rdmacm.ConnParam{RetryCount: 7}); err != nil {
			t.Fatal(err)
		}
		server := &thin{listener.channel, listener.await(t, rdmacm.EventConnectRequest).ID}
		verbstest.Close(t, server.id)
		if server.id.PortSpace() != rdmacm.PortSpaceIB {
			t.Errorf("the request is in port space %v", server.id.PortSpace())
		}
		server.createQP(t)
		if err := server.id.Accept(rdmacm.ConnParam{}); err != nil {
			t.Fatal(err)
		}
		client.await(t, rdmacm.EventEstablished)
		server.await(t, rdmacm.EventEstablished)
	})
}

// TestPaths: a resolved route has a path where the transport has paths, and a
// path that is known beforehand does instead of resolving.
func TestPaths(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		l := listen(t, target, rdmacm.ListenConfig{})
		first := newThin(t)
		if len(first.id.Paths()) != 0 {
			t.Errorf("paths of a new ID: %+v", first.id.Paths())
		}
		first.resolve(t, l.Addr())
		if target.Dev.Info().Transport == ibverbs.TransportIWARP {
			if first.id.PKey() != 0 || first.id.LocalGID() != (ibverbs.GID{}) || len(first.id.Paths()) != 0 {
				t.Errorf("PKey %#x, GID %v, paths %+v; want none", first.id.PKey(), first.id.LocalGID(), first.id.Paths())
			}
		}
		second := newThin(t)
		if err := second.id.SetPath(); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("no path: %v, want EINVAL", err)
		}
		path := rdmacm.PathRecord{Reversible: true, NumPath: 1, PKey: 0xffff, MTUSelector: 2, MTU: ibverbs.MTU1024}
		if target.Dev.Info().Transport == ibverbs.TransportIB {
			paths := first.id.Paths()
			if len(paths) == 0 || paths[0].SGID != first.id.LocalGID() || paths[0].DGID != first.id.PeerGID() || paths[0].PKey != 0xffff || paths[0].MTU == 0 {
				t.Fatalf("paths %+v; the GIDs are %v and %v", paths, first.id.LocalGID(), first.id.PeerGID())
			}
			path = paths[0]
		}
		if err := second.id.SetPath(rdmacm.PathData{Flags: rdmacm.PathUsual, Path: path}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("before the address is resolved: %v, want EINVAL", err)
		}
		if err := second.id.ResolveAddr(netip.AddrPort{}, l.Addr(), verbstest.Limit); err != nil {
			t.Fatal(err)
		}
		second.await(t, rdmacm.EventAddrResolved)
		if err := second.id.SetPath(rdmacm.PathData{Flags: rdmacm.PathAlternate, Path: path}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("a path of other flags: %v, want EINVAL", err)
		}
		if err := second.id.SetPath(rdmacm.PathData{Flags: rdmacm.PathUsual, Path: path}); err != nil {
			t.Fatal(err)
		}
		second.await(t, rdmacm.EventRouteResolved)
		second.createQP(t)
		if err := second.id.Connect(rdmacm.ConnParam{RetryCount: 7}); err != nil {
			t.Fatal(err)
		}
		second.await(t, rdmacm.EventEstablished)
		server := verbstest.Must[*rdmacm.Conn](t)(l.Accept(verbstest.Context(t)))
		verbstest.Close(t, server)
	})
}

// requested connects without a QP, up to the request.
func requested(t *testing.T, target *verbstest.Target, prepare func(*rdmacm.ID)) (client, server *thin) {
	t.Helper()
	listener := thinListener(t, target)
	client = newThin(t)
	client.resolve(t, listener.id.LocalAddr())
	qp := newQP(t, client.id.DeviceName())
	prepare(client.id)
	if err := client.id.Connect(rdmacm.ConnParam{QPN: qp.QPN(), RetryCount: 7, RNRRetryCount: 7}); err != nil {
		t.Fatal(err)
	}
	server = &thin{listener.channel, listener.await(t, rdmacm.EventConnectRequest).ID}
	verbstest.Close(t, server.id)
	return client, server
}

// newQP makes a QP that no ID knows.
func newQP(t *testing.T, device string) *ibverbs.QP {
	t.Helper()
	pd, attr := newQPAttr(t, device)
	qp := verbstest.Must[*ibverbs.QP](t)(pd.CreateQP(attr))
	verbstest.Close(t, qp)
	return qp
}

// TestECE: options reach the other side, where the transport carries them.
func TestECE(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		offer := ibverbs.ECE{VendorID: 0x15b3, Options: 0x5a}
		client, server := requested(t, target, func(id *rdmacm.ID) {
			if err := id.SetLocalECE(ibverbs.ECE{}); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("without a vendor: %v, want EINVAL", err)
			}
			if err := id.SetLocalECE(offer); err != nil {
				t.Fatal(err)
			}
		})
		want, answer := offer, ibverbs.ECE{VendorID: offer.VendorID, Options: 0x52}
		iwarp := target.Dev.Info().Transport == ibverbs.TransportIWARP
		if iwarp {
			want = ibverbs.ECE{}
		}
		if got, err := server.id.RemoteECE(); err != nil || got != want {
			t.Errorf("the request's options: %+v, %v; want %+v", got, err, want)
		}
		if iwarp {
			return // it connects without the user's Establish
		}
		if err := server.id.SetLocalECE(answer); err != nil {
			t.Fatal(err)
		}
		qp := newQP(t, server.id.DeviceName())
		if err := server.id.Accept(rdmacm.ConnParam{QPN: qp.QPN()}); err != nil {
			t.Fatal(err)
		}
		client.await(t, rdmacm.EventConnectResponse)
		if got, err := client.id.RemoteECE(); err != nil || got != answer {
			t.Errorf("the answer's options: %+v, %v; want %+v", got, err, answer)
		}
	})
}

// TestRejectECE: the reason arrives, where the transport carries one.
func TestRejectECE(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		client, server := requested(t, target, func(*rdmacm.ID) {})
		if err := server.id.RejectECE([]byte("not so")); err != nil {
			t.Fatal(err)
		}
		want := rdmacm.RejectVendorOption
		if target.Dev.Info().Transport == ibverbs.TransportIWARP {
			want = rdmacm.RejectConsumer
		}
		var reject *rdmacm.RejectError
		if err := client.await(t, rdmacm.EventRejected).Err(); !errors.As(err, &reject) || reject.Reason != want || !bytes.HasPrefix(reject.PrivateData, []byte("not so")) {
			t.Errorf("got %v, want reason %v", err, want)
		}
	})
}

// TestNotify: told that data has come, the accepting side takes the connection
// for established without the peer's word.
func TestNotify(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		client, server := requested(t, target, func(*rdmacm.ID) {})
		iwarp := target.Dev.Info().Transport == ibverbs.TransportIWARP
		early := server.id.Notify(ibverbs.EventCommEst)
		if iwarp {
			if early != nil {
				t.Errorf("Notify: %v", early)
			}
			return
		}
		if !errors.Is(early, syscall.EINVAL) {
			t.Errorf("before Accept: %v, want EINVAL", early)
		}
		qp := newQP(t, server.id.DeviceName())
		if err := server.id.Accept(rdmacm.ConnParam{QPN: qp.QPN()}); err != nil {
			t.Fatal(err)
		}
		client.await(t, rdmacm.EventConnectResponse) // and no Establish
		if err := server.id.Notify(ibverbs.EventCommEst); err != nil {
			t.Fatal(err)
		}
		server.await(t, rdmacm.EventEstablished)
		if err := server.id.Notify(ibverbs.EventCommEst); !errors.Is(err, syscall.EISCONN) {
			t.Errorf("again: %v, want EISCONN", err)
		}
	})
}

// TestThinClosedMore: every method of a closed ID says so.
func TestThinClosedMore(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		p := newThin(t)
		if err := p.id.Close(); err != nil {
			t.Fatal(err)
		}
		group := netip.MustParseAddr("239.1.2.3")
		_, deviceErr := p.id.LibraryDevice()
		_, qpErr := p.id.CreateManagedQP(nil, ibverbs.QPInitAttr{})
		_, srqErr := p.id.CreateManagedSRQ(nil, ibverbs.SRQInitAttr{})
		_, eceErr := p.id.RemoteECE()
		_, queryErr := p.id.QueryAddrInfo()
		for name, err := range map[string]error{
			"LibraryDevice": deviceErr, "CreateManagedQP": qpErr, "CreateManagedSRQ": srqErr, "RemoteECE": eceErr, "QueryAddrInfo": queryErr,
			"BindIBAddr":      p.id.BindIBAddr(rdmacm.IBAddr{}),
			"ResolveIBAddr":   p.id.ResolveIBAddr(nil, rdmacm.IBAddr{}, time.Second),
			"SetPath":         p.id.SetPath(),
			"SetLocalECE":     p.id.SetLocalECE(ibverbs.ECE{}),
			"RejectECE":       p.id.RejectECE(nil),
			"Notify":          p.id.Notify(ibverbs.EventCommEst),
			"JoinMulticast":   p.id.JoinMulticast(group),
			"JoinMulticastEx": p.id.JoinMulticastEx(group, rdmacm.JoinSendOnly),
			"LeaveMulticast":  p.id.LeaveMulticast(group),
			"ResolveAddrInfo": p.id.ResolveAddrInfo("", "", rdmacm.AddrInfo{}),
			"WriteEvent":      p.id.WriteEvent(0, 0),
			"SetReuseAddr":    p.id.SetReuseAddr(true),
			"SetAFOnly":       p.id.SetAFOnly(true),
			"SetAckTimeout":   p.id.SetAckTimeout(1),
			fmt.Sprint(p.id):  p.id.Disconnect(),
		} {
			var opErr *ibverbs.OpError
			if !errors.Is(err, net.ErrClosed) || !errors.As(err, &opErr) {
				t.Errorf("%s after Close: %v, want net.ErrClosed", name, err)
			}
		}
	})
}

// TestDepthsReported: each side's events tell its own depths, whichever way
// round the kernel has them.
func TestDepthsReported(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		listener := thinListener(t, target)
		client := newThin(t)
		client.resolve(t, listener.id.LocalAddr())
		client.createQP(t)
		if err := client.id.Connect(rdmacm.ConnParam{ResponderResources: 5, InitiatorDepth: 3, RetryCount: 7}); err != nil {
			t.Fatal(err)
		}
		request := listener.await(t, rdmacm.EventConnectRequest)
		server := &thin{listener.channel, request.ID}
		verbstest.Close(t, server.id)
		if p := request.Param; p.ResponderResources != 3 || p.InitiatorDepth != 5 {
			t.Errorf("the request: %d resources, depth %d; want 3 and 5", p.ResponderResources, p.InitiatorDepth)
		}
		server.createQP(t)
		if err := server.id.Accept(rdmacm.ConnParam{ResponderResources: 2, InitiatorDepth: 4}); err != nil {
			t.Fatal(err)
		}
		// siw gives the client all the resources that it asks for, whatever the
		// server accepts with, and tells the server too what came of it.
		depth, atServer := uint8(2), [2]uint8{0, 0}
		if target.Dev.Info().Transport == ibverbs.TransportIWARP {
			depth, atServer = 3, [2]uint8{3, 4}
		}
		if p := client.await(t, rdmacm.EventEstablished).Param; p.ResponderResources != 4 || p.InitiatorDepth != depth {
			t.Errorf("at the client: %d resources, depth %d; want 4 and %d", p.ResponderResources, p.InitiatorDepth, depth)
		}
		if p := server.await(t, rdmacm.EventEstablished).Param; p.ResponderResources != atServer[0] || p.InitiatorDepth != atServer[1] {
			t.Errorf("at the server: %d resources, depth %d; want %d", p.ResponderResources, p.InitiatorDepth, atServer)
		}
	})
}
