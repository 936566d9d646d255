package rnic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Between looks without an event: events shorten the wait, but not every
// change has one on every kernel.
const (
	waitFirst = 5 * time.Millisecond
	waitMost  = 250 * time.Millisecond
)

// WaitUsable waits until the RNIC exists and has a port that is ACTIVE, with
// the GIDs there: for RoCE one for each address of the port's netdev (all of
// which follow `rdma link add` and address changes a moment later), for iWARP
// and InfiniBand the port's own. An IPv6 address that is still tentative is
// waited for too; the netdev need not have an address at all.
//
// It returns nil once that is so, and when ctx ends an error that unwraps to
// ctx.Err() and says what is still missing. Without a deadline it may wait for
// ever, also for an RNIC that does not exist yet. It looks again when the
// kernel reports a change of links, addresses or RDMA devices, and at least
// four times a second. It needs no privilege.
func WaitUsable(ctx context.Context, name string) error { return Host{}.WaitUsable(ctx, name) }

// WaitUsable is the package's WaitUsable, looking around in h.
func (h Host) WaitUsable(ctx context.Context, name string) error {
	if err := checkName("RNIC", name, maxName); err != nil {
		return &OpError{Op: "wait", Object: name, Err: unix.EINVAL, Hint: err.Error()}
	}
	m := newMonitor() // before the first look, so that no change is missed
	defer m.close()
	pause := waitFirst
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		missing := h.missing(name)
		if len(missing) == 0 {
			return nil
		}
		timer.Reset(pause)
		pause = min(2*pause, waitMost)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-m.events:
			// Not at once: events come in bursts, and what they are
			// about is often done a moment after.
			pause = waitFirst
			timer.Reset(pause)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		if ctx.Err() != nil {
			return &OpError{Op: "wait", Object: name, Err: ctx.Err(), Hint: "still missing: " + strings.Join(missing, "; ")}
		}
	}
}

// missing says what the RNIC lacks to be usable; empty if nothing.
func (h Host) missing(name string) []string {
	d, err := h.device(name)
	if errors.Is(err, ErrNotFound) || errors.Is(err, errNoNetlink) {
		return []string{"the RNIC itself (`rnic add` makes rxe and siw links)"}
	}
	if err != nil {
		return []string{"knowledge of the RNIC: " + err.Error()}
	}
	r := h.reader(d)
	r.identity(&RNIC{})
	r.drv = r.driver("")
	ports := r.ports()
	if len(ports) == 0 {
		return append([]string{"a port"}, problemTexts(r.problems)...)
	}
	var all []string
	for _, p := range ports {
		missing := h.portMissing(p)
		if len(missing) == 0 {
			return nil
		}
		for _, m := range missing {
			all = append(all, fmt.Sprintf("port %d: %s", p.Number, m))
		}
	}
	return append(all, problemTexts(r.problems)...)
}

func problemTexts(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, "unreadable: "+p.String())
	}
	return out
}

func (h Host) portMissing(p Port) []string {
	var missing []string
	if p.State != PortStateActive {
		m := fmt.Sprintf("state is %v, not ACTIVE", p.State)
		if p.Netdev != "" {
			m += fmt.Sprintf(" (is netdev %s up, with a carrier?)", printable(p.Netdev))
		}
		missing = append(missing, m)
	}
	if len(p.GIDs) == 0 {
		return append(missing, "no GID in the table")
	}
	if h.NoNetlink || p.Protocol != ProtocolRoCE || p.Netdev == "" || len(p.GIDs) == p.GIDTableLen {
		return missing // no address to expect, or no room for it
	}
	addrs, err := h.kernel().addrs(p.NetdevIndex)
	if err != nil {
		return append(missing, fmt.Sprintf("addresses of netdev %s: %v", printable(p.Netdev), err))
	}
	return append(missing, addressesMissing(p, addrs)...)
}

func addressesMissing(p Port, addrs []netlink.Addr) []string {
	have := map[GID]bool{}
	for _, g := range p.GIDs {
		have[g.GID] = true
	}
	var missing []string
	for _, a := range addrs {
		switch gid, ok := addressGID(a); {
		case !ok || a.Flags&unix.IFA_F_DADFAILED != 0:
			// No GID comes of it, or none that can be used, ever.
		case !have[gid]:
			missing = append(missing, fmt.Sprintf("the GID of address %v", a.IP))
		case a.Flags&unix.IFA_F_TENTATIVE != 0 && a.Flags&unix.IFA_F_OPTIMISTIC == 0:
			missing = append(missing, fmt.Sprintf("address %v is tentative (duplicate address detection)", a.IP))
		}
	}
	return missing
}

// addressGID is the GID of an interface address. Point-to-point addresses are
// left out: the kernel makes the GID of the peer's address for those.
func addressGID(a netlink.Addr) (GID, bool) {
	if a.IPNet == nil || a.Peer != nil && !a.Peer.IP.Equal(a.IP) {
		return GID{}, false
	}
	ip := a.IP.To16()
	if ip == nil || ip.Equal(net.IPv6zero) {
		return GID{}, false
	}
	return GID(ip), true
}
