package ibverbs

import "syscall"

// Counters are counters of a device's that count the packets of flow rules. It
// is safe for concurrent use.
type Counters struct {
	handle
	dev      *Device
	counters *cCounters
}

// CreateCounters creates counters, all 0: ibv_create_counters(3). The caller
// closes them, after the rules that count with them. A device without gives an
// error that satisfies errors.ErrUnsupported.
func (d *Device) CreateCounters() (*Counters, error) {
	const op = "ibv_create_counters"
	c := &Counters{dev: d}
	err := c.adopt("counter set", &d.handle)
	if err == nil {
		if c.counters, err = createCounters(d.ctx); err != nil {
			c.disown()
		}
	}
	if err != nil {
		return nil, wrap(op, d.object, err)
	}
	c.named("%s/counters%d", d.object, d.serial.Add(1))
	watch(c, &c.handle)
	return c, nil
}

// AttachPointFlow makes counter number index count what of flow:
// ibv_attach_counters_point_flow(3). A nil flow means all rules that are
// created with a FlowSpecActionCount of these counters, and is all that some
// devices can; after the first such rule, that fails with EBUSY. Several points
// of one index add up.
func (c *Counters) AttachPointFlow(flow *Flow, what CounterDescription, index uint32) error {
	return c.call("ibv_attach_counters_point_flow", func() error {
		if flow == nil {
			return attachCounters(c.counters, what, index, nil)
		}
		if err := flow.acquire(); err != nil {
			return hint(err, "%v", flow)
		}
		defer flow.release()
		if flow.qp.dev != c.dev {
			return hint(syscall.EINVAL, "%v is another device's", flow)
		}
		return attachCounters(c.counters, what, index, flow.flow)
	})
}

// Read reads the counters from number 0 on into values: ibv_read_counters(3).
// It asks the device unless flags has ReadCountersPreferCached.
func (c *Counters) Read(values []uint64, flags ReadCountersFlags) error {
	return c.call("ibv_read_counters", func() error {
		if len(values) == 0 {
			return hint(syscall.EINVAL, "no room for a value")
		}
		return readCounters(c.counters, values, flags)
	})
}

// Device is the device that the counters belong to.
func (c *Counters) Device() *Device { return c.dev }

// Close destroys the counters: ibv_destroy_counters(3). It fails with EBUSY
// while rules count with them, and is nil when called again.
func (c *Counters) Close() error {
	return c.close("ibv_destroy_counters", nil, func() error { return destroyCounters(c.counters) })
}
