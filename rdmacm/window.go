package rdmacm

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/goverbs/goverbs/internal/gate"
)

// Few dials to one address are under way at a time. The kernel gains nothing from
// more, and the threads lose by it; and where a thousand ask the same peer at once,
// the last answers come too late: iWARP's siw gives up after 10 s, and RoCE sends
// requests anew after 4 s. Where no dial ends for a while, others begin: a peer
// that is stuck with some connections, or takes its time, may still take others.
const (
	windowSize     = 16
	windowPatience = 200 * time.Millisecond
)

// windows are the dials that are under way, by address.
type windows struct {
	mu   sync.Mutex
	open map[netip.AddrPort]*window
}

type window struct {
	gate  *gate.Gate
	users int // under windows.mu
}

var dials = windows{open: make(map[netip.AddrPort]*window)}

// enter waits until a dial may begin. leave is called when it has ended.
func (w *windows) enter(ctx context.Context, dst netip.AddrPort) (leave func(), err error) {
	w.mu.Lock()
	d := w.open[dst]
	if d == nil {
		d = &window{gate: gate.New(windowSize, windowPatience)}
		w.open[dst] = d
	}
	d.users++
	w.mu.Unlock()
	out, err := d.gate.EnterContext(ctx)
	if err != nil {
		w.drop(dst, d)
		return nil, err
	}
	return func() {
		out()
		w.drop(dst, d)
	}, nil
}

func (w *windows) drop(dst netip.AddrPort, d *window) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.users--
	if d.users == 0 {
		delete(w.open, dst)
	}
}
