package rdmacm

import (
	"sync"
	"sync/atomic"
)

// registry finds the ID that an event is for. C keeps a number, never a Go
// pointer, so that an event for an ID that has just been closed finds nothing
// and is dropped.
type registry struct {
	last  atomic.Uint64 // token; some are never used
	names atomic.Uint64 // number in an ID's name
	mu    sync.RWMutex
	ids   map[uint64]*ID
}

// ids holds every open ID of the process.
var ids = registry{ids: make(map[uint64]*ID)}

// token gives a number that no ID had before; never 0.
func (r *registry) token() uint64 { return r.last.Add(1) }

func (r *registry) add(id *ID) {
	r.mu.Lock()
	r.ids[id.token] = id
	r.mu.Unlock()
}

func (r *registry) remove(id *ID) {
	r.mu.Lock()
	delete(r.ids, id.token)
	r.mu.Unlock()
}

func (r *registry) find(token uint64) *ID {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ids[token]
}
