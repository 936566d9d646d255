package rdmacm

import (
	"runtime"
	"sync"
	"weak"

	"github.com/goverbs/goverbs/ibverbs"
)

// sharedDevice is a device that connections without a PD of their user's
// share. It is open while one of them is.
type sharedDevice struct {
	name string
	dev  *ibverbs.Device
	refs int // under deviceCache.mu
}

// deviceFacts is what a connection wants to know of a device and a port: it does
// not change while the device is open.
type deviceFacts struct {
	attr ibverbs.DeviceAttr
	link ibverbs.LinkLayer
}

// factsKey does not keep its device from being collected.
type factsKey struct {
	dev  weak.Pointer[ibverbs.Device]
	port int
}

// facts holds a *deviceFacts for each factsKey that a connection asked for.
var facts sync.Map

// factsOf asks dev, once for all its connections.
func factsOf(dev *ibverbs.Device, port int) (*deviceFacts, error) {
	key := factsKey{weak.Make(dev), port}
	if known, ok := facts.Load(key); ok {
		return known.(*deviceFacts), nil
	}
	attr, err := dev.Query()
	if err != nil {
		return nil, err
	}
	p, err := dev.QueryPort(port)
	if err != nil {
		return nil, err
	}
	f := &deviceFacts{attr, p.LinkLayer}
	if _, known := facts.LoadOrStore(key, f); !known {
		runtime.AddCleanup(dev, func(key factsKey) { facts.Delete(key) }, key)
	}
	return f, nil
}

type deviceCache struct {
	mu   sync.Mutex
	open map[string]*sharedDevice
}

// devices are the process's shared devices.
var devices = deviceCache{open: make(map[string]*sharedDevice)}

// acquire opens the device of that name, or shares it. release gives it back.
func (c *deviceCache) acquire(name string) (*sharedDevice, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.open[name]
	if d == nil {
		dev, err := ibverbs.Open(name)
		if err != nil {
			return nil, err
		}
		d = &sharedDevice{name: name, dev: dev}
		c.open[name] = d
	}
	d.refs++
	return d, nil
}

// release closes the device with its last user. If that fails, the caller
// still holds it and may try again.
func (c *deviceCache) release(d *sharedDevice) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.refs == 1 {
		if err := d.dev.Close(); err != nil {
			return err
		}
		c.drop(d)
	}
	d.refs--
	return nil
}

// forget keeps later connections from sharing a device that has been removed:
// a new one may come with the same name.
func (c *deviceCache) forget(d *sharedDevice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(d)
}

func (c *deviceCache) drop(d *sharedDevice) {
	if c.open[d.name] == d {
		delete(c.open, d.name)
	}
}
