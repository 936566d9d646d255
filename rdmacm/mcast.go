package rdmacm

import (
	"errors"
	"net/netip"
	"os"
	"syscall"

	"github.com/goverbs/goverbs/ibverbs"
)

// membership is a group that an ID has joined, or is joining.
type membership struct {
	group    netip.Addr
	sendOnly bool
	attached *ibverbs.QP // nil where no QP receives
	gid      ibverbs.GID
	lid      uint16
}

// JoinMulticast takes part in an IP multicast group (rdma_join_multicast(3)).
// The ID is one of PortSpaceUDP or PortSpaceIPoIB, bound to a device by
// BindAddr or ResolveAddr, and does not listen. EventMulticastJoin follows, with
// the path and the Q_Key to send by (Event.AH, Event.QKey, to
// ibverbs.McastQPN), or EventMulticastError.
//
// A QP of CreateQP's receives what is sent to the group from then on. iWARP has
// no multicast, and on RoCE v2 the kernel joins IPv4 groups only:
// errors.ErrUnsupported.
func (id *ID) JoinMulticast(group netip.Addr) error {
	return id.join("rdma_join_multicast", group, -1)
}

// JoinMulticastEx is JoinMulticast with flags: with JoinSendOnly nothing that is
// sent to the group comes here (rdma_join_multicast_ex(3)).
func (id *ID) JoinMulticastEx(group netip.Addr, flags JoinFlags) error {
	return id.join("rdma_join_multicast_ex", group, flags)
}

func (id *ID) join(op string, group netip.Addr, flags JoinFlags) error {
	return id.call(op, func() error {
		group = group.Unmap()
		sa, err := groupSockaddr(group)
		switch {
		case err != nil:
			return err
		case id.DeviceName() == "":
			return hint(errNotBound, "the ID is not bound to a device; call BindAddr or ResolveAddr first")
		case !id.datagram():
			return hint(syscall.EINVAL, "an ID of port space %v has no multicast; PortSpaceUDP and PortSpaceIPoIB have", id.ps)
		case id.iwarp():
			return hint(syscall.EOPNOTSUPP, "iWARP has no multicast")
		}
		if n, _ := id.membership(group); n != 0 {
			return hint(syscall.EADDRINUSE, "the ID has joined %v already", group)
		}
		if id.groups == nil {
			id.groups = make(map[uint64]*membership)
		}
		id.lastJoin++
		id.groups[id.lastJoin] = &membership{group: group, sendOnly: flags == JoinSendOnly}
		if err := cJoinMulticast(id.c, sa, flags, id.lastJoin); err != nil {
			delete(id.groups, id.lastJoin)
			if err == syscall.EOPNOTSUPP && group.Is6() {
				return hint(err, "on RoCE v2 the kernel joins IPv4 groups only; for %v use QP.AttachMcast", group)
			}
			return err
		}
		return nil
	})
}

func groupSockaddr(group netip.Addr) (sockaddr, error) {
	if !group.IsMulticast() {
		return sockaddr{}, hint(syscall.EINVAL, "%v is no multicast address", group)
	}
	return toSockaddr(netip.AddrPortFrom(group, 0))
}

// membership finds a group; 0 where the ID has not joined it. It runs under
// id.mu.
func (id *ID) membership(group netip.Addr) (uint64, *membership) {
	for n, m := range id.groups {
		if m.group == group {
			return n, m
		}
	}
	return 0, nil
}

// LeaveMulticast leaves a group (rdma_leave_multicast(3)). EADDRNOTAVAIL means
// that the ID has not joined it. Closing the ID leaves all of its groups.
func (id *ID) LeaveMulticast(group netip.Addr) error {
	return id.call("rdma_leave_multicast", func() error {
		group = group.Unmap()
		n, m := id.membership(group)
		if m == nil {
			return hint(syscall.EADDRNOTAVAIL, "the ID has not joined %v", group)
		}
		return id.leave(n, m)
	})
}

func (id *ID) leave(n uint64, m *membership) error {
	if m.attached != nil {
		// A QP that has gone is attached to nothing.
		if err := m.attached.DetachMcast(m.gid, m.lid); err != nil && !errors.Is(err, os.ErrClosed) {
			return err
		}
		m.attached = nil
	}
	sa, err := groupSockaddr(m.group)
	if err != nil {
		return err
	}
	delete(id.groups, n)
	return cLeaveMulticast(id.c, sa)
}

// leaveAll leaves the groups that are left, so that librdmacm forgets them.
func (id *ID) leaveAll() error {
	for n, m := range id.groups {
		if err := id.leave(n, m); err != nil {
			return err
		}
	}
	return nil
}

// joined gives a group's event its group, and lets the ID's QP receive what is
// sent there, as librdmacm does with a QP of its own. It reports whether the ID
// is still interested.
func (id *ID) joined(ev *Event, join uint64) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	m := id.groups[join]
	if id.closed || m == nil {
		return false
	}
	ev.Group = m.group
	qp := id.qp.Load()
	if ev.Type != EventMulticastJoin || qp == nil || m.sendOnly || id.managed {
		return true
	}
	m.gid, m.lid = ev.AH.DGID, ev.AH.DLID
	if err := qp.AttachMcast(m.gid, m.lid); err != nil {
		ev.Type, ev.err = EventMulticastError, err
		return true
	}
	m.attached = qp
	return true
}
