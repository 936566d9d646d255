package ibverbs

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goverbs/goverbs/internal/verbsfake"
	"github.com/goverbs/goverbs/internal/verbsread"
)

// What makes a QP that spreads its receives is checked before C is called.
func TestCheckRSS(t *testing.T) {
	dev := &Device{}
	table := &RWQIndTable{dev: dev}
	for word, attr := range map[string]QPInitAttr{
		"go together":    {RWQIndTable: table},
		"another device": {RWQIndTable: &RWQIndTable{dev: &Device{}}, RXHash: &RXHash{}},
		"no CQs":         {RWQIndTable: table, RXHash: &RXHash{}, SendCQ: &CQ{}},
		"needs a Key":    {RWQIndTable: table, RXHash: &RXHash{Func: RXHashToeplitz}},
	} {
		if err := attr.checkRSS(dev); !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), word) {
			t.Errorf("%v, want EINVAL and a word on %q", err, word)
		}
	}
	good := QPInitAttr{RWQIndTable: table, RXHash: &RXHash{Func: RXHashToeplitz, Key: make([]byte, 40)}}
	if err := good.checkRSS(dev); err != nil || !good.extended() || good.extras() != "RWQIndTable" {
		t.Errorf("%v; extended %v, extras %q", err, good.extended(), good.extras())
	}
}

// A QP that spreads its receives: what its provider gets, whom it keeps open,
// and that it has no queues itself.
func TestRSSQP(t *testing.T) {
	var table *RWQIndTable
	var f *fake
	f = newFake(t, func(c verbsfake.Call) syscall.Errno {
		if c.Op == "create_qp_ex" {
			key := pointer("ibv_qp_init_attr_ex", c.Arg, "rx_hash_conf.rx_hash_key")
			diff := verbsread.Diff("ibv_qp_init_attr_ex", c.Arg, map[string]any{
				"qp_type": uint32(8), "comp_mask": uint32(1<<0 | 1<<2 | 1<<4 | 1<<5), "pd": unsafe.Pointer(f.pd.pd),
				"create_flags": uint32(1 << 9), "rwq_ind_tbl": unsafe.Pointer(table.table), "rx_hash_conf.rx_hash_function": uint8(1),
				"rx_hash_conf.rx_hash_key_len": uint8(3), "rx_hash_conf.rx_hash_key": key,
				"rx_hash_conf.rx_hash_fields_mask": uint64(1<<0 | 1<<1),
			})
			if got := string(unsafe.Slice((*byte)(key), 3)); diff != "" || got != "key" {
				t.Errorf("%s, key %q", diff, got)
			}
		}
		return 0
	})
	wq, err := f.pd.CreateWQ(WQInitAttr{CQ: f.cq, MaxWR: 1, MaxSGE: 1})
	if err != nil {
		t.Fatal(err)
	}
	if table, err = f.dev.CreateRWQIndTable([]*WQ{wq}); err != nil {
		t.Fatal(err)
	}
	qp, err := f.pd.CreateQP(QPInitAttr{
		Type: QPTypeRawPacket, RWQIndTable: table, CreateFlags: QPCreateCVLANStripping,
		RXHash: &RXHash{Func: RXHashToeplitz, Key: []byte("key"), Fields: RXHashSrcIPv4 | RXHashDstIPv4},
	})
	if err != nil {
		t.Fatal(err)
	}
	refusal(t, "table", table.Close(), "ibv_destroy_rwq_ind_table", syscall.EBUSY, "1 QP ("+qp.String()+")")
	_, err = qp.PostRecv([]RecvWR{{}})
	refusal(t, "PostRecv", err, "ibv_post_recv", syscall.EINVAL, "post to the WQs")
	_, err = qp.PostSend([]SendWR{{Opcode: WRSend}})
	refusal(t, "PostSend", err, "ibv_post_send", syscall.EINVAL, "no send queue")
	err = qp.handle.close("close", nil, func() error {
		f.DestroyQP(unsafe.Pointer(qp.qp))
		qp.send.free()
		qp.recv.free()
		return nil
	})
	if err := errors.Join(err, table.Close(), wq.Close()); err != nil {
		t.Error(err)
	}
}
