package ibverbs

import (
	"math/rand/v2"
	"syscall"
)

// TrafficClass is the traffic class with a DSCP, and without ECN bits, for
// AHAttr. Switches and devices choose their queues by it. A
// DSCP has 6 bits; more give EINVAL.
func TrafficClass(dscp uint8) (uint8, error) {
	if dscp>>6 != 0 {
		return 0, wrap("traffic class", "", hint(syscall.EINVAL, "DSCP %d: it has 6 bits", dscp))
	}
	return dscp << 2, nil
}

// DSCP is the message's differentiated services code point, the upper 6 bits of
// its traffic class.
func (g GRH) DSCP() uint8 { return g.TrafficClass >> 2 }

// DSCP is the path's differentiated services code point, the upper 6 bits of its
// traffic class.
func (a AHAttr) DSCP() uint8 { return a.TrafficClass >> 2 }

// FlowLabelToUDPSport is the UDP source port that a RoCE v2 device gives packets
// with a flow label: ibv_flow_label_to_udp_sport(3). Routers spread flows over
// paths by it. Only the label's low 20 bits count. rxe has a port for each QP
// instead.
func FlowLabelToUDPSport(label uint32) uint16 { return udpSport(label) }

// FlowLabelFromQPNs is a flow label for a connection between two QPs, the same
// at both ends, by the formula with which the kernel's drivers make one up where a
// path has none (rdma_calc_flow_label).
func FlowLabelFromQPNs(local, remote uint32) uint32 {
	v := uint64(local) * uint64(remote)
	v ^= v >> 20
	v ^= v >> 40
	return uint32(v) & (1<<flowLabelBits - 1)
}

// RandomFlowLabel is a flow label that is not 0, for a path of its own.
func RandomFlowLabel() uint32 { return 1 + rand.Uint32N(1<<flowLabelBits-1) }
