package ibverbs

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// What a QP is created with goes to C whole, each field with its bit in
// comp_mask, and only then. The objects are seen to by createQP.
func TestQPInitAttrRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		var want QPInitAttr
		for _, field := range []any{
			&want.Type, &want.Cap, &want.SigAll, &want.SendOps, &want.CreateFlags, &want.MaxTSOHeader, &want.SourceQPN,
		} {
			if r.IntN(3) > 0 {
				fill(reflect.ValueOf(field).Elem(), r)
			}
		}
		if want.SourceQPN != 0 {
			want.CreateFlags |= QPCreateSourceQPN
		}
		c := qpInitAttrToC(&want)
		if diff := cmp.Diff(want, qpInitAttrFromC(&c)); diff != "" {
			t.Fatal(diff)
		}
		extended := want.SendOps != 0 || want.CreateFlags != 0 || want.MaxTSOHeader != 0
		if basic := c.comp_mask == 1; basic == extended || want.extended() != extended {
			t.Fatalf("comp_mask %#x for %+v", c.comp_mask, want)
		}
	}
}

func TestQPExtras(t *testing.T) {
	attr := QPInitAttr{SendOps: SendOpSend, CreateFlags: QPCreateScatterFCS, MaxTSOHeader: 60, SourceQPN: 5}
	if got, want := attr.extras(), "SendOps SEND, CreateFlags SCATTER_FCS, MaxTSOHeader 60, SourceQPN 5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRateLimitRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var want QPRateLimit
	fill(reflect.ValueOf(&want).Elem(), r)
	c := rateLimitToC(want)
	if diff := cmp.Diff(want, rateLimitFromC(&c)); diff != "" {
		t.Error(diff)
	}
}

func TestECERoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var want ECE
	fill(reflect.ValueOf(&want).Elem(), r)
	c := eceToC(want)
	if diff := cmp.Diff(want, eceFromC(&c)); diff != "" {
		t.Error(diff)
	}
}

// Operands that only some opcodes have, where C looks for them.
func TestSendQueuePutOperands(t *testing.T) {
	var q sendQueue
	if err := q.alloc(QPCap{MaxSendWR: 8, MaxSendSGE: 1}, 32); err != nil {
		t.Fatal(err)
	}
	defer q.free()
	header := []byte("ethernet, IP and TCP headers")
	wrs := []SendWR{
		{Opcode: WRTSO, TSO: &TSOHeader{Header: header, MSS: 1460}, SGList: sgesOf(1, 5)},
		{Opcode: WRFlush, RemoteAddr: 1, RKey: 2, Flush: &Flush{Length: 1 << 40, Placement: FlushPersistent, Selectivity: FlushMR}},
		{Opcode: WRAtomicWrite, RemoteAddr: 3, RKey: 4, Inline: []byte("8 bytes!")},
		{Opcode: WRSend, RemoteSRQN: 77},
	}
	if n := q.put(wrs); n != len(wrs) {
		t.Fatalf("laid out %d of %d", n, len(wrs))
	}
	tso := q.wrs[0]
	copied := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&tso.mw))), len(header))
	if string(copied) != string(header) {
		t.Errorf("TSO header %q", copied)
	}
	if sizes := *(*[2]uint16)(unsafe.Pointer(&tso.mwRKey)); sizes != [2]uint16{uint16(len(header)), 1460} {
		t.Errorf("TSO header size and MSS %v", sizes)
	}
	if tso.numSGE != 1 || at[SGE](tso.sgList) != wrs[0].SGList[0] {
		t.Errorf("TSO data %+v", tso)
	}
	flush := q.wrs[1]
	if how := *(*[2]uint8)(unsafe.Pointer(&flush.mwRKey)); flush.mw != 1<<40 || how != [2]uint8{uint8(FlushPersistent), uint8(FlushMR)} {
		t.Errorf("FLUSH %+v", flush)
	}
	if flush.remoteAddr != 1 || uint32(flush.compareAdd) != 2 {
		t.Errorf("FLUSH goes to %+v", flush)
	}
	write := q.wrs[2]
	if sge := at[SGE](write.sgList); at[[8]byte](uintptr(sge.Addr)) != [8]byte([]byte("8 bytes!")) || write.remoteAddr != 3 || uint32(write.compareAdd) != 4 {
		t.Errorf("ATOMIC_WRITE %+v", write)
	}
	if q.wrs[3].remoteSRQN != 77 {
		t.Errorf("XRC: %+v", q.wrs[3])
	}
}

// The posting structures stay small: they are copied in bulk.
func TestSendWRSize(t *testing.T) {
	if n := unsafe.Sizeof(SendWR{}); n > 168 {
		t.Errorf("a SendWR has %d bytes", n)
	}
}

// What PostSend refuses by QP type and creation, for every opcode there is.
func TestCheckOpcode(t *testing.T) {
	all := SendOps(1<<13 - 1)
	types := map[QPType]string{
		QPTypeRC:        "RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV FLUSH ATOMIC_WRITE",
		QPTypeXRCSend:   "RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV FLUSH ATOMIC_WRITE",
		QPTypeUC:        "RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM LOCAL_INV BIND_MW SEND_WITH_INV",
		QPTypeUD:        "SEND SEND_WITH_IMM TSO",
		QPTypeRawPacket: "SEND TSO",
		QPTypeXRCRecv:   "",
		QPTypeDriver:    "RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV TSO FLUSH ATOMIC_WRITE",
	}
	for typ, want := range types {
		if got := allowed(&QP{typ: typ, ops: all, send: sendQueue{slot: 60}}); got != want {
			t.Errorf("%v QPs have %q, want %q", typ, got, want)
		}
	}
	if got := allowed(&QP{typ: QPTypeRC}); got != "RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV" {
		t.Errorf("ibv_post_send has %q", got)
	}
	if got := allowed(&QP{typ: QPTypeRC, siw: true}); got != "RDMA_WRITE SEND RDMA_READ SEND_WITH_INV" {
		t.Errorf("siw has %q", got)
	}
	for bit := SendOps(1); bit < all; bit <<= 1 {
		if got := allowed(&QP{typ: QPTypeDriver, ops: bit, send: sendQueue{slot: 60}}); got != bit.String() {
			t.Errorf("a QP with SendOps %v posts %q", bit, got)
		}
	}
}

// allowed are the opcodes that qp's checks let through.
func allowed(qp *QP) string {
	var s string
	for op := range WROpcode(64) {
		if qp.checkOpcode(op) == nil {
			s += " " + op.String()
		}
	}
	return strings.TrimPrefix(s, " ")
}
