package rnic

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What netlink's nl package lacks of <rdma/rdma_netlink.h>.
const (
	nldevCmdPortGet    = 5
	nldevCmdGetChardev = 15

	nldevAttrNdevIndex   = 50
	nldevAttrDevProtocol = 67
	nldevAttrChardevType = 69
	nldevAttrChardevName = 70
	nldevAttrChardevABI  = 71
	nldevAttrChardev     = 72
	nldevAttrDriverID    = 73
)

// nldevDevice is one message of RDMA_NLDEV_CMD_GET.
type nldevDevice struct {
	index        uint32
	name         string
	firmware     string
	nodeGUID     GUID
	sysImageGUID GUID
	ports        int
	nodeType     NodeType
	protocol     Protocol
}

// nldevPort is one message of RDMA_NLDEV_CMD_PORT_GET.
type nldevPort struct {
	port      int
	state     PortState
	physState PhysState
	lid       uint32
	netdev    string // empty where it is in another network namespace, or none
	ifindex   int
}

// nldevChardev is the answer to RDMA_NLDEV_CMD_GET_CHARDEV.
type nldevChardev struct {
	name     string
	dev      uint64 // in new_encode_dev's form, as userspace's makedev has it
	driverID uint32
}

// queryFunc sends one request to RDMA netlink and returns the payloads of the
// answer. Tests replace it.
type queryFunc func(cmd, flags int, attrs ...*nl.RtAttr) ([][]byte, error)

// errNoNetlink says that the kernel has no RDMA netlink: ib_core is not loaded.
var errNoNetlink = errors.New("the kernel has no RDMA netlink (module ib_core is not loaded)")

// queryKernel is the queryFunc of a live host. A dump that changes meanwhile
// is read again.
func queryKernel(cmd, flags int, attrs ...*nl.RtAttr) ([][]byte, error) {
	const tries = 5
	var err error
	for range tries {
		req := nl.NewNetlinkRequest(nl.RDMA_NL_NLDEV<<nl.RDMA_NL_GET_CLIENT_SHIFT|cmd, unix.NLM_F_ACK|flags)
		for _, a := range attrs {
			req.AddData(a)
		}
		var msgs [][]byte
		msgs, err = req.Execute(unix.NETLINK_RDMA, 0)
		if err == nil {
			return msgs, nil
		}
		if !errors.Is(err, netlink.ErrDumpInterrupted) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, errNoNetlink
	}
	return nil, err
}

func devIndexAttr(index uint32) *nl.RtAttr {
	return nl.NewRtAttr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, nl.Uint32Attr(index))
}

// devices lists the RDMA devices of the caller's network namespace, by name.
func (q queryFunc) devices() ([]nldevDevice, error) {
	msgs, err := q(nl.RDMA_NLDEV_CMD_GET, unix.NLM_F_DUMP)
	if err != nil {
		return nil, err
	}
	out := make([]nldevDevice, 0, len(msgs))
	for _, m := range msgs {
		d, err := parseDevice(m)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b nldevDevice) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// ports lists the ports of one device.
func (q queryFunc) ports(index uint32) ([]nldevPort, error) {
	msgs, err := q(nldevCmdPortGet, unix.NLM_F_DUMP, devIndexAttr(index))
	if err != nil {
		return nil, err
	}
	out := make([]nldevPort, 0, len(msgs))
	for _, m := range msgs {
		p, err := parsePort(m)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b nldevPort) int { return a.port - b.port })
	return out, nil
}

// uverbs asks for the device's verbs char device, which also names its driver.
func (q queryFunc) uverbs(index uint32) (nldevChardev, error) {
	msgs, err := q(nldevCmdGetChardev, 0, devIndexAttr(index),
		nl.NewRtAttr(nldevAttrChardevType, nl.ZeroTerminated("uverbs")))
	if err != nil {
		return nldevChardev{}, err
	}
	if len(msgs) == 0 {
		return nldevChardev{}, errors.New("empty answer")
	}
	return parseChardev(msgs[0])
}

func parseDevice(b []byte) (nldevDevice, error) {
	a, err := parseAttrs(b)
	if err != nil {
		return nldevDevice{}, err
	}
	if !a.has(nl.RDMA_NLDEV_ATTR_DEV_INDEX) || !a.has(nl.RDMA_NLDEV_ATTR_DEV_NAME) {
		return nldevDevice{}, errors.New("device without index or name")
	}
	return nldevDevice{
		index:        uint32(a.num(nl.RDMA_NLDEV_ATTR_DEV_INDEX)),
		name:         a.str(nl.RDMA_NLDEV_ATTR_DEV_NAME),
		firmware:     a.str(nl.RDMA_NLDEV_ATTR_FW_VERSION),
		nodeGUID:     guidFromUint64(a.num(nl.RDMA_NLDEV_ATTR_NODE_GUID)),
		sysImageGUID: guidFromUint64(a.num(nl.RDMA_NLDEV_ATTR_SYS_IMAGE_GUID)),
		ports:        int(uint32(a.num(nl.RDMA_NLDEV_ATTR_PORT_INDEX))),
		nodeType:     NodeType(a.num(nl.RDMA_NLDEV_ATTR_DEV_NODE_TYPE)),
		protocol:     protocolByNetlink[a.str(nldevAttrDevProtocol)],
	}, nil
}

func parsePort(b []byte) (nldevPort, error) {
	a, err := parseAttrs(b)
	if err != nil {
		return nldevPort{}, err
	}
	port := uint32(a.num(nl.RDMA_NLDEV_ATTR_PORT_INDEX))
	if port == 0 {
		return nldevPort{}, errors.New("port without number")
	}
	return nldevPort{
		port:      int(port),
		state:     PortState(a.num(nl.RDMA_NLDEV_ATTR_PORT_STATE)),
		physState: PhysState(a.num(nl.RDMA_NLDEV_ATTR_PORT_PHYS_STATE)),
		lid:       uint32(a.num(nl.RDMA_NLDEV_ATTR_LID)),
		netdev:    a.str(nl.RDMA_NLDEV_ATTR_NDEV_NAME),
		ifindex:   int(uint32(a.num(nldevAttrNdevIndex))),
	}, nil
}

func parseChardev(b []byte) (nldevChardev, error) {
	a, err := parseAttrs(b)
	if err != nil {
		return nldevChardev{}, err
	}
	c := nldevChardev{
		name:     a.str(nldevAttrChardevName),
		dev:      a.num(nldevAttrChardev),
		driverID: uint32(a.num(nldevAttrDriverID)),
	}
	if err := checkName("char device", c.name, maxName); err != nil {
		return nldevChardev{}, fmt.Errorf("uverbs: %w", err)
	}
	return c, nil
}
