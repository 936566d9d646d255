package ibverbs

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Soft-iWARP takes work requests that are posted to a queue pair in the error
// state, and forgets them. It does so too in the moment between the end of a
// connection and the time when this side hears of it. So that each work request
// still ends, a queue pair keeps account of the completions that it owes. Once
// it has been moved to the error state, when the kernel has flushed what it
// knows of, the CQ completes the rest as flushed.
//
// An unsignaled send owes none, unless it is posted after that.

// owed are the completions that a queue pair owes.
type owed struct {
	qp *QP

	mu    sync.Mutex
	sends idQueue
	recvs idQueue
	over  bool // in the error state: nothing goes to the kernel any more

	last    uint64 // the send that was struck out last
	struck  bool   // there is one
	doubled bool   // a send has been completed twice
}

func newOwed(qp *QP) *owed {
	return &owed{
		qp:    qp,
		sends: idQueue{ids: make([]uint64, 0, 2*qp.cap.MaxSendWR)},
		recvs: idQueue{ids: make([]uint64, 0, 2*qp.cap.MaxRecvWR)},
	}
}

// enter and leave begin and end an account in the CQs' books.
func (o *owed) enter() {
	o.qp.sendCQ.debts.add(o)
	o.qp.recvCQ.debts.add(o)
}

func (o *owed) leave() {
	for _, cq := range []*CQ{o.qp.sendCQ, o.qp.recvCQ} {
		cq.debts.remove(cq, o)
		o.tell(cq)
	}
}

// postSends posts as many of wrs as cross to C at once. It notes them before:
// they may complete at once.
func (o *owed) postSends(wrs []SendWR) (accepted int, err error) {
	if o.ended() {
		n, err := o.room(&o.sends, len(wrs), o.qp.cap.MaxSendWR)
		for i := range n {
			o.add(&o.sends, wrs[i].WRID)
		}
		o.tell(o.qp.sendCQ)
		return n, err
	}
	n := o.qp.send.put(wrs)
	signaled := func(wr *SendWR) bool { return o.qp.sigAll || wr.Flags&SendSignaled != 0 }
	for i := range n {
		if signaled(&wrs[i]) {
			o.add(&o.sends, wrs[i].WRID)
		}
	}
	accepted, err = o.qp.send.post(o.qp.qp, n)
	for i := n - 1; i >= accepted; i-- {
		if signaled(&wrs[i]) {
			o.drop(&o.sends, wrs[i].WRID)
		}
	}
	return accepted, err
}

// postRecvs is the same for receives.
func (o *owed) postRecvs(wrs []RecvWR) (accepted int, err error) {
	if o.ended() {
		n, err := o.room(&o.recvs, len(wrs), o.qp.cap.MaxRecvWR)
		for i := range n {
			o.add(&o.recvs, wrs[i].WRID)
		}
		o.tell(o.qp.recvCQ)
		return n, err
	}
	n := o.qp.recv.put(wrs)
	for i := range n {
		o.add(&o.recvs, wrs[i].WRID)
	}
	accepted, err = o.qp.recv.post(o.qp.qp, n)
	for i := n - 1; i >= accepted; i-- {
		o.drop(&o.recvs, wrs[i].WRID)
	}
	return accepted, err
}

// room tells how many of n more work requests a queue of that size takes.
func (o *owed) room(q *idQueue, n int, size uint32) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if free := max(int(size)-q.len(), 0); free < n {
		return free, syscall.ENOMEM
	}
	return n, nil
}

func (o *owed) add(q *idQueue, id uint64) {
	o.mu.Lock()
	q.push(id)
	o.mu.Unlock()
}

// drop takes back the last add of id.
func (o *owed) drop(q *idQueue, id uint64) {
	o.mu.Lock()
	q.dropLast(id)
	o.mu.Unlock()
}

func (o *owed) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}

// end says that the kernel has moved the queue pair to the error state.
func (o *owed) end() {
	o.mu.Lock()
	first := !o.over
	o.over = true
	o.mu.Unlock()
	for _, cq := range []*CQ{o.qp.sendCQ, o.qp.recvCQ} {
		if first {
			cq.debts.ended.Add(1)
		}
		o.tell(cq)
	}
}

// tell lets those who wait for cq look for what is owed there.
func (o *owed) tell(cq *CQ) {
	if cq.channel != nil {
		cq.channel.raise(cq)
	}
}

// settle strikes out what wc completes. It tells of a second completion, which
// is nobody's: in the error state the kernel may flush the READ that it is just
// sending twice, as what it sends and as what awaits an answer.
func (o *owed) settle(wc *WC) (second bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if wc.Opcode&WCRecv != 0 {
		o.recvs.dropFirst(wc.WRID)
		return false
	}
	if o.sends.dropFirst(wc.WRID) {
		o.last, o.struck = wc.WRID, true
		return false
	}
	second = wc.Status == WCStatusWRFlushErr && o.struck && o.last == wc.WRID && !o.doubled
	o.doubled = o.doubled || second
	return second
}

// flush completes what is owed on cq as flushed, up to len(wcs) of it.
func (o *owed) flush(cq *CQ, wcs []WC) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		return 0
	}
	n := 0
	take := func(q *idQueue, opcode WCOpcode) {
		for ; n < len(wcs) && q.len() > 0; n++ {
			wcs[n] = WC{WRID: q.shift(), Status: WCStatusWRFlushErr, Opcode: opcode, QPN: o.qp.qpn}
		}
	}
	if o.qp.sendCQ == cq {
		take(&o.sends, WCSend)
	}
	if o.qp.recvCQ == cq {
		take(&o.recvs, WCRecv)
	}
	return n
}

// debts are a CQ's book: the accounts of its queue pairs. It is locked while
// completions are polled and struck out, so that none is flushed that another
// goroutine holds in its hand.
type debts struct {
	ended atomic.Int32 // accounts of queue pairs in the error state

	mu   sync.Mutex
	by   map[uint32]*owed // by QP number
	kept []WC             // polled when a queue pair was closed
}

func (d *debts) add(o *owed) {
	d.mu.Lock()
	d.by[o.qp.qpn] = o
	d.mu.Unlock()
}

// remove closes an account, after the queue pair was destroyed. The next one
// may have its number: no completion of the old one may be taken for its.
func (d *debts) remove(cq *CQ, o *owed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		var wcs [16]WC
		n, err := pollCQ(cq.cq, wcs[:])
		if n == 0 || err != nil {
			break
		}
		d.kept = append(d.kept, wcs[:d.settle(wcs[:n])]...)
	}
	delete(d.by, o.qp.qpn)
	if o.over {
		d.ended.Add(-1)
	}
}

// settle strikes out what wcs complete, and returns how many remain when those
// that come a second time are taken out.
func (d *debts) settle(wcs []WC) (n int) {
	for i := range wcs {
		o := d.by[wcs[i].QPN]
		if o != nil && o.settle(&wcs[i]) {
			continue
		}
		if o != nil && wcs[i].Status != WCStatusSuccess {
			o.qp.fail(wcs[i].Status)
		}
		wcs[n] = wcs[i]
		n++
	}
	return n
}

// poll polls cq, and adds what queue pairs in the error state owe once there is
// nothing else.
func (d *debts) poll(cq *CQ, wcs []WC) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := copy(wcs, d.kept)
	if d.kept = d.kept[n:]; n == len(wcs) {
		return n, nil
	}
	for {
		polled, err := pollCQ(cq.cq, wcs[n:])
		remain := d.settle(wcs[n : n+polled])
		if n += remain; n == len(wcs) || err != nil {
			return n, err
		}
		if remain == polled {
			break // there was room for more
		}
	}
	if d.ended.Load() == 0 {
		return n, nil
	}
	for _, o := range d.by {
		n += o.flush(cq, wcs[n:])
	}
	return n, nil
}

// spin polls until there is something or budget has passed.
func (d *debts) spin(cq *CQ, wcs []WC, budget time.Duration) (int, error) {
	for end := time.Now().Add(budget); ; {
		n, err := d.poll(cq, wcs)
		if n > 0 || err != nil || !time.Now().Before(end) {
			return n, err
		}
	}
}

// idQueue is a queue of work request IDs, from which some go out of turn: siw
// completes a SEND before the READ that was posted before it.
type idQueue struct {
	ids  []uint64
	head int
}

func (q *idQueue) len() int { return len(q.ids) - q.head }

func (q *idQueue) push(id uint64) {
	if len(q.ids) == cap(q.ids) && q.head > 0 {
		q.ids = q.ids[:copy(q.ids, q.ids[q.head:])]
		q.head = 0
	}
	q.ids = append(q.ids, id)
}

func (q *idQueue) shift() uint64 {
	id := q.ids[q.head]
	if q.head++; q.head == len(q.ids) {
		q.ids, q.head = q.ids[:0], 0
	}
	return id
}

// dropFirst takes id out, and tells whether it was there.
func (q *idQueue) dropFirst(id uint64) bool {
	i := slices.Index(q.ids[q.head:], id)
	switch {
	case i == 0:
		q.shift()
	case i > 0:
		q.ids = slices.Delete(q.ids, q.head+i, q.head+i+1)
	}
	return i >= 0
}

func (q *idQueue) dropLast(id uint64) {
	for i := len(q.ids) - 1; i >= q.head; i-- {
		if q.ids[i] == id {
			q.ids = slices.Delete(q.ids, i, i+1)
			return
		}
	}
}
