package ibverbs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSRQAttrRoundTrip(t *testing.T) {
	want := SRQAttr{MaxWR: 1, MaxSGE: 2, Limit: 3}
	c := srqAttrToC(want)
	if c.max_wr != 1 || c.max_sge != 2 || c.srq_limit != 3 {
		t.Errorf("%+v", c)
	}
	if diff := cmp.Diff(want, srqAttrFromC(&c)); diff != "" {
		t.Error(diff)
	}
}

// Each optional attribute of an SRQ goes to C with its bit of comp_mask, and
// the others leave theirs out.
func TestSRQInitAttrToC(t *testing.T) {
	const (
		withType, withPD, withXRCD, withCQ, withTM = 1, 2, 4, 8, 16
	)
	pd, xrcd, cq := new(cPD), new(cXRCD), new(cCQ)
	for _, tc := range []struct {
		attr SRQInitAttr
		mask uint32
	}{
		{SRQInitAttr{}, withType | withPD},
		{SRQInitAttr{Type: SRQTypeXRC, XRCD: &XRCD{xrcd: xrcd}, CQ: &CQ{cq: cq}}, withType | withPD | withXRCD | withCQ},
		{SRQInitAttr{Type: SRQTypeTM, CQ: &CQ{cq: cq}, MaxTags: 4, MaxOps: 5}, withType | withPD | withCQ | withTM},
	} {
		tc.attr.MaxWR, tc.attr.MaxSGE, tc.attr.Limit = 1, 2, 3
		c := srqInitAttrToC(&tc.attr, pd)
		if srqAttrFromC(&c.attr) != (SRQAttr{MaxWR: 1, MaxSGE: 2, Limit: 3}) {
			t.Errorf("%v: attributes %+v", tc.attr.Type, c.attr)
		}
		if uint32(c.comp_mask) != tc.mask || SRQType(c.srq_type) != tc.attr.Type || c.pd != pd {
			t.Errorf("%v: comp_mask %#x, want %#x; type %d", tc.attr.Type, c.comp_mask, tc.mask, c.srq_type)
		}
		if (c.xrcd == xrcd) != (tc.mask&withXRCD != 0) || (c.cq == cq) != (tc.mask&withCQ != 0) {
			t.Errorf("%v: xrcd %p, cq %p", tc.attr.Type, c.xrcd, c.cq)
		}
		if uint32(c.tm_cap.max_num_tags) != tc.attr.MaxTags || uint32(c.tm_cap.max_ops) != tc.attr.MaxOps {
			t.Errorf("%v: tm_cap %+v", tc.attr.Type, c.tm_cap)
		}
	}
}

func TestXRCAttrToC(t *testing.T) {
	if c := xrcdAttrToC(7, 0o100); c.comp_mask != 3 || c.fd != 7 || c.oflags != 0o100 {
		t.Errorf("%+v", c)
	}
	if c := xrcdAttrToC(-1, 0); c.comp_mask != 3 || c.fd != -1 {
		t.Errorf("%+v", c)
	}
	xrcd := new(cXRCD)
	// By number, domain and type.
	if c := qpOpenAttrToC(1234, xrcd); c.comp_mask != 1|2|8 || c.qp_num != 1234 || c.xrcd != xrcd || QPType(c.qp_type) != QPTypeXRCRecv {
		t.Errorf("%+v", c)
	}
}

func TestOpsWRToC(t *testing.T) {
	wr := OpsWR{
		WRID: 1, Opcode: OpsTagDel, Flags: OpsSignaled | OpsTMSync, UnexpectedCnt: 2, Handle: 3,
		RecvWRID: 4, Tag: 5, Mask: 6, SGList: sgesOf(7, 100),
	}
	c := opsWRToC(&wr, nil)
	got := OpsWR{
		WRID: uint64(c.wr_id), Opcode: OpsOpcode(c.opcode), Flags: OpsFlags(c.flags),
		UnexpectedCnt: uint32(c.tm.unexpected_cnt), Handle: uint32(c.tm.handle),
		RecvWRID: uint64(c.tm.add.recv_wr_id), Tag: uint64(c.tm.add.tag), Mask: uint64(c.tm.add.mask), SGList: wr.SGList,
	}
	if diff := cmp.Diff(wr, got); diff != "" || c.tm.add.num_sge != 7 || c.next != nil {
		t.Errorf("%s num_sge %d", diff, c.tm.add.num_sge)
	}
}

func TestModerationToC(t *testing.T) {
	if c := moderationToC(CQModeration{Count: 3, Period: 4}); c.attr_mask != 1 || c.moderate.cq_count != 3 || c.moderate.cq_period != 4 {
		t.Errorf("%+v", c)
	}
}

func TestCQExAttrToC(t *testing.T) {
	ch, pd := new(cCompChannel), new(cPD)
	c := cqExAttrToC(&CQExInitAttr{CQE: 10, CompVector: 2, Fields: WCExCVLAN | WCExSL}, ch)
	if c.cqe != 10 || c.comp_vector != 2 || c.wc_flags != 1<<8|1<<5 || c.channel != ch || c.comp_mask != 0 {
		t.Errorf("%+v", c)
	}
	c = cqExAttrToC(&CQExInitAttr{Flags: CQIgnoreOverrun, ParentDomain: &PD{pd: pd}}, nil)
	if c.flags != 2 || c.comp_mask != 3 || c.parent_domain != pd || c.channel != nil {
		t.Errorf("%+v", c)
	}
}
