package ibverbs

import "syscall"

// TD is a thread domain: objects that are made in it, through a parent domain,
// are only ever used by one thread at a time, and their provider takes no locks
// for them.
//
// This package takes a lock for each queue itself, and Go moves goroutines from
// thread to thread as it likes, which a TD does not mind: one at a time is what
// counts. A TD spares the provider's locks, and gives a QP doorbell resources of
// its own.
type TD struct {
	handle
	dev *Device
	td  *cTD
}

// AllocTD allocates a thread domain: ibv_alloc_td(3). The caller closes it,
// after its parent domains. A device without gives an error that satisfies
// errors.ErrUnsupported.
func (d *Device) AllocTD() (*TD, error) {
	const op = "ibv_alloc_td"
	td := &TD{dev: d}
	err := td.adopt("TD", &d.handle)
	if err == nil {
		if td.td, err = allocTD(d.ctx); err != nil {
			td.disown()
		}
	}
	if err != nil {
		return nil, wrap(op, d.object, err)
	}
	td.named("%s/td%d", d.object, d.serial.Add(1))
	watch(td, &td.handle)
	return td, nil
}

// Device is the device that the thread domain belongs to.
func (td *TD) Device() *Device { return td.dev }

// Close frees the thread domain: ibv_dealloc_td(3). It fails with EBUSY while
// parent domains of it are open, and is nil when called again.
func (td *TD) Close() error {
	return td.close("ibv_dealloc_td", nil, func() error { return deallocTD(td.td) })
}

// AllocParentDomain makes a PD that is this one and more: what is made in it
// is in the same protection domain, and in the thread domain td, which may be
// nil: ibv_alloc_parent_domain(3). The caller closes it, before this PD and td.
//
// C programs may give a parent domain functions that allocate the provider's
// queues. Go functions can't do that: the provider calls them in the middle of
// its work, under its locks.
func (pd *PD) AllocParentDomain(td *TD) (*PD, error) {
	const op = "ibv_alloc_parent_domain"
	parents := []*handle{&pd.handle}
	var c *cTD
	if td != nil {
		if td.dev != pd.dev {
			return nil, wrap(op, pd.object, hint(syscall.EINVAL, "%v is another device's", td))
		}
		parents = append(parents, &td.handle)
		c = td.td
	}
	return pd.dev.newPD(op, pd.root(), parents, func() (*cPD, error) { return allocParentDomain(pd.dev.ctx, pd.pd, c) })
}
