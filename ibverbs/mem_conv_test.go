package ibverbs

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// Every field of what goes to C of windows, device memory and domains.
func TestMemToC(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var b MWBind
		for _, v := range []any{&b.Addr, &b.Length, &b.Access} {
			fill(reflect.ValueOf(v).Elem(), r)
		}
		mr := &cMR{}
		c := mwBindInfoToC(mr, &b)
		got := MWBind{Addr: uint64(c.addr), Length: uint64(c.length), Access: Access(c.mw_access_flags)}
		if diff := cmp.Diff(b, got); diff != "" || c.mr != mr {
			t.Fatal(diff, c.mr)
		}

		var h DMAHInitAttr
		fill(reflect.ValueOf(&h).Elem(), r)
		d := dmahInitAttrToC(&h)
		if diff := cmp.Diff(h, DMAHInitAttr{DMAHMask(d.comp_mask), uint32(d.cpu_id), uint8(d.ph), TPHMemType(d.tph_mem_type)}); diff != "" {
			t.Fatal(diff)
		}

		opts := DMOptions{LogAlign: r.Uint32()}
		length := r.Int()
		if a := allocDMAttrToC(length, opts); int(a.length) != length || uint32(a.log_align_req) != opts.LogAlign || a.comp_mask != 0 {
			t.Fatalf("%+v of %d, %+v", a, length, opts)
		}
	}
	pd, td := &cPD{}, &cTD{}
	if a := parentDomainAttrToC(pd, td); a.pd != pd || a.td != td || a.comp_mask != 0 || a.alloc != nil || a.free != nil || a.pd_context != nil {
		t.Errorf("parent domain %+v", a)
	}
}

// What ibv_reg_mr_ex gets to see of memory, of a dma-buf and of a DMA handle.
func TestMRInitAttrToC(t *testing.T) {
	mem := make([]byte, 64)
	buf := &buffer{data: mem}
	handle := cDMAH(unsafe.Pointer(&mem[0])) // anything that is not nil
	r := &region{buf: buf, addr: 0x7000, length: 64, access: AccessLocalWrite | AccessRemoteRead}
	c := mrInitAttrToC(r, &MRInitAttr{Buf: mem, DMAH: &DMAH{dmah: handle}})
	if c.comp_mask != 1<<0|1<<1|1<<4 || c.length != 64 || Access(c.access) != r.access || c.iova != 0x7000 ||
		uintptr(c.addr) != buf.addr() || cDMAH(c.dmah) != handle || c.fd != 0 || c.fd_offset != 0 || c.buf != nil {
		t.Errorf("memory: %+v", c)
	}
	c = mrInitAttrToC(&region{addr: 5, length: 7}, &MRInitAttr{DMABuf: &DMABuf{FD: 9, Offset: 11, Length: 7}})
	if c.comp_mask != 1<<0|1<<2|1<<3 || c.length != 7 || c.iova != 5 || c.fd != 9 || c.fd_offset != 11 || c.addr != 0 || c.dmah != nil {
		t.Errorf("dma-buf: %+v", c)
	}
	// As rdma-core 59 to 64 lay it out on a 64-bit machine.
	if unsafe.Sizeof(c) != 72 || unsafe.Offsetof(c.addr) != 32 || unsafe.Offsetof(c.fd_offset) != 48 || unsafe.Offsetof(c.buf) != 64 {
		t.Errorf("struct gv_mr_init_attr has %d bytes", unsafe.Sizeof(c))
	}
	var d = dmahInitAttrToC(&DMAHInitAttr{})
	if unsafe.Sizeof(d) != 12 || unsafe.Offsetof(d.ph) != 8 || unsafe.Offsetof(d.tph_mem_type) != 9 {
		t.Errorf("struct gv_dmah_init_attr has %d bytes", unsafe.Sizeof(d))
	}
}

// A bind's work request, in the slot of an inline send, leaves nothing of that.
func TestPutBind(t *testing.T) {
	var q sendQueue
	if err := q.alloc(QPCap{MaxSendWR: 2, MaxSendSGE: 1, MaxInlineData: 8}, 0); err != nil {
		t.Fatal(err)
	}
	defer q.free()
	q.put([]SendWR{{Opcode: WRSendWithImm, ImmData: 1, Inline: []byte("x"), RemoteAddr: 5, RKey: 6}})
	mw, mr := &cMW{}, &cMR{}
	bind := &MWBind{Addr: 0x1000, Length: 0x2000, Access: AccessRemoteRead}
	q.putBind(&SendWR{WRID: 3, Opcode: WRBindMW, Flags: SendSignaled, Bind: bind}, mw, mr, 0x501)
	c := q.wrs[0]
	if c.wrID != 3 || c.next != 0 || c.numSGE != 0 || WROpcode(c.opcode) != WRBindMW || c.flags != uint32(SendSignaled) || c.imm != 0 {
		t.Errorf("%+v", c)
	}
	if c.mw != uint64(uintptr(unsafe.Pointer(mw))) || c.mr != uint64(uintptr(unsafe.Pointer(mr))) || c.mwRKey != 0x501 ||
		c.mwAddr != bind.Addr || c.mwLength != bind.Length || Access(c.mwAccess) != bind.Access {
		t.Errorf("%+v", c)
	}
	wrs := []SendWR{{Opcode: WRSend}, {Opcode: WRBindMW}, {Opcode: WRSend}}
	if n := q.put(wrs); n != 1 {
		t.Errorf("laid out %d with a bind in second place", n)
	}
}

func TestIncRKey(t *testing.T) {
	for key, want := range map[uint32]uint32{0: 1, 0x100: 0x101, 0x1ff: 0x100, math.MaxUint32: 0xffffff00} {
		if got := IncRKey(key); got != want {
			t.Errorf("after %#x: %#x, want %#x", key, got, want)
		}
	}
}

// Where memory is registered.
func TestIOVA(t *testing.T) {
	page := uint64(os.Getpagesize())
	mapped, err := mapBuffer(int(page), BufferOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer mapped.free()
	inside := &buffer{data: mapped.data[24:]}
	own := uint64(mapped.addr())
	for _, tc := range []struct {
		name   string
		buf    *buffer
		iova   uint64
		access Access
		want   uint64
		word   string
	}{
		{"own", mapped, 0, 0, own, ""},
		{"own, within a page", inside, 0, 0, own + 24, ""},
		{"chosen", mapped, 7 * page, 0, 7 * page, ""},
		{"chosen, within a page", inside, 7*page + 24, 0, 7*page + 24, ""},
		{"zero", mapped, 0, AccessZeroBased, 0, ""},
		{"zero, within a page", inside, 0, AccessZeroBased, 24, ""},
		{"another offset in the page", inside, 7 * page, 0, 0, "offset within a page must be 0x18"},
		{"both", mapped, page, AccessZeroBased, 0, "choose no iova"},
		{"overflow", mapped, math.MaxUint64 - page + 1, 0, 0, "do not fit"},
	} {
		got, err := tc.buf.iova(tc.iova, tc.access)
		if tc.word == "" && (err != nil || got != tc.want) {
			t.Errorf("%s: %#x, %v; want %#x", tc.name, got, err, tc.want)
		}
		if tc.word != "" && (!errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), tc.word)) {
			t.Errorf("%s: %#x, %v; want a word on %q", tc.name, got, err, tc.word)
		}
	}
}

// SGEs of a region, as work requests get to see them.
func TestSGE(t *testing.T) {
	mem := make([]byte, 100)
	mr := &MR{}
	mr.at.Store(&region{buf: &buffer{data: mem}, addr: 0x5000, length: 100, lkey: 9})
	for _, tc := range []struct {
		off, length int
		want        SGE
	}{
		{0, 100, SGE{0x5000, 100, 9}},
		{0, 0, SGE{0x5000, 0, 9}},
		{100, 0, SGE{0x5064, 0, 9}},
		{99, 1, SGE{0x5063, 1, 9}},
		{99, 2, outside},
		{101, 0, outside},
		{-1, 1, outside},
		{0, -1, outside},
		{math.MinInt, 1, outside},
		{math.MaxInt, 1, outside},
		{1, math.MaxInt, outside},
		{0, 1<<32 + 5, outside},
	} {
		if got := mr.SGE(tc.off, tc.length); got != tc.want {
			t.Errorf("SGE(%d, %d): %+v, want %+v", tc.off, tc.length, got, tc.want)
		}
	}
	if got, want := mr.SGEOf(mem[10:30]), (SGE{0x500a, 20, 9}); got != want {
		t.Errorf("SGEOf: %+v, want %+v", got, want)
	}
	for name, b := range map[string][]byte{"another's": make([]byte, 1), "none": nil} {
		if got := mr.SGEOf(b); got != outside {
			t.Errorf("SGEOf, %s: %+v", name, got)
		}
	}
	mr.at.Store(&region{length: math.MaxInt, lkey: 9}) // implicit ODP
	if got, want := mr.SGEOf(mem[10:30]), (SGE{uint64(addrOf(mem)) + 10, 20, 9}); got != want {
		t.Errorf("SGEOf all memory: %+v, want %+v", got, want)
	}
	if got := mr.SGE(0, 1<<32); got != outside {
		t.Errorf("4 GiB: %+v", got)
	}
	if err := checkSGEs([]SGE{{}, outside}); !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "SGE 1") {
		t.Errorf("checkSGEs: %v", err)
	}
}

// How much of device memory a read gets.
func TestDMWithin(t *testing.T) {
	dm := &DM{length: 100}
	for _, tc := range []struct {
		n    int
		off  int64
		want int
		bad  bool
	}{
		{10, 0, 10, false}, {100, 0, 100, false}, {101, 0, 100, false}, {10, 95, 5, false}, {10, 100, 0, false},
		{1, math.MaxInt64, 0, false}, {0, 5, 0, false}, {1, -1, 0, true}, {1, math.MinInt64, 0, true},
	} {
		if got, err := dm.within(tc.n, tc.off); got != tc.want || (err != nil) != tc.bad {
			t.Errorf("%d bytes at %d: %d, %v", tc.n, tc.off, got, err)
		}
	}
}
