package ibverbs

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/internal/verbsfake"
	"github.com/goverbs/goverbs/internal/verbsread"
)

// A WQ from its creation to its end: every field that C gets, what is granted,
// and what its provider refuses.
func TestWQ(t *testing.T) {
	var f *fake
	var fail syscall.Errno
	f = newFake(t, func(c verbsfake.Call) syscall.Errno {
		switch c.Op {
		case "create_wq":
			diff := verbsread.Diff("ibv_wq_init_attr", c.Arg, map[string]any{
				"wq_type": uint32(0x11), "max_wr": uint32(5), "max_sge": uint32(6), "pd": unsafe.Pointer(f.pd.pd),
				"cq": unsafe.Pointer(f.cq.cq), "comp_mask": uint32(1), "create_flags": uint32(0xc),
			})
			if diff != "" {
				t.Error(diff)
			}
		case "modify_wq":
			diff := verbsread.Diff("ibv_wq_attr", c.Arg, map[string]any{
				"attr_mask": uint32(7), "wq_state": uint32(1), "curr_wq_state": uint32(2), "flags": uint32(3), "flags_mask": uint32(4),
			})
			if diff != "" {
				t.Error(diff)
			}
		}
		return fail
	})
	attr := WQInitAttr{Type: 0x11, CQ: f.cq, MaxWR: 5, MaxSGE: 6, CreateFlags: WQDelayDrop | WQPCIWriteEndPadding}
	fail = syscall.ENOMEM
	_, err := f.pd.CreateWQ(attr)
	refusal(t, "CreateWQ", err, "ibv_create_wq", syscall.ENOMEM, "fake0/pd1")
	fail = 0
	wq, err := f.pd.CreateWQ(attr)
	if err != nil {
		t.Fatal(err)
	}
	if wq.MaxWR() != 8 || wq.MaxSGE() != 7 || wq.PD() != f.pd || wq.CQ() != f.cq || wq.String() != "fake0/pd1/wq1" {
		t.Errorf("%v: %d receives of %d SGEs", wq, wq.MaxWR(), wq.MaxSGE())
	}

	change := WQAttr{State: WQStateRdy, CurState: WQStateErr, Flags: 3, FlagsMask: WQDelayDrop}
	if err := wq.Modify(change, WQAttrState|WQAttrCurState|WQAttrFlags); err != nil {
		t.Error(err)
	}
	fail = syscall.EINVAL
	refusal(t, "Modify", wq.Modify(change, 7), "ibv_modify_wq", syscall.EINVAL, wq.String())
	refusal(t, "Close", wq.Close(), "ibv_destroy_wq", syscall.EINVAL, wq.String())
	fail = 0

	// Events name it, until it has gone; and again if it could not go.
	var event AsyncEvent
	if !event.name(f.dev.async.object(wqID(wq.wq))) || event.WQ != wq {
		t.Errorf("%+v", event)
	}
	if event.Type = EventWQFatal; event.String() != "WQ_FATAL "+wq.String() {
		t.Error(event)
	}
	for _, h := range []*handle{&f.pd.handle, &f.cq.handle} {
		refusal(t, "parent", h.close("close", nil, nil), "close", syscall.EBUSY, "1 WQ ("+wq.String()+")")
	}
	for range 2 {
		if err := wq.Close(); err != nil {
			t.Error(err)
		}
	}
	if event.name(f.dev.async.object(wqID(wq.wq))) {
		t.Error("events still name a WQ that is closed")
	}
	_, err = wq.PostRecv([]RecvWR{{}})
	refusal(t, "PostRecv after Close", err, "ibv_post_wq_recv", os.ErrClosed)
	refusal(t, "Modify after Close", wq.Modify(WQAttr{}, 0), "ibv_modify_wq", os.ErrClosed)
	calls := []string{"create_wq", "create_wq", "modify_wq", "modify_wq", "destroy_wq", "destroy_wq"}
	if got := f.Calls(); !slices.Equal(got, calls) {
		t.Errorf("calls %v, want %v", got, calls)
	}
}

// Receives reach the provider in order, in batches, up to the one that is
// refused.
func TestWQPostRecv(t *testing.T) {
	f := newFake(t, nil)
	wq, err := f.pd.CreateWQ(WQInitAttr{CQ: f.cq, MaxWR: 500, MaxSGE: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer wq.Close()
	wrs := make([]RecvWR, 400)
	for i := range wrs {
		wrs[i] = RecvWR{WRID: uint64(i), SGList: sgesOf(i%4, uint64(1000*i))}
	}
	if n, err := wq.PostRecv(wrs); n != 400 || err != nil {
		t.Fatalf("%d accepted, %v", n, err)
	}
	posts := f.Posts()
	for i, p := range posts {
		want := verbsfake.Post{WRID: uint64(i), NumSGE: i % 4}
		if n := uint64(i % 4); n > 0 {
			want.Addr, want.Length, want.LKey = uint64(1000*i)+n-1, uint32(n), uint32(1000*i)
		}
		if p != want {
			t.Fatalf("receive %d: %+v, want %+v", i, p, want)
		}
	}
	if len(posts) != 400 {
		t.Fatalf("%d receives came to the provider", len(posts))
	}

	// Full, in the middle of the second batch, in each of two conventions.
	for _, with := range []int{int(syscall.ENOMEM), -int(syscall.ENOMEM)} {
		f.FailPosts(len(f.Posts())+150, with)
		n, err := wq.PostRecv(wrs)
		if n != 150 || !errors.Is(err, ErrQueueFull) {
			t.Errorf("%d accepted where there is room for 150, %v", n, err)
		}
		refusal(t, "full", err, "ibv_post_wq_recv", syscall.ENOMEM, wq.String())
	}
	f.FailPosts(1024, 0)
	n, err := wq.PostRecv([]RecvWR{{}, {SGList: make([]SGE, 4)}})
	if n != 1 {
		t.Errorf("%d accepted, want the 1 that is right", n)
	}
	refusal(t, "too many SGEs", err, "ibv_post_wq_recv", syscall.EINVAL, "SGEs")
	f.FailPosts(0, 0)
	if allocs := testing.AllocsPerRun(10, func() { wq.PostRecv(nil) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A table's entries are the WQs in their order, and keep them open.
func TestRWQIndTable(t *testing.T) {
	var wqs []*WQ
	var order []int
	var fail syscall.Errno
	f := newFake(t, func(c verbsfake.Call) syscall.Errno {
		if c.Op == "create_rwq_ind_table" {
			fields := verbsread.Fields("ibv_rwq_ind_table_init_attr", c.Arg)
			entries := pointerIn(unsafe.Pointer(&fields["ind_tbl"][0]))
			diff := verbsread.Diff("ibv_rwq_ind_table_init_attr", c.Arg, map[string]any{"log_ind_tbl_size": uint32(2), "ind_tbl": entries})
			if diff != "" {
				t.Error(diff)
			}
			for i, n := range order {
				if got := pointerIn(unsafe.Add(entries, i*int(unsafe.Sizeof(entries)))); got != unsafe.Pointer(wqs[n].wq) {
					t.Errorf("entry %d is %p, want WQ %d", i, got, n)
				}
			}
		}
		return fail
	})
	for range 3 {
		wq, err := f.pd.CreateWQ(WQInitAttr{CQ: f.cq, MaxWR: 1, MaxSGE: 1})
		if err != nil {
			t.Fatal(err)
		}
		wqs = append(wqs, wq)
	}
	order = []int{2, 0, 1, 0}
	entries := []*WQ{wqs[2], wqs[0], wqs[1], wqs[0]}
	fail = syscall.EIO
	_, err := f.dev.CreateRWQIndTable(entries)
	refusal(t, "create", err, "ibv_create_rwq_ind_table", syscall.EIO, "fake0")
	fail = 0
	table, err := f.dev.CreateRWQIndTable(entries)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(table.WQs(), entries) || table.String() != "fake0/rwqtable4" {
		t.Errorf("%v of %v", table, table.WQs())
	}
	for _, wq := range wqs {
		refusal(t, "WQ of a table", wq.Close(), "ibv_destroy_wq", syscall.EBUSY, "1 RWQIndTable ("+table.String()+")")
	}
	for range 2 {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, wq := range wqs {
		if err := wq.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err = f.dev.CreateRWQIndTable(wqs[:2])
	refusal(t, "closed WQs", err, "ibv_create_rwq_ind_table", os.ErrClosed)
	other := newOtherDevice(wqs[0])
	_, err = other.CreateRWQIndTable(wqs[:1])
	refusal(t, "another device's WQ", err, "ibv_create_rwq_ind_table", syscall.EINVAL, "another device")
	_, err = f.dev.CreateRWQIndTable(make([]*WQ, 3))
	refusal(t, "3 WQs", err, "ibv_create_rwq_ind_table", syscall.EINVAL, "3 WQs")
}

func newOtherDevice(wq *WQ) *Device { return &Device{ctx: wq.pd.dev.ctx} }

func TestRXHashToC(t *testing.T) {
	key := []byte("forty bytes of a key for Toeplitz's hash")
	hash := RXHash{Func: RXHashToeplitz, Key: key, Fields: RXHashSrcIPv6 | RXHashDstPortUDP | RXHashInner}
	var c cRXHash
	free := hash.toC(&c)
	diff := verbsread.Diff("ibv_rx_hash_conf", unsafe.Pointer(&c), map[string]any{
		"rx_hash_function": uint8(1), "rx_hash_key_len": uint8(40), "rx_hash_key": unsafe.Pointer(c.rx_hash_key),
		"rx_hash_fields_mask": uint64(1<<2 | 1<<7 | 1<<31),
	})
	if got := string(unsafe.Slice((*byte)(unsafe.Pointer(c.rx_hash_key)), 40)); diff != "" || got != string(key) {
		t.Errorf("%s, key %q", diff, got)
	}
	if free(); c.rx_hash_key != nil {
		t.Error("C still points to a key that is freed")
	}
	for _, tc := range []struct {
		name string
		hash RXHash
		bad  bool
	}{
		{"all", hash, false},
		{"nothing", RXHash{}, false},
		{"no key", RXHash{Func: RXHashToeplitz, Fields: RXHashSrcIPv4}, true},
		{"long key", RXHash{Func: RXHashToeplitz, Key: make([]byte, 256)}, true},
		{"no function", RXHash{Key: key, Fields: RXHashSrcIPv4}, true},
	} {
		if err := tc.hash.check(); (err != nil) != tc.bad || tc.bad && !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
