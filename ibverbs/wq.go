package ibverbs

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
)

// WQ is a receive work queue that is not one QP's own: a RWQIndTable spreads
// the packets of a QP over several of them. It is safe for concurrent use.
type WQ struct {
	handle
	pd     *PD
	cq     *CQ
	wq     *cWQ
	maxWR  uint32
	maxSGE uint32

	mu   sync.Mutex // guards recv
	recv recvQueue
}

// WQInitAttr says how to create a WQ (struct ibv_wq_init_attr).
type WQInitAttr struct {
	Type        WQType
	CQ          *CQ    // where its receives complete
	MaxWR       uint32 // receives that can be outstanding, at least 1
	MaxSGE      uint32 // SGEs of one receive
	CreateFlags WQFlags
}

// WQAttr holds a WQ's attributes (struct ibv_wq_attr). A WQAttrMask says which
// of them count.
type WQAttr struct {
	State     WQState // to move to
	CurState  WQState // to move from
	Flags     WQFlags // the new values of those in FlagsMask
	FlagsMask WQFlags
}

// CreateWQ creates a work queue in state RESET: ibv_create_wq(3). The caller
// closes it, after the tables that it is in and before its CQ and the PD. MaxWR
// and MaxSGE may be more than was asked for; see WQ.MaxWR. A device without
// gives an error that satisfies errors.ErrUnsupported.
func (pd *PD) CreateWQ(attr WQInitAttr) (*WQ, error) {
	const op = "ibv_create_wq"
	if err := pd.checkWQ(&attr); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	wq := &WQ{pd: pd, cq: attr.CQ}
	if err := wq.adopt("WQ", &pd.handle, &attr.CQ.handle); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	if err := wq.create(&attr); err != nil {
		wq.disown()
		return nil, wrap(op, pd.object, err)
	}
	watch(wq, &wq.handle)
	return wq, nil
}

func (pd *PD) checkWQ(attr *WQInitAttr) error {
	switch {
	case attr.CQ == nil:
		return hint(syscall.EINVAL, "a WQ needs a CQ")
	case attr.CQ.dev != pd.dev:
		return hint(syscall.EINVAL, "%v is another device's", attr.CQ)
	case attr.MaxWR == 0:
		return hint(syscall.EINVAL, "a WQ of no receives")
	}
	return nil
}

func (wq *WQ) create(attr *WQInitAttr) error {
	c, granted, err := createWQ(wq.pd.pd, attr)
	if err != nil {
		return err
	}
	if err := wq.recv.alloc(QPCap{MaxRecvWR: granted.MaxWR, MaxRecvSGE: granted.MaxSGE}); err != nil {
		destroyWQ(c)
		return err
	}
	wq.wq, wq.maxWR, wq.maxSGE = c, granted.MaxWR, granted.MaxSGE
	wq.named("%s/wq%d", wq.pd.object, wqNumber(c))
	wq.pd.dev.async.register(wqID(c), wq)
	return nil
}

// PD is the PD that the WQ belongs to.
func (wq *WQ) PD() *PD { return wq.pd }

// CQ is where the WQ's receives complete.
func (wq *WQ) CQ() *CQ { return wq.cq }

// MaxWR is the number of receives that the WQ has room for, which may be more
// than was asked for.
func (wq *WQ) MaxWR() int { return int(wq.maxWR) }

// MaxSGE is the number of SGEs that a receive may have.
func (wq *WQ) MaxSGE() int { return int(wq.maxSGE) }

// PostRecv posts receive work requests in order: ibv_post_wq_recv(3), one cgo
// call for a batch of up to 128. It returns how many were accepted; if that is
// less than len(wrs), the error says why wrs[accepted] was not: ErrQueueFull
// where the WQ has no room now. It never waits, and allocates nothing where all
// are accepted.
func (wq *WQ) PostRecv(wrs []RecvWR) (accepted int, err error) {
	const op = "ibv_post_wq_recv"
	wq.mu.Lock()
	defer wq.mu.Unlock()
	if wq.closed() {
		return 0, wrap(op, wq.object, os.ErrClosed)
	}
	accepted, err = postRecvs(wrs, wq.maxSGE, func(wrs []RecvWR) (int, error) {
		return wq.recv.postWQ(wq.wq, wq.recv.put(wrs))
	})
	if errors.Is(err, syscall.ENOMEM) {
		err = errors.Join(ErrQueueFull, err)
	}
	return accepted, wrap(op, wq.object, err)
}

// Modify changes the attributes that mask names: ibv_modify_wq(3). A new WQ
// goes from RESET to RDY before it takes receives.
func (wq *WQ) Modify(attr WQAttr, mask WQAttrMask) error {
	return wq.call("ibv_modify_wq", func() error { return modifyWQ(wq.wq, attr, mask) })
}

// Close destroys the WQ: ibv_destroy_wq(3). It fails with EBUSY while tables
// have it, and is nil when called again. Receives that are outstanding end
// without a completion, and their memory is the caller's again.
func (wq *WQ) Close() error {
	// A post holds no reference but the mutex: see QP.Close.
	wake := func() {
		wq.mu.Lock()
		wq.mu.Unlock() //lint:ignore SA2001 waits for the holder
	}
	return wq.close("ibv_destroy_wq", wake, func() error {
		wq.pd.dev.async.unregister(wqID(wq.wq))
		if err := destroyWQ(wq.wq); err != nil {
			wq.pd.dev.async.register(wqID(wq.wq), wq)
			return err
		}
		wq.recv.free()
		return nil
	})
}

// RWQIndTable is a receive indirection table: a packet's RXHash chooses the
// entry, and with it the WQ that receives the packet. QPInitAttr.RWQIndTable
// makes a QP that uses it.
type RWQIndTable struct {
	handle
	dev   *Device
	wqs   []*WQ
	table *cRWQIndTable
}

// CreateRWQIndTable creates a receive indirection table of as many entries as
// there are wqs, which must be a power of two: ibv_create_rwq_ind_table(3). A
// WQ may have several entries. The caller closes the table, after the QPs that
// use it and before its WQs. A device without gives an error that satisfies
// errors.ErrUnsupported.
func (d *Device) CreateRWQIndTable(wqs []*WQ) (*RWQIndTable, error) {
	const op = "ibv_create_rwq_ind_table"
	if err := d.checkWQs(wqs); err != nil {
		return nil, wrap(op, d.object, err)
	}
	t := &RWQIndTable{dev: d, wqs: slices.Clone(wqs)}
	parents := []*handle{&d.handle}
	for _, wq := range wqs {
		parents = append(parents, &wq.handle)
	}
	err := t.adopt("RWQIndTable", parents...)
	if err == nil {
		if t.table, err = createRWQIndTable(d.ctx, wqs); err != nil {
			t.disown()
		}
	}
	if err != nil {
		return nil, wrap(op, d.object, err)
	}
	t.named("%s/rwqtable%d", d.object, rwqIndTableNumber(t.table))
	watch(t, &t.handle)
	return t, nil
}

func (d *Device) checkWQs(wqs []*WQ) error {
	if n := len(wqs); n == 0 || n&(n-1) != 0 {
		return hint(syscall.EINVAL, "%d WQs: a table has 1, 2, 4, 8, … entries", n)
	}
	for i, wq := range wqs {
		switch {
		case wq == nil || wq.wq == nil:
			return hint(syscall.EINVAL, "entry %d is no WQ", i)
		case wq.pd.dev != d:
			return hint(syscall.EINVAL, "%v is another device's", wq)
		}
	}
	return nil
}

// WQs are the table's entries.
func (t *RWQIndTable) WQs() []*WQ { return slices.Clone(t.wqs) }

// Close destroys the table: ibv_destroy_rwq_ind_table(3). It fails with EBUSY
// while QPs use it, and is nil when called again.
func (t *RWQIndTable) Close() error {
	return t.close("ibv_destroy_rwq_ind_table", nil, func() error { return destroyRWQIndTable(t.table) })
}

// RXHash says how a packet's entry in a RWQIndTable is found (struct
// ibv_rx_hash_conf).
type RXHash struct {
	Func RXHashFunc
	// Key is the function's key: 40 bytes for RXHashToeplitz. A constant one
	// lets whoever knows it choose the queue of each packet.
	Key []byte
	// Fields are what is hashed. TCP and UDP ports, IPv4 and IPv6 exclude
	// each other on most devices. 0 sends all packets to one entry.
	Fields RXHashFields
}

// check refuses what does not fit into C's struct, or would do without a hash
// what needs one.
func (h *RXHash) check() error {
	switch {
	case len(h.Key) > 255:
		return hint(syscall.EINVAL, "a hash key of %d bytes: C has room for 255", len(h.Key))
	case h.Fields != 0 && h.Func == 0:
		return hint(syscall.EINVAL, "RXHash needs a Func to hash %v", h.Fields)
	case h.Func&RXHashToeplitz != 0 && len(h.Key) == 0:
		return hint(syscall.EINVAL, "RXHash needs a Key for %v", h.Func)
	}
	return nil
}
