package ibverbs

import (
	"errors"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// bytesOf makes numbers of fuzzed bytes; zeros where there are no more.
type bytesOf struct {
	data []byte
	ahs  []*AH
}

func (b *bytesOf) next() int {
	if len(b.data) == 0 {
		return 0
	}
	v := b.data[0]
	b.data = b.data[1:]
	return int(v)
}

func (b *bytesOf) uint32() uint32 {
	return uint32(b.next())<<24 | uint32(b.next())<<16 | uint32(b.next())<<8 | uint32(b.next())
}

func (b *bytesOf) uint64() uint64 { return uint64(b.uint32())<<32 | uint64(b.uint32()) }

// fuzzedQP is a QP that has queues of the sizes that the bytes ask for, and no
// device.
func fuzzedQP(t *testing.T, b *bytesOf) *QP {
	cap := QPCap{
		MaxSendWR: uint32(b.next()), MaxRecvWR: uint32(b.next()),
		MaxSendSGE: uint32(b.next() % 33), MaxRecvSGE: uint32(b.next() % 33), MaxInlineData: uint32(b.next()),
	}
	types := []QPType{QPTypeRC, QPTypeUC, QPTypeUD, QPTypeRawPacket, QPTypeXRCSend}
	qp := &QP{pd: &PD{}, typ: types[b.next()%len(types)], cap: cap, siw: b.next()%8 == 1}
	qp.ud.mtu.Store(int64(b.next() * 16))
	b.ahs = []*AH{{pd: qp.pd, ah: &cAH{}}, {pd: qp.pd, ah: &cAH{}}, {pd: &PD{}}, nil, nil}
	if b.next()%2 == 1 {
		qp.ops = SendOps(b.uint32())
	}
	qp.limits.MaxSGERD = b.next() % 8
	qp.readDepth.Store(int32(b.next()%3) - 1)
	if err := qp.send.alloc(cap, b.next()%64); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(qp.send.free)
	if err := qp.recv.alloc(cap); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(qp.recv.free)
	return qp
}

func (b *bytesOf) sges() []SGE {
	list := make([]SGE, b.next()%40)
	for i := range list {
		list[i] = SGE{Addr: uint64(i), Length: uint32(b.next()), LKey: uint32(len(b.data))}
		if list[i].Length == 0xff {
			list[i] = outside
		}
	}
	return list
}

func (b *bytesOf) blob(most int) []byte {
	blob := make([]byte, b.next()%(most+1))
	for i := range blob {
		blob[i] = byte(b.next())
	}
	return blob
}

// sends makes work requests until the bytes end.
func (b *bytesOf) sends(qp *QP) (wrs []SendWR) {
	for len(b.data) > 0 && len(wrs) < 300 {
		wr := SendWR{WRID: uint64(len(wrs)), Opcode: WROpcode(b.next() % 20), Flags: SendFlags(b.next())}
		switch b.next() % 3 {
		case 0:
			wr.SGList = b.sges()
		case 1:
			wr.Inline = b.blob(255)
		}
		wr.ImmData, wr.InvalidateRKey, wr.RKey = b.uint32(), b.uint32(), b.uint32()
		wr.RemoteAddr, wr.CompareAdd, wr.Swap = b.uint64()&^uint64(b.next()%8), b.uint64(), b.uint64()
		if qp.typ == QPTypeUD || b.next() == 1 {
			wr.AH, wr.RemoteQPN, wr.RemoteQKey = b.ahs[b.next()%len(b.ahs)], b.uint32()>>7, b.uint32()
		}
		if b.next()%4 > 0 {
			wr.TSO = &TSOHeader{Header: b.blob(80), MSS: uint16(b.uint32())}
			wr.Flush = &Flush{Length: b.uint64(), Placement: FlushPlacement(b.next()), Selectivity: FlushSelectivity(b.next())}
		}
		wrs = append(wrs, wr)
	}
	return wrs
}

// FuzzWorkRequests: any work requests, on any QP, are refused with an errno or
// laid out for C as they are, each in its own room, in chains that end.
func FuzzWorkRequests(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x04\x04\x03\x03\x10\x00\x00\x00\x00\x04\x02\x00" + "\x02\x02\x01\x05hello" + "some more work requests of any kind"))
	f.Add([]byte("\x80\xff\x20\x20\xff\x04\x00\x00\x00\x00\x02\x3f" + "\x0a\x00\x00\x02\x09\x08" + "\x0e\x01\x02 flush \x0f\x02\x01\x08atomic!!"))
	f.Add([]byte("\x08\x08\x02\x02\x20\x02\x00\xff\x00\x02\x00\x10" + "\x03\x02\x00\x01\x40 datagrams to whoever listens, with and without immediate data"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &bytesOf{data: data}
		qp := fuzzedQP(t, b)
		wrs := b.sends(qp)
		for len(wrs) > 0 {
			good, bad := qp.checkSends(wrs)
			var errno syscall.Errno
			if (bad == nil) != (good == len(wrs)) || bad != nil && !errors.As(bad, &errno) {
				t.Fatalf("%d of %d are good: %v", good, len(wrs), bad)
			}
			checkSendChains(t, &qp.send, wrs[:good])
			checkRecvChains(t, qp, wrs[:good])
			qp.releaseAHs()
			wrs = wrs[min(good+1, len(wrs)):]
		}
	})
}

// checkSendChains lays work requests out as PostSend does.
func checkSendChains(t *testing.T, q *sendQueue, wrs []SendWR) {
	for len(wrs) > 0 {
		n := 1
		if !wrs[0].Opcode.alone() { // those need objects of C's
			n = q.put(wrs)
			checkSendChain(t, q, wrs, n)
		}
		wrs = wrs[n:]
	}
}

// checkSendChain compares what put laid out with the work requests.
func checkSendChain(t *testing.T, q *sendQueue, wrs []SendWR, n int) {
	if n < 1 || n > len(wrs) {
		t.Fatalf("laid out %d of %d", n, len(wrs))
	}
	for i := range n {
		wr, c := &wrs[i], &q.wrs[i]
		checkNext(t, c.next, uintptr(unsafe.Pointer(c))+unsafe.Sizeof(*c), i == n-1)
		flags, list := wr.Flags, wr.SGList
		if wr.Inline != nil {
			flags |= SendInline
			sge := at[SGE](c.sgList)
			if int(sge.Length) != len(wr.Inline) || c.numSGE != 1 || sge.Length > 0 && string(bytesAt(sge)) != string(wr.Inline) {
				t.Fatalf("work request %d: %+v, want %q inline", i, sge, wr.Inline)
			}
		} else {
			checkSGList(t, c.sgList, c.numSGE, list)
		}
		if c.wrID != wr.WRID || WROpcode(c.opcode) != wr.Opcode || SendFlags(c.flags) != flags {
			t.Fatalf("work request %d: %+v, want %+v", i, *c, *wr)
		}
		checkOperands(t, c, wr)
	}
}

// checkOperands looks at what depends on the opcode.
func checkOperands(t *testing.T, c *cSendWR, wr *SendWR) {
	rkey := *(*uint32)(unsafe.Pointer(&c.compareAdd))
	imm, remote := uint32(0), [2]uint64{wr.RemoteAddr, uint64(wr.RKey)}
	got := [2]uint64{c.remoteAddr, uint64(rkey)}
	switch wr.Opcode {
	case WRSendWithImm, WRRDMAWriteWithImm:
		imm = be32(wr.ImmData)
	case WRSendWithInv, WRLocalInv:
		imm, remote, got = wr.InvalidateRKey, [2]uint64{}, [2]uint64{}
	case WRAtomicCmpAndSwp, WRAtomicFetchAdd:
		got[1] = uint64(c.atomicRKey)
		if c.compareAdd != wr.CompareAdd || c.swap != wr.Swap {
			t.Fatalf("operands %#x and %#x, want %#x and %#x", c.compareAdd, c.swap, wr.CompareAdd, wr.Swap)
		}
	case WRFlush:
		if how := *(*[2]uint8)(unsafe.Pointer(&c.mwRKey)); c.mw != wr.Flush.Length ||
			how != [2]uint8{uint8(wr.Flush.Placement), uint8(wr.Flush.Selectivity)} {
			t.Fatalf("%+v, want %+v", *c, *wr.Flush)
		}
	case WRTSO:
		how := *(*[2]uint16)(unsafe.Pointer(&c.mwRKey))
		header := bytesAt(SGE{Addr: c.mw, Length: uint32(how[0])})
		if string(header) != string(wr.TSO.Header) || how[1] != wr.TSO.MSS {
			t.Fatalf("header %q, MSS %d, want %+v", header, how[1], *wr.TSO)
		}
	}
	if wr.AH != nil {
		want := cUD{uintptr(unsafe.Pointer(wr.AH.ah)), wr.RemoteQPN, wr.RemoteQKey}
		if ud := *(*cUD)(unsafe.Pointer(&c.remoteAddr)); ud != want {
			t.Fatalf("%v: to %+v, want %+v", wr.Opcode, ud, want)
		}
		got = remote
	}
	if c.imm != imm || got != remote {
		t.Fatalf("%v: immediate %#x, remote %#x; want %#x, %#x", wr.Opcode, c.imm, got, imm, remote)
	}
}

// checkRecvChains posts the same lists as receives.
func checkRecvChains(t *testing.T, qp *QP, sends []SendWR) {
	var wrs []RecvWR
	for _, wr := range sends {
		wrs = append(wrs, RecvWR{WRID: wr.WRID, SGList: wr.SGList})
	}
	good, bad := checkRecvs(wrs, int(qp.cap.MaxRecvSGE))
	if (bad == nil) != (good == len(wrs)) || bad != nil && !errors.Is(bad, syscall.EINVAL) {
		t.Fatalf("%d of %d are good: %v", good, len(wrs), bad)
	}
	for at := 0; at < good; {
		n := qp.recv.put(wrs[at:good])
		if n < 1 || n > good-at {
			t.Fatalf("laid out %d of %d", n, good-at)
		}
		for i := range n {
			c := &qp.recv.wrs[i]
			checkNext(t, c.next, uintptr(unsafe.Pointer(c))+unsafe.Sizeof(*c), i == n-1)
			checkSGList(t, c.sgList, c.numSGE, wrs[at+i].SGList)
			if c.wrID != wrs[at+i].WRID {
				t.Fatalf("receive %d: %+v, want %+v", i, *c, wrs[at+i])
			}
		}
		at += n
	}
}

func checkNext(t *testing.T, next, want uintptr, last bool) {
	if last {
		want = 0
	}
	if next != want {
		t.Fatalf("next is %#x, want %#x", next, want)
	}
}

func checkSGList(t *testing.T, addr uintptr, n int32, want []SGE) {
	got := make([]SGE, n)
	for i := range got {
		got[i] = at[SGE](addr + uintptr(i)*unsafe.Sizeof(SGE{}))
	}
	if len(got)+len(want) > 0 && !cmp.Equal(got, want) {
		t.Fatal(cmp.Diff(want, got))
	}
}

// bytesAt reads C memory.
func bytesAt(sge SGE) []byte {
	b := make([]byte, sge.Length)
	for i := range b {
		b[i] = at[byte](uintptr(sge.Addr) + uintptr(i))
	}
	return b
}
