package rdmacm

import (
	"container/list"
	"errors"
	"net"
	"sync"

	"github.com/goverbs/goverbs/ibverbs"
)

// ahCache keeps the address handles of peers that are sent to, since making
// one is a call into the kernel. One that is in use is never given up; of the
// others it keeps those that were used last.
type ahCache struct {
	pd    *ibverbs.PD
	limit int

	mu     sync.Mutex
	by     map[ibverbs.AHAttr]*cachedAH
	idle   list.List // of *cachedAH that nobody uses, the longest idle first
	closed bool
}

// cachedAH is an address handle with its users: the sends on their way.
type cachedAH struct {
	ah   *ibverbs.AH
	refs int
	spot *list.Element // in idle
}

func newAHCache(pd *ibverbs.PD, limit int) *ahCache {
	return &ahCache{pd: pd, limit: limit, by: make(map[ibverbs.AHAttr]*cachedAH)}
}

// get finds or makes the address handle of a path; put gives it back.
func (c *ahCache) get(attr ibverbs.AHAttr) (*cachedAH, error) {
	if e, err := c.find(attr); e != nil || err != nil {
		return e, err
	}
	// Making it may take the kernel a while: others need not wait for it.
	ah, err := c.pd.CreateAH(attr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.by[attr]; e != nil || c.closed {
		// Another was faster.
		if err := ah.Close(); err != nil || c.closed {
			return nil, errors.Join(err, net.ErrClosed)
		}
		c.use(e)
		return e, nil
	}
	e := &cachedAH{ah: ah, refs: 1}
	c.by[attr] = e
	return e, nil
}

func (c *ahCache) find(attr ibverbs.AHAttr) (*cachedAH, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	e := c.by[attr]
	if e != nil {
		c.use(e)
	}
	return e, nil
}

func (c *ahCache) use(e *cachedAH) {
	e.refs++
	if e.spot != nil {
		c.idle.Remove(e.spot)
		e.spot = nil
	}
}

// put ends a use, and gives up what has been idle longest beyond the limit.
func (c *ahCache) put(e *cachedAH) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.refs--; e.refs > 0 || c.closed {
		return
	}
	e.spot = c.idle.PushBack(e)
	for len(c.by) > c.limit && c.idle.Len() > 0 {
		old := c.idle.Remove(c.idle.Front()).(*cachedAH)
		old.spot = nil
		if old.ah.Close() != nil {
			// The kernel still needs it: it goes with the cache.
			return
		}
		delete(c.by, old.ah.Attr())
	}
}

// close closes all, once no send is on its way. Called again, it goes on from
// where it failed.
func (c *ahCache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for attr, e := range c.by {
		if err := e.ah.Close(); err != nil {
			return err
		}
		delete(c.by, attr)
	}
	return nil
}
