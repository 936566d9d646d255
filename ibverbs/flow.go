package ibverbs

import (
	"errors"
	"math"
	"syscall"
)

// Flow is a rule that steers packets: those that match its specs are received
// by its QP.
type Flow struct {
	handle
	qp   *QP
	flow *cFlow
}

// FlowAttr is a flow rule (struct ibv_flow_attr).
type FlowAttr struct {
	// Type is FlowNormal for packets that match Specs, FlowAllDefault for
	// Ethernet packets that no rule steers anywhere, FlowMCDefault for the
	// multicast ones among these, FlowSniffer for all packets of the port.
	Type     FlowType
	Priority uint16 // 0 is looked at first
	Port     uint8  // from 1 on
	Flags    FlowFlags
	// Specs are what a packet must look like, and what is to be done with it.
	// All have to match. FlowNormal has at least one; the kernel takes 10.
	Specs []FlowSpec
}

// CreateFlow has the QP, a RAW_PACKET or UD one, receive the packets that match
// a rule: ibv_create_flow(3). The caller closes the rule, before the QP and
// before the actions and counters that Specs name. Needs CAP_NET_RAW. A device
// without flow steering (DeviceManagedFlowSteering) gives an error that
// satisfies errors.ErrUnsupported.
func (qp *QP) CreateFlow(attr FlowAttr) (*Flow, error) {
	const op = "ibv_create_flow"
	if err := qp.checkFlow(&attr); err != nil {
		return nil, wrap(op, qp.object, err)
	}
	f := &Flow{qp: qp}
	err := f.adopt("flow", flowParents(qp, &attr)...)
	if err == nil {
		if f.flow, err = createFlow(qp.qp, &attr); err != nil {
			f.disown()
		}
	}
	if err != nil {
		return nil, wrap(op, qp.object, flowHint(err))
	}
	f.named("%s/flow%d", qp.object, flowNumber(f.flow))
	watch(f, &f.handle)
	return f, nil
}

// flowParents are the QP and what the actions name.
func flowParents(qp *QP, attr *FlowAttr) []*handle {
	parents := []*handle{&qp.handle}
	for _, s := range attr.Specs {
		if object, _ := specObject(s); object != nil {
			parents = append(parents, object)
		}
	}
	return parents
}

// specObject is what an action needs, and whose it is.
func specObject(s FlowSpec) (*handle, *Device) {
	switch s := s.(type) {
	case FlowSpecActionHandle:
		return &s.Action.handle, s.Action.dev
	case *FlowSpecActionHandle:
		return &s.Action.handle, s.Action.dev
	case FlowSpecActionCount:
		return &s.Counters.handle, s.Counters.dev
	case *FlowSpecActionCount:
		return &s.Counters.handle, s.Counters.dev
	}
	return nil, nil
}

func flowHint(err error) error {
	switch {
	case errors.Is(err, syscall.EPERM):
		return hint(err, "flow rules need CAP_NET_RAW")
	case errors.Is(err, syscall.EOPNOTSUPP):
		return hint(err, "the device or its driver has no flow steering, or not this rule")
	}
	return err
}

// checkFlow refuses what C has no room for, and what providers would
// misunderstand.
func (qp *QP) checkFlow(attr *FlowAttr) error {
	switch n := len(attr.Specs); {
	case n == 0 && attr.Type == FlowNormal:
		return hint(syscall.EINVAL, "a NORMAL rule needs Specs; for all packets there is FlowAllDefault or FlowSniffer")
	case n > math.MaxUint8:
		return hint(syscall.EINVAL, "%d Specs: there is room for %d", n, math.MaxUint8)
	}
	for i, s := range attr.Specs {
		if s == nil {
			return hint(syscall.EINVAL, "spec %d is nil", i)
		}
		if err := qp.checkSpec(s); err != nil {
			return hint(err, "spec %d, %v", i, s.Type()&^FlowSpecTypeInner)
		}
	}
	return checkInner(attr.Specs)
}

func (qp *QP) checkSpec(s FlowSpec) error {
	if err := s.check(); err != nil {
		return err
	}
	if object, dev := specObject(s); object != nil && dev != qp.dev {
		return hint(syscall.EINVAL, "%v is another device's", object)
	}
	return nil
}

// checkInner sees that there is something around the inner headers, and that
// they come last in a rule in which order counts.
func checkInner(specs []FlowSpec) error {
	outer, inside, mpls := 0, 0, false
	for i, s := range specs {
		t := s.Type()
		base := t &^ FlowSpecTypeInner
		switch {
		case base >= FlowSpecTypeActionTag:
			continue
		case t != base:
			inside++
		case inside > 0 && mpls:
			return hint(syscall.EINVAL, "spec %d: an outer %v after inner ones, in a rule with MPLS", i, base)
		default:
			outer++
		}
		mpls = mpls || base == FlowSpecTypeMPLS
	}
	if inside > 0 && outer == 0 {
		return hint(syscall.EINVAL, "all headers are Inner: a spec for the tunnel around them is missing")
	}
	return nil
}

// QP is the QP that receives the packets.
func (f *Flow) QP() *QP { return f.qp }

// Close takes the rule away: ibv_destroy_flow(3). It is nil when called again.
func (f *Flow) Close() error {
	return f.close("ibv_destroy_flow", nil, func() error { return destroyFlow(f.flow) })
}
