package ibverbs

// The short way of most work requests: checked and laid out in one pass.

// #include "shim.h"
import "C"

import "unsafe"

// plainOps are opcodes that need no checks but those of putPlain, by bit.
type plainOps uint32

// plain finds out which opcodes a QP takes the short way with. READs also need
// a depth, which may change: PostSend looks at it.
func (qp *QP) plain() (ops plainOps) {
	if qp.owed != nil || qp.plainLists || qp.typ != QPTypeRC && qp.typ != QPTypeUC {
		return 0
	}
	for _, op := range []WROpcode{WRSend, WRSendWithImm, WRRDMAWrite, WRRDMAWriteWithImm, WRRDMARead} {
		if qp.checkOpcode(op) == nil {
			ops |= 1 << op
		}
	}
	if limit := qp.limits.MaxSGERD; limit > 0 && int(qp.cap.MaxSendSGE) > limit {
		ops &^= 1 << WRRDMARead
	}
	return ops
}

// withImm are the opcodes with immediate data.
const withImm plainOps = 1<<WRSendWithImm | 1<<WRRDMAWriteWithImm

// putPlain lays out the first of wrs, as many as there is room for. It tells
// whether all that it looked at were plain: if not, nothing is to be posted,
// and all of wrs needs checkSends and put.
//
// What it fills in is within the first cache line of a struct ibv_send_wr, but
// for what an RC or UC QP does not look at.
func (q *sendQueue) putPlain(wrs []SendWR, ops plainOps, maxSGE, maxInline int) (n int, plain bool) {
	if len(wrs) > len(q.wrs) {
		wrs = wrs[:len(q.wrs)]
	}
	sge := 0
	for n < len(wrs) {
		run := q.putSingles(wrs, n, sge, ops)
		n += run
		sge += run
		if n == len(wrs) {
			break
		}
		list := q.putOther(&wrs[n], n, sge, ops, maxSGE, maxInline)
		if list < 0 {
			return 0, false
		}
		n++
		sge += list
	}
	if n > 0 {
		q.wrs[n-1].next = 0
	}
	return n, true
}

// putSingles lays out work requests with one SGE, which most have, from number
// first on, and returns how many there are in a row. It calls nothing, so that
// all it needs stays in registers.
func (q *sendQueue) putSingles(wrs []SendWR, first, sge int, ops plainOps) (n int) {
	c := (*cSendWR)(unsafe.Pointer(&q.wrs[first]))
	at := unsafe.Add(unsafe.Pointer(unsafe.SliceData(q.sges)), sge*C.sizeof_struct_ibv_sge)
	rest := wrs[first:]
	if room := len(q.sges) - sge; len(rest) > room {
		rest = rest[:room]
	}
	for n < len(rest) {
		wr := &rest[n]
		bit := plainOps(1) << (wr.Opcode & 31)
		if wr.Opcode > 31 || ops&bit == 0 || len(wr.SGList) != 1 || wr.Inline != nil || wr.Flags&SendInline != 0 || wr.AH != nil {
			return n
		}
		s := (*SGE)(unsafe.Pointer(unsafe.SliceData(wr.SGList)))
		if s.Addr == outsideAddr {
			return n
		}
		*(*SGE)(at) = *s
		next := unsafe.Add(unsafe.Pointer(c), C.sizeof_struct_ibv_send_wr)
		c.wrID = wr.WRID
		c.next = uintptr(next)
		c.sgList = uintptr(at)
		c.numSGE = 1
		c.opcode = uint32(wr.Opcode)
		c.flags = uint32(wr.Flags)
		c.imm = 0
		if bit&withImm != 0 {
			c.imm = be32(wr.ImmData)
		}
		c.remoteAddr = wr.RemoteAddr
		*(*uint32)(unsafe.Pointer(&c.compareAdd)) = wr.RKey
		c = (*cSendWR)(next)
		at = unsafe.Add(at, C.sizeof_struct_ibv_sge)
		n++
	}
	return n
}

// putOther lays out work request number i, with SGEs from number sge on. It
// returns how many SGEs it takes, or -1: it is not plain, or there is no room.
func (q *sendQueue) putOther(wr *SendWR, i, sge int, ops plainOps, maxSGE, maxInline int) int {
	list, flags := len(wr.SGList), wr.Flags
	if wr.Inline != nil {
		if wr.Opcode == WRRDMARead || len(wr.Inline) > maxInline {
			return -1
		}
		list, flags = 1, flags|SendInline
	}
	if ops>>wr.Opcode&1 == 0 || len(wr.SGList) > maxSGE || sge+list > len(q.sges) || wr.Flags&SendInline != 0 || wr.AH != nil {
		return -1
	}
	if wr.Inline != nil {
		q.sges[sge] = q.putInline(i, wr.Inline)
	} else {
		for k := range wr.SGList {
			if wr.SGList[k].Addr == outsideAddr {
				return -1
			}
			q.sges[sge+k] = wr.SGList[k]
		}
	}
	c := &q.wrs[i]
	c.wrID = wr.WRID
	c.next = uintptr(unsafe.Pointer(c)) + C.sizeof_struct_ibv_send_wr
	c.sgList = uintptr(unsafe.Pointer(unsafe.SliceData(q.sges))) + uintptr(sge)*C.sizeof_struct_ibv_sge
	c.numSGE = int32(list)
	c.opcode = uint32(wr.Opcode)
	c.flags = uint32(flags)
	c.imm = 0
	if withImm>>wr.Opcode&1 != 0 {
		c.imm = be32(wr.ImmData)
	}
	c.remoteAddr = wr.RemoteAddr
	*(*uint32)(unsafe.Pointer(&c.compareAdd)) = wr.RKey
	return list
}
