package ibverbs

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// fill sets every field of a struct to something that is not zero.
func fill(v reflect.Value, r *rand.Rand) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), r)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), r)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1 + r.Uint64N(1<<(v.Type().Bits()-1)-1))
	default:
		panic("no value for a " + v.Kind().String())
	}
}

// What goes to C comes back the same: no field is left out or crossed.
func TestQPAttrRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var want QPAttr
		fill(reflect.ValueOf(&want).Elem(), r)
		c := qpAttrToC(&want)
		if diff := cmp.Diff(want, qpAttrFromC(&c)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func sgesOf(n int, from uint64) []SGE {
	list := make([]SGE, n)
	for i := range list {
		list[i] = SGE{Addr: from + uint64(i), Length: uint32(i + 1), LKey: uint32(from)}
	}
	return list
}

// at reads a value from C memory that a work request points to.
func at[T any](addr uintptr) T { return *(*T)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))) }

func TestSendQueuePut(t *testing.T) {
	var q sendQueue
	if err := q.alloc(QPCap{MaxSendWR: 4, MaxSendSGE: 3, MaxInlineData: 8}, 0); err != nil {
		t.Fatal(err)
	}
	defer q.free()
	wrs := []SendWR{
		{WRID: 1, Opcode: WRSendWithImm, Flags: SendSignaled, SGList: sgesOf(2, 100), ImmData: 0x01020304},
		{WRID: 2, Opcode: WRRDMARead, SGList: sgesOf(3, 200), RemoteAddr: 0xabcdef, RKey: 77},
		{WRID: 3, Opcode: WRSend, Inline: []byte("inline!!")},
		{WRID: 4, Opcode: WRAtomicCmpAndSwp, SGList: sgesOf(1, 300), RemoteAddr: 9, RKey: 8, CompareAdd: 7, Swap: 6},
		{WRID: 5, Opcode: WRSend},
	}
	if n := q.put(wrs); n != 4 {
		t.Fatalf("laid out %d, want the 4 that there is room for", n)
	}
	for i := range 4 {
		c, wr := q.wrs[i], wrs[i]
		if c.wrID != wr.WRID || WROpcode(c.opcode) != wr.Opcode {
			t.Errorf("work request %d: %+v", i, c)
		}
		next := uintptr(0)
		if i < 3 {
			next = uintptr(unsafe.Pointer(&q.wrs[i+1]))
		}
		if c.next != next {
			t.Errorf("work request %d: next %#x, want %#x", i, c.next, next)
		}
		for j, want := range wr.SGList {
			if got := at[SGE](c.sgList + uintptr(j)*unsafe.Sizeof(SGE{})); got != want || int(c.numSGE) != len(wr.SGList) {
				t.Errorf("work request %d: SGE %d of %d is %+v, want %+v", i, j, c.numSGE, got, want)
			}
		}
	}
	if imm := be32(q.wrs[0].imm); imm != 0x01020304 || q.wrs[0].flags != uint32(SendSignaled) {
		t.Errorf("immediate data %#x, flags %#x", imm, q.wrs[0].flags)
	}
	if b := at[[4]byte](uintptr(unsafe.Pointer(&q.wrs[0].imm))); b != [4]byte{1, 2, 3, 4} {
		t.Errorf("immediate data on the wire %v, want network order", b)
	}
	if q.wrs[1].remoteAddr != 0xabcdef || uint32(q.wrs[1].compareAdd) != 77 {
		t.Errorf("READ: %+v", q.wrs[1])
	}
	sge := at[SGE](q.wrs[2].sgList)
	if q.wrs[2].flags&uint32(SendInline) == 0 || sge.Length != 8 || at[[8]byte](uintptr(sge.Addr)) != [8]byte([]byte("inline!!")) {
		t.Errorf("inline: %+v, %+v", q.wrs[2], sge)
	}
	if a := q.wrs[3]; a.remoteAddr != 9 || a.atomicRKey != 8 || a.compareAdd != 7 || a.swap != 6 {
		t.Errorf("atomic: %+v", a)
	}
	// A chain that was cut short must be whole again the next time.
	if n := q.put(wrs[4:]); n != 1 || q.wrs[0].next != 0 || q.wrs[0].wrID != 5 || q.wrs[0].numSGE != 0 {
		t.Errorf("second batch: %d, %+v", n, q.wrs[0])
	}
	if q.put(wrs[:4]); q.wrs[0].next != uintptr(unsafe.Pointer(&q.wrs[1])) {
		t.Error("third batch: the chain is cut")
	}
}

// Work requests with many SGEs: as many as there is room for, never none.
func TestQueuePutSGEs(t *testing.T) {
	var s sendQueue
	var r recvQueue
	limits := QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 6, MaxRecvSGE: 6}
	if err := s.alloc(limits, 0); err != nil {
		t.Fatal(err)
	}
	defer s.free()
	if err := r.alloc(limits); err != nil {
		t.Fatal(err)
	}
	defer r.free()
	var sends []SendWR
	var recvs []RecvWR
	for i := range uint64(8) {
		sends = append(sends, SendWR{WRID: i, SGList: sgesOf(6, i*10)})
		recvs = append(recvs, RecvWR{WRID: i, SGList: sgesOf(6, i*10)})
	}
	for len(sends) > 0 {
		n := s.put(sends)
		if m := r.put(recvs); n < 1 || m != n {
			t.Fatalf("laid out %d sends and %d receives", n, m)
		}
		if s.wrs[n-1].next != 0 || r.wrs[n-1].next != 0 {
			t.Error("the chain does not end")
		}
		for i := range n {
			want := sends[i].SGList[5]
			if got := at[SGE](s.wrs[i].sgList + 5*unsafe.Sizeof(SGE{})); got != want {
				t.Errorf("send SGE %+v, want %+v", got, want)
			}
			if got := at[SGE](r.wrs[i].sgList + 5*unsafe.Sizeof(SGE{})); got != want || r.wrs[i].wrID != recvs[i].WRID {
				t.Errorf("receive SGE %+v, want %+v", got, want)
			}
		}
		sends, recvs = sends[n:], recvs[n:]
	}
}

// GUIDs and GIDs keep the byte order that the wire has.
func TestBE32(t *testing.T) {
	b := [4]byte{1, 2, 3, 4}
	if got := be32(*(*uint32)(unsafe.Pointer(&b))); got != 0x01020304 {
		t.Errorf("%#x", got)
	}
}
