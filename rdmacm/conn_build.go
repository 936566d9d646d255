package rdmacm

import (
	"errors"
	"io"
	"syscall"

	"github.com/goverbs/goverbs/ibverbs"
)

// build makes what a connection needs on the device that its ID is bound to,
// takes the QP to INIT, and lets the user prepare. What it has made when it
// fails, free gives back.
func (c *Conn) build(cfg *Config) error {
	if err := c.buildPD(cfg); err != nil {
		return err
	}
	dev := c.pd.Device()
	facts, err := factsOf(dev, c.id.PortNum())
	if err != nil {
		return err
	}
	c.wire = transportOf(dev.Info().Transport, facts.link, facts.attr)
	if c.limits, err = cfg.settle(facts.attr); err != nil {
		return wrap("rdma_create_qp", c.id.String(), err)
	}
	if err := cfg.apply(c.id); err != nil {
		return err
	}
	if err := c.buildCQs(cfg); err != nil {
		return err
	}
	if err := c.buildQP(cfg); err != nil {
		return err
	}
	if cfg.Prepare != nil {
		return cfg.Prepare(c)
	}
	return nil
}

func (c *Conn) buildPD(cfg *Config) error {
	// That it is on the right device, CreateQP checks.
	switch {
	case cfg.PD != nil:
		c.pd = cfg.PD
		return nil
	case cfg.SRQ != nil:
		c.pd = cfg.SRQ.PD()
		return nil
	}
	for attempt := 0; ; attempt++ {
		shared, err := devices.acquire(c.id.DeviceName())
		if err != nil {
			return err
		}
		pd, err := shared.dev.AllocPD()
		if err == nil {
			c.shared, c.ownPD, c.pd = shared, pd, pd
			return nil
		}
		if attempt == 0 && errors.Is(err, syscall.EIO) {
			// The device was removed, and another has its name now.
			devices.forget(shared)
			devices.release(shared)
			continue
		}
		return errors.Join(err, devices.release(shared))
	}
}

// buildCQs makes the CQs that the user did not bring.
func (c *Conn) buildCQs(cfg *Config) (err error) {
	c.sendCQ, c.recvCQ = cfg.SendCQ, cfg.RecvCQ
	if c.sendCQ != nil && c.recvCQ != nil {
		return nil
	}
	dev := c.pd.Device()
	if !cfg.Polling {
		if c.comp, err = dev.CreateCompChannel(); err != nil {
			return err
		}
	}
	opts := ibverbs.CQOptions{Channel: c.comp}
	create := func(i int, size int) (*ibverbs.CQ, error) {
		c.ownCQs[i], err = dev.CreateCQ(size, opts)
		return c.ownCQs[i], err
	}
	if c.sendCQ == nil {
		if c.sendCQ, err = create(0, c.limits.sendCQ); err != nil {
			return err
		}
	}
	if c.recvCQ == nil {
		if c.recvCQ, err = create(1, c.limits.recvCQ); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) buildQP(cfg *Config) (err error) {
	attr := ibverbs.QPInitAttr{
		Type:   ibverbs.QPTypeRC,
		SendCQ: c.sendCQ,
		RecvCQ: c.recvCQ,
		Cap:    c.limits.cap,
		SRQ:    cfg.SRQ,
		SigAll: cfg.SignalAll,
	}
	c.qp, err = c.id.CreateQP(c.pd, attr)
	if cfg.Inline == 0 && attr.Cap.MaxInlineData > 0 && errors.Is(err, syscall.EINVAL) {
		// Nobody asked for inline data, and not every device has it.
		attr.Cap.MaxInlineData = 0
		if qp, retryErr := c.id.CreateQP(c.pd, attr); retryErr == nil {
			c.qp, err = qp, nil
		}
	}
	return err
}

// closeAll runs the steps in order, up to the first failure.
func closeAll(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// closing is the step that closes r, or nothing where r is nil.
func closing[T interface {
	comparable
	io.Closer
}](r T) func() error {
	var none T
	if r == none {
		return func() error { return nil }
	}
	return r.Close
}
