package ibverbs

// PD is a protection domain: memory regions and QPs work together only within
// one. It is safe for concurrent use.
type PD struct {
	handle
	dev *Device
	pd  *cPD
}

// AllocPD allocates a protection domain: ibv_alloc_pd(3). The caller closes
// it.
func (d *Device) AllocPD() (*PD, error) {
	const op = "ibv_alloc_pd"
	pd := &PD{dev: d}
	if err := pd.adopt("PD", &d.handle); err != nil {
		return nil, wrap(op, d.object, err)
	}
	c, err := allocPD(d.ctx)
	if err != nil {
		pd.disown()
		return nil, wrap(op, d.object, err)
	}
	pd.pd = c
	pd.named("%s/pd%d", d.object, pdNumber(c))
	watch(pd, &pd.handle)
	return pd, nil
}

// same tells whether other is the same protection domain.
func (pd *PD) same(other *PD) bool { return pd == other }

// Device is the device that the PD belongs to.
func (pd *PD) Device() *Device { return pd.dev }

// Close deallocates the PD: ibv_dealloc_pd(3). It fails with EBUSY while
// objects of the PD are open, and is nil when called again.
func (pd *PD) Close() error {
	return pd.close("ibv_dealloc_pd", nil, func() error { return deallocPD(pd.pd) })
}
