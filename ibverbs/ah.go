package ibverbs

import (
	"errors"
	"net"
	"syscall"
)

// AH is an address handle: a path to a peer, by which UD QPs send. It serves
// all QPs of its PD, and is safe for concurrent use.
//
// It must stay open until the last work request that names it has completed:
// devices may look it up only when they send. Close waits for a PostSend that
// is on its way, but knows nothing of queues. rxe fails a work request whose AH
// has gone (WCStatusLocQPOpErr, or WCStatusWRFlushErr on Linux 6.12), and its QP
// with it.
type AH struct {
	handle
	pd   *PD
	ah   *cAH
	attr AHAttr
}

// CreateAH creates an address handle for the path that attr describes:
// ibv_create_ah(3). The caller closes it. RoCE needs IsGlobal, and a DGID of
// the same address family as the GID at SGIDIndex.
//
// On RoCE the kernel resolves the peer's MAC address meanwhile, which can take
// seconds; a peer that does not answer gives EHOSTUNREACH or ETIMEDOUT. Devices
// without UD refuse with errors.ErrUnsupported.
func (pd *PD) CreateAH(attr AHAttr) (*AH, error) {
	const op = "ibv_create_ah"
	if err := attr.check(); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	ah := &AH{pd: pd, attr: attr}
	if err := ah.adopt("AH", &pd.handle); err != nil {
		return nil, wrap(op, pd.object, err)
	}
	c, err := createAH(pd.pd, &attr)
	if err != nil {
		ah.disown()
		return nil, wrap(op, pd.object, attr.hint(err))
	}
	ah.ah = c
	ah.named("%s/ah%d", pd.object, ahNumber(c))
	watch(ah, &ah.handle)
	return ah, nil
}

// CreateAHFromWC creates an address handle that answers a UD message, from its
// completion and the 40 bytes in front of its data: InitAHFromWC and CreateAH,
// as ibv_create_ah_from_wc(3) does. The caller closes it.
func (pd *PD) CreateAHFromWC(port int, wc *WC, grh []byte) (*AH, error) {
	if err := pd.acquire(); err != nil {
		return nil, wrap("ibv_create_ah_from_wc", pd.object, err)
	}
	defer pd.release()
	attr, err := pd.dev.InitAHFromWC(port, wc, grh)
	if err != nil {
		return nil, err
	}
	return pd.CreateAH(attr)
}

// Attr is the path that the AH was created for.
func (ah *AH) Attr() AHAttr { return ah.attr }

// PD is the PD that the AH belongs to.
func (ah *AH) PD() *PD { return ah.pd }

// Close destroys the AH: ibv_destroy_ah(3). It is nil when called again.
func (ah *AH) Close() error {
	return ah.close("ibv_destroy_ah", nil, func() error { return destroyAH(ah.ah) })
}

// InitAHFromWC gives the path back to the sender of a UD message, from its
// completion and the 40 bytes in front of its data (ParseGRH):
// ibv_init_ah_from_wc(3). It searches the port's GID table, one system call an
// entry; GRH.ReversePath does the same with a table that the caller keeps.
//
// A message to a multicast group tells nothing of the address to answer from:
// EINVAL.
func (d *Device) InitAHFromWC(port int, wc *WC, grh []byte) (AHAttr, error) {
	var attr AHAttr
	err := d.call("ibv_init_ah_from_wc", func() error {
		number, err := d.portNumber(port)
		if err != nil {
			return err
		}
		header, own, err := checkUDReceive(wc, grh)
		if err != nil {
			return err
		}
		if attr, err = initAHFromWC(d.ctx, number, wc, header); err != nil {
			return hint(err, "is %v a GID of port %d?", own.Addr(), port)
		}
		return d.checkOwnGID(&attr, own)
	})
	if err != nil {
		return AHAttr{}, err
	}
	return attr, nil
}

// checkUDReceive sees that wc and grh are what C takes them for, and gives the
// header, nil where the message has none, with the GID that it was sent to.
func checkUDReceive(wc *WC, grh []byte) (header *[GRHSize]byte, own GID, err error) {
	switch {
	case wc == nil:
		return nil, own, hint(syscall.EINVAL, "no completion")
	case wc.Status != WCStatusSuccess:
		return nil, own, hint(syscall.EINVAL, "the completion says %v: no message has come", wc.Status)
	case wc.Opcode != WCRecv:
		return nil, own, hint(syscall.EINVAL, "a completion of %v: it must be a receive's", wc.Opcode)
	case wc.Flags&WCGRH == 0:
		return nil, own, nil
	}
	g, err := parseGRH(grh)
	if err == nil {
		err = g.checkAnswerable()
	}
	if err != nil {
		return nil, own, err
	}
	return (*[GRHSize]byte)(grh), g.DGID, nil
}

// checkOwnGID sees that C has found the GID that the message was sent to, whose
// index it cuts down to 8 bits.
func (d *Device) checkOwnGID(attr *AHAttr, own GID) error {
	if !attr.IsGlobal {
		return nil
	}
	gid, err := queryGID(d.ctx, attr.Port, int(attr.SGIDIndex))
	if err != nil || gid != own {
		return hint(syscall.ERANGE, "the GID %v is not among the first 256 of the port", own.Addr())
	}
	return nil
}

// ResolveEthL2FromGID gives the Ethernet address and the VLAN that lead to
// attr.DGID from the GID at attr.SGIDIndex: ibv_resolve_eth_l2_from_gid(3).
// vlan is NoVLAN where frames have no tag. CreateAH needs no such call.
//
// It asks the kernel's tables of routes and neighbours, and may wait for 3
// seconds, in an OS thread, for a neighbour to answer; EHOSTUNREACH means that
// none did. EINVAL means that no netdev has the GID for an address.
func (d *Device) ResolveEthL2FromGID(attr AHAttr) (mac net.HardwareAddr, vlan uint16, err error) {
	err = d.call("ibv_resolve_eth_l2_from_gid", func() (err error) {
		if err = attr.check(); err == nil {
			mac, vlan, err = resolveEthL2(d.ctx, &attr)
		}
		return err
	})
	return mac, vlan, err
}

// NoVLAN is the VLAN of frames without a tag.
const NoVLAN = 0xffff

// Bits that fields of addresses have on the wire.
const (
	flowLabelBits   = 20
	qpnBits         = 24 // QP numbers and PSNs
	slBits          = 4
	srcPathBitsBits = 7
)

// check refuses what C or the wire would cut down to fewer bits.
func (a *AHAttr) check() error {
	switch {
	case a.Port == 0:
		return hint(syscall.EINVAL, "AHAttr.Port is 0: ports count from 1")
	case a.FlowLabel>>flowLabelBits != 0:
		return hint(syscall.EINVAL, "AHAttr.FlowLabel %#x: it has %d bits", a.FlowLabel, flowLabelBits)
	case a.SL>>slBits != 0:
		return hint(syscall.EINVAL, "AHAttr.SL %d: it has %d bits", a.SL, slBits)
	case a.SrcPathBits>>srcPathBitsBits != 0:
		return hint(syscall.EINVAL, "AHAttr.SrcPathBits %d: it has %d bits", a.SrcPathBits, srcPathBitsBits)
	}
	return nil
}

// hint explains why the kernel refused a path.
func (a *AHAttr) hint(err error) error {
	switch {
	case errors.Is(err, syscall.ENODATA):
		return hint(err, "the GID table has no GID at AH.SGIDIndex %d", a.SGIDIndex)
	case errors.Is(err, syscall.EINVAL) && !a.IsGlobal:
		return hint(err, "RoCE needs AH.IsGlobal")
	case errors.Is(err, syscall.EOPNOTSUPP):
		return hint(err, "the device has no address handles")
	}
	return err
}

// check refuses what C or the wire would cut down to fewer bits.
func (attr *QPAttr) check(mask QPAttrMask) error {
	if mask&QPAttrAV != 0 {
		if err := attr.AH.check(); err != nil {
			return err
		}
	}
	if mask&QPAttrAltPath != 0 {
		if err := attr.AltAH.check(); err != nil {
			return hint(err, "alternate path")
		}
	}
	for _, field := range []struct {
		bit   QPAttrMask
		value uint32
	}{{QPAttrDestQPN, attr.DestQPN}, {QPAttrRQPSN, attr.RQPSN}, {QPAttrSQPSN, attr.SQPSN}} {
		if mask&field.bit != 0 && field.value>>qpnBits != 0 {
			return hint(syscall.EINVAL, "%v %#x: it has %d bits", field.bit, field.value, qpnBits)
		}
	}
	return nil
}
