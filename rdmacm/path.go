package rdmacm

import (
	"encoding/binary"
	"syscall"

	"github.com/goverbs/goverbs/ibverbs"
)

// PathRecord describes a path through an InfiniBand subnet, as its subnet
// administration does (struct ibv_sa_path_rec). On RoCE the kernel makes one up
// from the route, of which the GIDs, PKey, HopLimit, TrafficClass and MTU mean
// something; iWARP has none.
type PathRecord struct {
	ServiceID      uint64 // not known of a resolved path
	DGID           ibverbs.GID
	SGID           ibverbs.GID
	DLID           uint16
	SLID           uint16
	RawTraffic     bool   // not on the wire
	FlowLabel      uint32 // 20 bits
	HopLimit       uint8
	TrafficClass   uint8
	Reversible     bool
	NumPath        uint8 // 7 bits
	PKey           uint16
	QoSClass       uint16 // 12 bits; not known of a resolved path
	SL             uint8  // 4 bits
	MTUSelector    uint8  // how MTU, Rate and PacketLifeTime are meant: 0 greater, 1 less, 2 exactly, 3 the most
	MTU            ibverbs.MTU
	RateSelector   uint8
	Rate           uint8 // enum ibv_rate
	LifeSelector   uint8
	PacketLifeTime uint8 // 4.096 us * 2^n
	Preference     uint8
}

// PathFlags say what a path is for (IBV_PATH_FLAG_*).
type PathFlags uint32

// Path flags. ID.SetPath needs PathUsual.
const (
	PathGMP            PathFlags = 1 << 0 // GMP
	PathPrimary        PathFlags = 1 << 1 // PRIMARY
	PathAlternate      PathFlags = 1 << 2 // ALTERNATE
	PathOutbound       PathFlags = 1 << 3 // OUTBOUND
	PathInbound        PathFlags = 1 << 4 // INBOUND
	PathInboundReverse PathFlags = 1 << 5 // INBOUND_REVERSE

	PathUsual = PathGMP | PathPrimary | PathOutbound | PathInboundReverse
)

// PathData is a path with its flags (struct ibv_path_data).
type PathData struct {
	Flags PathFlags
	Path  PathRecord
}

// Sizes of what crosses as bytes.
const (
	pathRecordSize = 64
	pathDataSize   = 8 + pathRecordSize
)

// AppendBinary appends the record's 64 bytes on the wire to b
// (struct ibv_path_record). A field with more bits than it has there gives
// EINVAL.
func (p PathRecord) AppendBinary(b []byte) ([]byte, error) {
	for _, f := range []struct {
		name  string
		value uint32
		bits  uint
	}{
		{"FlowLabel", p.FlowLabel, 20}, {"NumPath", uint32(p.NumPath), 7}, {"QoSClass", uint32(p.QoSClass), 12},
		{"SL", uint32(p.SL), 4}, {"MTU", uint32(p.MTU), 6}, {"Rate", uint32(p.Rate), 6},
		{"PacketLifeTime", uint32(p.PacketLifeTime), 6}, {"MTUSelector", uint32(p.MTUSelector), 2},
		{"RateSelector", uint32(p.RateSelector), 2}, {"LifeSelector", uint32(p.LifeSelector), 2},
	} {
		if f.value>>f.bits != 0 {
			return b, hint(syscall.EINVAL, "%s %#x: it has %d bits", f.name, f.value, f.bits)
		}
	}
	b = binary.BigEndian.AppendUint64(b, p.ServiceID)
	b = append(append(b, p.DGID[:]...), p.SGID[:]...)
	b = binary.BigEndian.AppendUint16(b, p.DLID)
	b = binary.BigEndian.AppendUint16(b, p.SLID)
	b = binary.BigEndian.AppendUint32(b, p.FlowLabel<<8|uint32(p.HopLimit))
	reversible := p.NumPath
	if p.Reversible {
		reversible |= 0x80
	}
	b = append(b, p.TrafficClass, reversible)
	b = binary.BigEndian.AppendUint16(b, p.PKey)
	b = binary.BigEndian.AppendUint16(b, p.QoSClass<<4|uint16(p.SL))
	b = append(b, p.MTUSelector<<6|uint8(p.MTU), p.RateSelector<<6|p.Rate, p.LifeSelector<<6|p.PacketLifeTime, p.Preference)
	return append(b, make([]byte, 6)...), nil
}

// ParsePathRecord reads the 64 bytes of a path record on the wire, as ibacm and
// rdma_getaddrinfo(3) give them. Other lengths give EINVAL.
func ParsePathRecord(b []byte) (PathRecord, error) {
	if len(b) != pathRecordSize {
		return PathRecord{}, hint(syscall.EINVAL, "%d bytes of path record: it has %d", len(b), pathRecordSize)
	}
	flow := binary.BigEndian.Uint32(b[44:])
	qos := binary.BigEndian.Uint16(b[52:])
	return PathRecord{
		ServiceID: binary.BigEndian.Uint64(b),
		DGID:      ibverbs.GID(b[8:24]),
		SGID:      ibverbs.GID(b[24:40]),
		DLID:      binary.BigEndian.Uint16(b[40:]),
		SLID:      binary.BigEndian.Uint16(b[42:]),
		FlowLabel: flow >> 8 & 0xfffff, HopLimit: uint8(flow),
		TrafficClass: b[48],
		Reversible:   b[49]&0x80 != 0, NumPath: b[49] & 0x7f,
		PKey:     binary.BigEndian.Uint16(b[50:]),
		QoSClass: qos >> 4, SL: uint8(qos & 0xf),
		MTUSelector: b[54] >> 6, MTU: ibverbs.MTU(b[54] & 0x3f),
		RateSelector: b[55] >> 6, Rate: b[55] & 0x3f,
		LifeSelector: b[56] >> 6, PacketLifeTime: b[56] & 0x3f,
		Preference: b[57],
	}, nil
}

// appendPathData lays paths out as an array of struct ibv_path_data.
func appendPathData(b []byte, paths []PathData) ([]byte, error) {
	for _, p := range paths {
		b = binary.NativeEndian.AppendUint32(b, uint32(p.Flags))
		b = append(b, 0, 0, 0, 0)
		var err error
		if b, err = p.Path.AppendBinary(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// parsePathData is the way back.
func parsePathData(b []byte) ([]PathData, error) {
	if len(b)%pathDataSize != 0 {
		return nil, hint(syscall.EINVAL, "%d bytes of paths: each has %d", len(b), pathDataSize)
	}
	var paths []PathData
	for ; len(b) > 0; b = b[pathDataSize:] {
		record, err := ParsePathRecord(b[8:pathDataSize])
		if err != nil {
			return nil, err
		}
		paths = append(paths, PathData{PathFlags(binary.NativeEndian.Uint32(b)), record})
	}
	return paths, nil
}

// Paths are the paths that ResolveRoute found, the first one in use; none
// before EventRouteResolved, and with iWARP.
func (id *ID) Paths() []PathRecord { return append([]PathRecord(nil), id.getRoute().paths...) }

// PKey is the partition that the ID is in; 0 while it is bound to no device,
// with RoCE, which has one partition, and with iWARP.
func (id *ID) PKey() uint16 { return id.getRoute().pkey }

// SetPath takes the place of ResolveRoute for those who know the path already
// (RDMA_OPTION_IB_PATH, rdma_set_option(3)): EventRouteResolved follows. Of
// paths the kernel takes the first with the flags PathUsual; EINVAL means that
// there is none, or that the address is not resolved.
func (id *ID) SetPath(paths ...PathData) error {
	return id.call("rdma_set_option", func() error {
		b, err := appendPathData(nil, paths)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return hint(syscall.EINVAL, "no paths")
		}
		return cSetPath(id.c, b)
	})
}
