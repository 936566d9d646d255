package ibverbs

// PD is a protection domain: memory regions and QPs work together only within
// one. It is safe for concurrent use.
type PD struct {
	handle
	dev  *Device
	pd   *cPD
	base *PD // whose parent domain it is, or nil

	imported bool // another process's
}

// AllocPD allocates a protection domain: ibv_alloc_pd(3). The caller closes
// it.
func (d *Device) AllocPD() (*PD, error) {
	return d.newPD("ibv_alloc_pd", nil, []*handle{&d.handle}, func() (*cPD, error) { return allocPD(d.ctx) })
}

func (d *Device) newPD(op string, base *PD, parents []*handle, create func() (*cPD, error)) (*PD, error) {
	pd := &PD{dev: d, base: base}
	var object string
	if base != nil { // d is nil if nobody created base
		object = base.object
	} else {
		object = d.object
	}
	err := pd.adopt("PD", parents...)
	if err == nil {
		if pd.pd, err = create(); err != nil {
			pd.disown()
		}
	}
	if err != nil {
		return nil, wrap(op, object, err)
	}
	pd.named("%s/pd%d", d.object, pdNumber(pd.pd))
	watch(pd, &pd.handle)
	return pd, nil
}

// root is the protection domain itself, of a parent domain.
func (pd *PD) root() *PD {
	if pd.base != nil {
		return pd.base
	}
	return pd
}

// same tells whether other is the same protection domain.
func (pd *PD) same(other *PD) bool { return pd.root() == other.root() }

// Device is the device that the PD belongs to.
func (pd *PD) Device() *Device { return pd.dev }

// Close deallocates the PD: ibv_dealloc_pd(3). It fails with EBUSY while
// objects of the PD are open, and is nil when called again.
func (pd *PD) Close() error {
	return pd.close("ibv_dealloc_pd", nil, func() error {
		if pd.imported {
			unimportPD(pd.pd)
			return nil
		}
		return deallocPD(pd.pd)
	})
}
