package ibverbs

import (
	"errors"
	"net/netip"
	"syscall"
)

// McastQPN is the RemoteQPN of messages to a multicast group.
const McastQPN = 0xffffff

// McastGID is the GID of an IP multicast group, as AttachMcast and an AH to the
// group take it. An IPv6 group is its own GID. An IPv4 group is mapped into
// IPv6 as unicast addresses are on RoCE v2, and behind ff0e:: on RoCE v1. EINVAL
// means that group is no multicast address.
//
// InfiniBand's groups for IP (RFC 4391) hold the P_Key as well, and are the
// subnet manager's: not made here.
func McastGID(group netip.Addr, typ GIDType) (GID, error) {
	group = group.Unmap().WithZone("")
	switch {
	case !group.IsValid() || !group.IsMulticast():
		return GID{}, wrap("multicast GID", "", hint(syscall.EINVAL, "%v is no multicast address", group))
	case typ != GIDTypeRoCEv1 && typ != GIDTypeRoCEv2:
		return GID{}, wrap("multicast GID", "", hint(syscall.EINVAL, "for RoCE v1 and v2 only, not %v", typ))
	}
	gid := GIDFromAddr(group)
	if group.Is4() && typ == GIDTypeRoCEv1 {
		gid[0], gid[1] = 0xff, 0x0e
	}
	return gid, nil
}

// AttachMcast lets a UD QP receive what is sent to a multicast group:
// ibv_attach_mcast(3). It stays attached until DetachMcast; the QP does not close
// before that. Attaching again changes nothing. lid is the group's LID on
// InfiniBand, and 0 on RoCE.
//
// On RoCE the netdev must take part in the group as well, or packets get no
// further than its filter, or the switch: join the group with a socket
// (IP_ADD_MEMBERSHIP), or with ip address add GROUP dev NETDEV autojoin. The
// sender sends to McastQPN, with an AH to the group and the group's Q_Key.
//
// Devices without multicast refuse with errors.ErrUnsupported.
func (qp *QP) AttachMcast(gid GID, lid uint16) error {
	return qp.call("ibv_attach_mcast", func() error {
		if err := qp.checkMcast(gid); err != nil {
			return err
		}
		return mcastHint(attachMcast(qp.qp, gid, lid))
	})
}

// DetachMcast undoes AttachMcast: ibv_detach_mcast(3). A group that the QP is
// not attached to gives EINVAL.
func (qp *QP) DetachMcast(gid GID, lid uint16) error {
	return qp.call("ibv_detach_mcast", func() error {
		if err := qp.checkMcast(gid); err != nil {
			return err
		}
		return mcastHint(detachMcast(qp.qp, gid, lid))
	})
}

func (qp *QP) checkMcast(gid GID) error {
	if !gid.IsMulticast() {
		return hint(syscall.EINVAL, "%v is no multicast group", gid.Addr())
	}
	return nil
}

func mcastHint(err error) error {
	if errors.Is(err, syscall.EOPNOTSUPP) {
		return hint(err, "the device has no multicast")
	}
	return err
}
