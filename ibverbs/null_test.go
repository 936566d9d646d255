package ibverbs

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/internal/pollfd"
	"github.com/goverbs/goverbs/internal/verbsfake"
)

// null is a device that completes each work request as it is posted, with one
// connected QP whose sends and receives complete on two CQs.
type null struct {
	*verbsfake.Provider
	dev            *Device
	pd             *PD
	sendCQ, recvCQ *CQ
	qp             *QP
	mem            [64]byte
}

var nullCap = QPCap{MaxSendWR: 1024, MaxRecvWR: 1024, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}

func newNull(t testing.TB) *null {
	t.Helper()
	p := verbsfake.Open(t, nil)
	n := &null{Provider: p}
	n.dev = &Device{ctx: (*cContext)(p.Context()), info: DeviceInfo{Name: "null0"}}
	n.dev.attrOnce.Do(func() {})
	n.pd = &PD{dev: n.dev, pd: (*cPD)(p.PD())}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(n.dev.adopt("device"))
	n.dev.object = "null0"
	must(n.pd.adopt("PD", &n.dev.handle))
	t.Cleanup(func() {
		for _, h := range []*handle{&n.pd.handle, &n.dev.handle} {
			if err := h.close("close", nil, func() error { return nil }); err != nil {
				t.Error(err)
			}
		}
	})
	n.sendCQ, n.recvCQ = n.newCQ(t), n.newCQ(t)
	n.qp = n.newQP(t, n.sendCQ, n.recvCQ)
	return n
}

func (n *null) newCQ(t testing.TB) *CQ {
	cq := &CQ{dev: n.dev, cq: (*cCQ)(n.CQ())}
	cq.try = cq.tryEvent
	if err := cq.adopt("CQ", &n.dev.handle); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cq.close("close", cq.wake, func() error { return nil }); err != nil {
			t.Error(err)
		}
	})
	return cq
}

// withChannel gives a CQ a channel with its events.
func (n *null) withChannel(t testing.TB, cq *CQ) {
	cq.id = cqIDs.Add(1)
	c, fd := n.Channel(unsafe.Pointer(cq.cq), cq.id)
	ch := &CompChannel{dev: n.dev, cqs: make(map[uintptr]*CQ), ch: (*cCompChannel)(c)}
	if err := ch.adopt("completion channel", &n.dev.handle); err != nil {
		t.Fatal(err)
	}
	polled, err := pollfd.New(fd, "null0/channel")
	if err != nil {
		t.Fatal(err)
	}
	ch.fd, cq.channel = polled, ch
	ch.register(cq)
	t.Cleanup(func() {
		err := ch.close("close", func() { ch.fd.Close() }, func() error { return nil })
		if err := errors.Join(err, syscall.Close(fd)); err != nil {
			t.Error(err)
		}
	})
}

func (n *null) newQP(t testing.TB, sendCQ, recvCQ *CQ) *QP {
	qp := &QP{dev: n.dev, pd: n.pd, sendCQ: sendCQ, recvCQ: recvCQ, qp: (*cQP)(n.QP()), qpn: 17, typ: QPTypeRC, cap: nullCap}
	verbsfake.Connect(unsafe.Pointer(qp.qp), unsafe.Pointer(sendCQ.cq), unsafe.Pointer(recvCQ.cq), qp.qpn)
	qp.readDepth.Store(-1)
	qp.state.Store(uint32(QPStateRTS))
	err := errors.Join(qp.adopt("QP", &n.pd.handle, &sendCQ.handle, &recvCQ.handle), qp.allocQueues(&QPInitAttr{}))
	if err != nil {
		t.Fatal(err)
	}
	qp.plainOps = qp.plain()
	qp.named("null0/pd1/qp17")
	t.Cleanup(func() {
		if err := qp.close("close", nil, func() error { return nil }); err != nil {
			t.Error(err)
		}
		qp.send.free()
		qp.recv.free()
	})
	return qp
}

// c is a QP or CQ as verbsfake knows it.
func (qp *QP) c() unsafe.Pointer { return unsafe.Pointer(qp.qp) }
func (cq *CQ) c() unsafe.Pointer { return unsafe.Pointer(cq.cq) }

// sge names memory that nothing looks at.
func (n *null) sge() SGE {
	return SGE{Addr: uint64(uintptr(unsafe.Pointer(&n.mem))), Length: uint32(len(n.mem)), LKey: 5}
}

// sends are work requests of so many SGEs each, inline if there are none.
func (n *null) sends(batch, sges int, opcode WROpcode) []SendWR {
	wrs := make([]SendWR, batch)
	for i := range wrs {
		wrs[i] = SendWR{WRID: uint64(i), Opcode: opcode, Flags: SendSignaled, ImmData: 7}
		if sges == 0 {
			wrs[i].Inline = n.mem[:32]
		}
		for range sges {
			wrs[i].SGList = append(wrs[i].SGList, n.sge())
		}
	}
	return wrs
}

func (n *null) recvs(batch, sges int) []RecvWR {
	wrs := make([]RecvWR, batch)
	for i := range wrs {
		wrs[i].WRID = uint64(i)
		for range sges {
			wrs[i].SGList = append(wrs[i].SGList, n.sge())
		}
	}
	return wrs
}

// drain takes all completions of cq and sees that they are those of work
// requests 0 to want-1.
func drainNull(t *testing.T, cq *CQ, want int) {
	t.Helper()
	wcs := make([]WC, want+1)
	n, err := cq.Poll(wcs)
	if n != want || err != nil {
		t.Fatalf("%d completions, %v; want %d", n, err, want)
	}
	for i := range wcs[:n] {
		if wcs[i].WRID != uint64(i) || wcs[i].QPN != 17 || wcs[i].Status != WCStatusSuccess {
			t.Fatalf("completion %d is %+v", i, wcs[i])
		}
	}
}

// How a provider says that it refuses makes no difference to what a post says.
func TestNullConventions(t *testing.T) {
	for _, tc := range []struct {
		how  verbsfake.Convention
		err  syscall.Errno
		want error
	}{
		{verbsfake.Positive, syscall.ENOMEM, ErrQueueFull},
		{verbsfake.Negative, syscall.ENOMEM, ErrQueueFull},
		{verbsfake.Errno, syscall.ENOMEM, ErrQueueFull},
		{verbsfake.Positive, syscall.EFAULT, syscall.EFAULT},
		{verbsfake.Negative, syscall.EFAULT, syscall.EFAULT},
		{verbsfake.Errno, syscall.EFAULT, syscall.EFAULT},
		{verbsfake.Positive, syscall.EINVAL, syscall.EINVAL},
		{verbsfake.Bare, syscall.ENOMEM, syscall.EPERM}, // -1 alone cannot be told from -EPERM
		{verbsfake.Silent, syscall.ENOMEM, syscall.EIO}, // siw: no reason is given
	} {
		n := newNull(t)
		for _, after := range []int{0, 1, 31, 127, 128, 129, 200, 299} {
			verbsfake.FailAfter(n.qp.c(), after, tc.err, tc.how)
			accepted, err := n.qp.PostSend(n.sends(300, 1, WRSend))
			if accepted != after || !errors.Is(err, tc.want) {
				t.Errorf("convention %d, errno %d: PostSend accepted %d, %v; want %d, %v", tc.how, tc.err, accepted, err, after, tc.want)
			}
			drainNull(t, n.sendCQ, after)
			verbsfake.FailAfter(n.qp.c(), after, tc.err, tc.how)
			accepted, err = n.qp.PostRecv(n.recvs(300, 1))
			if accepted != after || !errors.Is(err, tc.want) {
				t.Errorf("convention %d, errno %d: PostRecv accepted %d, %v; want %d, %v", tc.how, tc.err, accepted, err, after, tc.want)
			}
			drainNull(t, n.recvCQ, after)
		}
		// What failed can be posted again.
		verbsfake.FailAfter(n.qp.c(), 0, 0, 0)
		if accepted, err := n.qp.PostSend(n.sends(300, 1, WRSend)); accepted != 300 || err != nil {
			t.Errorf("after the fault: %d, %v", accepted, err)
		}
		drainNull(t, n.sendCQ, 300)
	}
}

func TestNullPollErrors(t *testing.T) {
	n := newNull(t)
	wcs := make([]WC, 4)
	for result, want := range map[int]syscall.Errno{-int(syscall.EIO): syscall.EIO, -int(syscall.ENODEV): syscall.ENODEV} {
		verbsfake.PollResult(n.sendCQ.c(), result)
		for what, poll := range map[string]func() (int, error){
			"Poll": func() (int, error) { return n.sendCQ.Poll(wcs) },
			"Spin": func() (int, error) { return n.sendCQ.Spin(wcs, 0) },
		} {
			got, err := poll()
			if got != 0 || !errors.Is(err, want) {
				t.Errorf("%s with %d: %d, %v", what, result, got, err)
			}
			refusal(t, what, err, "ibv_poll_cq", want)
		}
	}
	verbsfake.PollResult(n.sendCQ.c(), 0)
	if _, err := n.qp.PostSend(n.sends(3, 1, WRSend)); err != nil {
		t.Fatal(err)
	}
	drainNull(t, n.sendCQ, 3)
}

// A CQ with no room: what is refused can be posted again, and what is lost
// stays lost.
func TestNullOverrun(t *testing.T) {
	n := newNull(t)
	accepted, err := n.qp.PostSend(n.sends(verbsfake.CQRoom+10, 1, WRSend))
	if accepted != verbsfake.CQRoom || !errors.Is(err, ErrQueueFull) {
		t.Errorf("accepted %d, %v; want %d, %v", accepted, err, verbsfake.CQRoom, ErrQueueFull)
	}
	drainNull(t, n.sendCQ, verbsfake.CQRoom)
	verbsfake.Overrun(n.sendCQ.c())
	accepted, err = n.qp.PostSend(n.sends(verbsfake.CQRoom+10, 1, WRSend))
	if accepted != verbsfake.CQRoom+10 || err != nil {
		t.Errorf("accepted %d, %v", accepted, err)
	}
	if lost := verbsfake.Overruns(n.sendCQ.c()); lost != 10 {
		t.Errorf("%d completions lost, not 10", lost)
	}
	drainNull(t, n.sendCQ, verbsfake.CQRoom)
}

// Each field of a work request reaches the provider, and none of the work
// request that had its place before.
func TestNullWorkRequests(t *testing.T) {
	n := newNull(t)
	verbsfake.Record(n.qp.c())
	one, two := n.sge(), SGE{Addr: 77, Length: 8, LKey: 9}
	triple := func(s SGE) [3]uint64 { return [3]uint64{s.Addr, uint64(s.Length), uint64(s.LKey)} }
	for i, wr := range []SendWR{
		{WRID: 1, Opcode: WRSend, Flags: SendSignaled, SGList: []SGE{one}},
		{WRID: 2, Opcode: WRSend, Flags: SendSignaled, SGList: []SGE{one, two}},
		{WRID: 3, Opcode: WRSend, Flags: SendSignaled, Inline: []byte("inline")},
		{WRID: 4, Opcode: WRSend, Flags: SendSignaled | SendFence, SGList: []SGE{two, one, two, one}},
		{WRID: 5, Opcode: WRSendWithImm, Flags: SendSignaled, SGList: []SGE{two}, ImmData: 0x01020304},
		{WRID: 6, Opcode: WRRDMAWrite, Flags: SendSignaled, SGList: []SGE{one}, RemoteAddr: 1 << 40, RKey: 1 << 31},
		{WRID: 7, Opcode: WRRDMAWriteWithImm, Flags: SendSignaled, SGList: []SGE{one}, RemoteAddr: 3, RKey: 4, ImmData: 5},
		{WRID: 8, Opcode: WRRDMARead, Flags: SendSignaled, SGList: []SGE{two}, RemoteAddr: 6, RKey: 7},
		{WRID: 9, Opcode: WRSend, Flags: SendSignaled},
		{WRID: 10, Opcode: WRSend, Flags: SendSignaled | SendSolicited, Inline: []byte{}},
	} {
		if _, err := n.qp.PostSend([]SendWR{wr}); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		got := verbsfake.LastSent(n.qp.c())
		flags := wr.Flags
		if wr.Inline != nil {
			flags |= SendInline
		}
		if got.WRID != wr.WRID || got.Opcode != uint32(wr.Opcode) || got.Flags != uint32(flags) || got.Imm != be32(wr.ImmData) ||
			got.RemoteAddr != wr.RemoteAddr || got.RKey != wr.RKey || got.Inline != string(wr.Inline) {
			t.Errorf("%d: the provider got %+v for %+v", i, got, wr)
		}
		if wr.Inline == nil && len(got.SGEs) != len(wr.SGList) {
			t.Fatalf("%d: the provider got %d SGEs for %d", i, len(got.SGEs), len(wr.SGList))
		}
		for k, sge := range wr.SGList {
			if got.SGEs[k] != triple(sge) {
				t.Errorf("%d: SGE %d is %v, not %v", i, k, got.SGEs[k], triple(sge))
			}
		}
	}
	wcs := make([]WC, 11)
	if got, err := n.sendCQ.Poll(wcs); got != 10 || err != nil {
		t.Errorf("%d completions, %v", got, err)
	}
}

// After Close nothing reaches the provider.
func TestNullClosed(t *testing.T) {
	n := newNull(t)
	nothing := func() error { return nil }
	if err := errors.Join(n.qp.close("close", nil, nothing), n.sendCQ.close("close", nil, nothing)); err != nil {
		t.Fatal(err)
	}
	for what, fn := range map[string]func() (int, error){
		"PostSend": func() (int, error) { return n.qp.PostSend(n.sends(1, 1, WRSend)) },
		"PostRecv": func() (int, error) { return n.qp.PostRecv(n.recvs(1, 1)) },
		"Poll":     func() (int, error) { return n.sendCQ.Poll(make([]WC, 1)) },
		"Spin":     func() (int, error) { return n.sendCQ.Spin(make([]WC, 1), 0) },
	} {
		if got, err := fn(); got != 0 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s after Close: %d, %v", what, got, err)
		}
	}
}
