package rdmacm

import "github.com/goverbs/goverbs/ibverbs"

// Transport says what a connection's wire protocol can do and asks for. Code
// that heeds it runs on RoCE, InfiniBand and iWARP alike.
type Transport struct {
	Kind TransportKind
	// Immediate: SEND and WRITE can carry immediate data.
	Immediate bool
	// Atomics: compare-and-swap and fetch-and-add work.
	Atomics bool
	// ReadSinkRemoteWrite: memory that a READ fills must allow remote write
	// (ibverbs.AccessRemoteWrite), since the answer is a write to it.
	ReadSinkRemoteWrite bool
	// DialerSendsFirst: until the dialing side has sent something, the
	// accepting side must not.
	DialerSendsFirst bool
	// MaxReadSGE is how many SGEs a READ may have.
	MaxReadSGE int
}

// String is the protocol's name: "RoCE".
func (t Transport) String() string { return t.Kind.String() }

// ReadSinkAccess is what memory must allow that a READ of this side fills.
func (t Transport) ReadSinkAccess() ibverbs.Access {
	if t.ReadSinkRemoteWrite {
		return ibverbs.AccessLocalWrite | ibverbs.AccessRemoteWrite
	}
	return ibverbs.AccessLocalWrite
}

// transportOf works it out from a device and the link layer of its port.
func transportOf(t ibverbs.Transport, link ibverbs.LinkLayer, attr ibverbs.DeviceAttr) Transport {
	out := Transport{
		Kind:       TransportInfiniBand,
		Immediate:  true,
		Atomics:    attr.AtomicCap != ibverbs.AtomicNone,
		MaxReadSGE: attr.MaxSGE,
	}
	if attr.MaxSGERD > 0 {
		out.MaxReadSGE = min(attr.MaxSGE, attr.MaxSGERD)
	}
	switch {
	case t == ibverbs.TransportIWARP:
		out.Kind = TransportIWARP
		out.Immediate = false
		out.Atomics = false
		out.ReadSinkRemoteWrite = true
		out.DialerSendsFirst = true
	case link == ibverbs.LinkLayerEthernet:
		out.Kind = TransportRoCE
	}
	return out
}
