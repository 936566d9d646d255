package ibverbs

import "syscall"

// FlowAction is something to be done with the packets of flow rules
// (FlowSpecActionHandle): to decrypt or encrypt IPsec's ESP packets. It is safe
// for concurrent use.
type FlowAction struct {
	handle
	dev    *Device
	action *cFlowAction
}

// FlowActionESPAttr describes an ESP action (struct
// ibv_flow_action_esp_attr). Numbers are in host byte order.
type FlowActionESPAttr struct {
	Attr   *ESPAttr   // nil leaves it as it is; a new action needs it
	Keymat *ESPAESGCM // nil leaves it as it is; a new action needs it
	Replay *ESPReplay // full offload only; nil leaves it as it is, or is none
	// Encap are the headers around ESP, outermost first: the IP header of
	// tunnel mode, a UDP header. Val counts, and there is no Mask. Full offload
	// only.
	Encap []FlowSpec
	ESN   *uint32 // the upper half of extended sequence numbers; nil without these
}

// ESPAttr are an ESP action's numbers (struct ibv_flow_action_esp). All but
// Flags are for full offload only.
type ESPAttr struct {
	SPI           uint32 // security parameters index
	Seq           uint32 // the first sequence number
	TFCPad        uint32 // bytes of traffic flow confidentiality padding
	Flags         ESPFlags
	HardLimitPkts uint64 // packets after which all are dropped
}

// ESPAESGCM is key material for AES GCM as of RFC 4106 (struct
// ibv_flow_action_esp_keymat_aes_gcm). C's memory of it is cleared after use.
type ESPAESGCM struct {
	IV     uint64 // where initialization vectors begin; full offload only
	IVAlgo ESPIVAlgo
	Salt   uint32
	ICVLen uint32 // bytes of the integrity check value: 8, 12 or 16
	Key    []byte // 16, 24 or 32 bytes
}

// ESPReplay protects against replays. Size is that of the bitmap, in packets;
// 0 for ESPReplayNone.
type ESPReplay struct {
	Type ESPReplayType
	Size uint32
}

// CreateFlowActionESP creates an ESP action: ibv_create_flow_action_esp(3).
// The caller closes it, after the rules that use it. A device without gives an
// error that satisfies errors.ErrUnsupported.
func (d *Device) CreateFlowActionESP(attr FlowActionESPAttr) (*FlowAction, error) {
	const op = "ibv_create_flow_action_esp"
	a := &FlowAction{dev: d}
	err := attr.check(true)
	if err == nil {
		err = a.adopt("flow action", &d.handle)
	}
	if err == nil {
		if a.action, err = createFlowActionESP(d.ctx, &attr); err != nil {
			a.disown()
		}
	}
	if err != nil {
		return nil, wrap(op, d.object, err)
	}
	a.named("%s/flowaction%d", d.object, d.serial.Add(1))
	watch(a, &a.handle)
	return a, nil
}

// check refuses what the kernel does, and says why.
func (a *FlowActionESPAttr) check(create bool) error {
	switch {
	case create && a.Attr == nil:
		return hint(syscall.EINVAL, "a new ESP action needs Attr")
	case create && a.Keymat == nil:
		return hint(syscall.EINVAL, "a new ESP action needs Keymat")
	}
	if k := a.Keymat; k != nil {
		if n := len(k.Key); n != 16 && n != 24 && n != 32 {
			return hint(syscall.EINVAL, "a key of %d bytes: AES has 16, 24 or 32", n)
		}
		if k.ICVLen != 8 && k.ICVLen != 12 && k.ICVLen != 16 {
			return hint(syscall.EINVAL, "ICVLen %d: AES GCM has 8, 12 or 16", k.ICVLen)
		}
	}
	if r := a.Replay; r != nil && (r.Type == ESPReplayNone) != (r.Size == 0) {
		return hint(syscall.EINVAL, "replay protection %v with Size %d", r.Type, r.Size)
	}
	for i, s := range a.Encap {
		if s == nil {
			return hint(syscall.EINVAL, "Encap spec %d is nil", i)
		}
		if err := s.check(); err != nil {
			return hint(err, "Encap spec %d", i)
		}
	}
	return nil
}

// ModifyESP changes what is not nil in attr: ibv_modify_flow_action_esp(3). If
// it fails, the action is what it was. All rules that use it change at once.
func (a *FlowAction) ModifyESP(attr FlowActionESPAttr) error {
	return a.call("ibv_modify_flow_action_esp", func() error {
		if err := attr.check(false); err != nil {
			return err
		}
		return modifyFlowActionESP(a.action, &attr)
	})
}

// Device is the device that the action belongs to.
func (a *FlowAction) Device() *Device { return a.dev }

// Close destroys the action: ibv_destroy_flow_action(3). It fails with EBUSY
// while rules use it, and is nil when called again.
func (a *FlowAction) Close() error {
	return a.close("ibv_destroy_flow_action", nil, func() error { return destroyFlowAction(a.action) })
}
