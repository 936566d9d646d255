// Package fakecq is a provider's extended CQ without a device, for tests of
// what drains one. It can lose its place at the end of a batch as rxe's
// provider does in old releases of rdma-core.
package fakecq

// #cgo pkg-config: libibverbs
// #include <errno.h>
// #include <stdlib.h>
// #include <infiniband/verbs.h>
//
// enum { ROOM = 16 };
//
// struct entry { uint64_t wr_id; uint32_t status, opcode, base; };
//
// struct fake {
//	struct ibv_cq_ex ex; /* first: the library's pointer is ours */
//	int release; /* of rdma-core whose rxe it behaves like */
//	int fail; /* what start_poll returns, if not 0 */
//	unsigned consumer, producer, cur;
//	int locked; /* 1 while a batch is open */
//	struct entry entries[ROOM];
// };
//
// static struct fake *fake(struct ibv_cq_ex *ex) { return (struct fake *)ex; }
// static struct entry *at(struct ibv_cq_ex *ex) { return &fake(ex)->entries[fake(ex)->cur % ROOM]; }
//
// static int show(struct ibv_cq_ex *ex)
// {
//	ex->wr_id = at(ex)->wr_id;
//	ex->status = at(ex)->status;
//	return 0;
// }
//
// static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
// {
//	struct fake *f = fake(ex);
//
//	if (f->fail)
//		return f->fail;
//	f->cur = f->consumer;
//	if (f->cur % ROOM == f->producer % ROOM)
//		return ENOENT;
//	f->locked++;
//	return show(ex);
// }
//
// static int next_poll(struct ibv_cq_ex *ex)
// {
//	struct fake *f = fake(ex);
//
//	if ((f->cur + 1) % ROOM != f->producer % ROOM) {
//		f->cur++;
//		return show(ex);
//	}
//	if (f->release < 55)
//		f->consumer = ++f->cur;
//	if (f->release < 59)
//		f->locked--;
//	return ENOENT;
// }
//
// static void end_poll(struct ibv_cq_ex *ex)
// {
//	struct fake *f = fake(ex);
//
//	f->consumer = ++f->cur;
//	f->locked--;
// }
//
// /* Each field has a value of its own. */
// static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex) { return at(ex)->opcode; }
// static uint32_t read_vendor_err(struct ibv_cq_ex *ex) { return at(ex)->base + 1; }
// static unsigned int read_wc_flags(struct ibv_cq_ex *ex) { return at(ex)->base + 2; }
// static uint32_t read_byte_len(struct ibv_cq_ex *ex) { return at(ex)->base + 3; }
// static __be32 read_imm_data(struct ibv_cq_ex *ex) { return at(ex)->base + 4; }
// static uint32_t read_qp_num(struct ibv_cq_ex *ex) { return at(ex)->base + 5; }
// static uint32_t read_src_qp(struct ibv_cq_ex *ex) { return at(ex)->base + 6; }
// static uint32_t read_slid(struct ibv_cq_ex *ex) { return at(ex)->base + 7; }
// static uint8_t read_sl(struct ibv_cq_ex *ex) { return at(ex)->base + 8; }
// static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex) { return at(ex)->base + 9; }
// static uint64_t read_completion_ts(struct ibv_cq_ex *ex) { return ((uint64_t)at(ex)->base << 32) + 10; }
// static uint16_t read_cvlan(struct ibv_cq_ex *ex) { return at(ex)->base + 11; }
// static uint32_t read_flow_tag(struct ibv_cq_ex *ex) { return at(ex)->base + 12; }
// static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *tm)
// {
//	tm->tag = ((uint64_t)at(ex)->base << 32) + 13;
//	tm->priv = at(ex)->base + 14;
// }
// static uint64_t read_wallclock(struct ibv_cq_ex *ex) { return ((uint64_t)at(ex)->base << 32) + 15; }
//
// static struct fake *new_fake(int release, uint64_t fields)
// {
//	struct fake *f = calloc(1, sizeof(*f));
//	struct ibv_cq_ex *ex = &f->ex;
//
//	if (!f)
//		return NULL;
//	f->release = release;
//	ex->start_poll = start_poll;
//	ex->next_poll = next_poll;
//	ex->end_poll = end_poll;
//	ex->read_opcode = read_opcode;
//	ex->read_vendor_err = read_vendor_err;
//	ex->read_wc_flags = read_wc_flags;
//	if (fields & IBV_WC_EX_WITH_BYTE_LEN) ex->read_byte_len = read_byte_len;
//	if (fields & IBV_WC_EX_WITH_IMM) ex->read_imm_data = read_imm_data;
//	if (fields & IBV_WC_EX_WITH_QP_NUM) ex->read_qp_num = read_qp_num;
//	if (fields & IBV_WC_EX_WITH_SRC_QP) ex->read_src_qp = read_src_qp;
//	if (fields & IBV_WC_EX_WITH_SLID) ex->read_slid = read_slid;
//	if (fields & IBV_WC_EX_WITH_SL) ex->read_sl = read_sl;
//	if (fields & IBV_WC_EX_WITH_DLID_PATH_BITS) ex->read_dlid_path_bits = read_dlid_path_bits;
//	if (fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) ex->read_completion_ts = read_completion_ts;
//	if (fields & IBV_WC_EX_WITH_CVLAN) ex->read_cvlan = read_cvlan;
//	if (fields & IBV_WC_EX_WITH_FLOW_TAG) ex->read_flow_tag = read_flow_tag;
//	if (fields & IBV_WC_EX_WITH_TM_INFO) ex->read_tm_info = read_tm_info;
//	if (fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) ex->read_completion_wallclock_ns = read_wallclock;
//	return f;
// }
import "C"

import "unsafe"

// CQ is an extended CQ that has the fields that it was made with, and crashes
// where another is read.
type CQ struct{ f *C.struct_fake }

// New makes a CQ that behaves as rxe's does in that release of rdma-core: right
// from 59 on. The caller frees it.
func New(release int, fields uint64) *CQ {
	return &CQ{C.new_fake(C.int(release), C.uint64_t(fields))}
}

// Free frees the CQ's memory.
func (cq *CQ) Free() { C.free(unsafe.Pointer(cq.f)) }

// Pointer is the struct ibv_cq_ex.
func (cq *CQ) Pointer() unsafe.Pointer { return unsafe.Pointer(&cq.f.ex) }

// Room is how many completions the CQ holds.
const Room = C.ROOM - 1

// Push adds a completion. base decides the values of all fields but the three
// given ones: base+1 for the vendor error and so on.
func (cq *CQ) Push(wrID uint64, status, opcode, base uint32) {
	cq.f.entries[cq.f.producer%C.ROOM] = C.struct_entry{
		wr_id: C.uint64_t(wrID), status: C.uint32_t(status), opcode: C.uint32_t(opcode), base: C.uint32_t(base),
	}
	cq.f.producer++
}

// Fail makes the next batches fail with an errno, 0 none.
func (cq *CQ) Fail(errno int) { cq.f.fail = C.int(errno) }

// Locked is how often the CQ was locked more than it was unlocked: 0 between
// batches, unless the provider is wrong.
func (cq *CQ) Locked() int { return int(cq.f.locked) }
