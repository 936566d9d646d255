package ibverbs

import (
	"encoding/binary"
	"syscall"
	"time"
)

// DeviceAttrEx holds a device's attributes with the extended ones (struct
// ibv_device_attr_ex). What a device or its driver does not know of is zero.
type DeviceAttrEx struct {
	DeviceAttr
	ODP                     ODPCaps
	CompletionTimestampMask uint64 // bits of a completion's timestamp; 0: no timestamps
	HCACoreClock            uint64 // kHz, of timestamps
	CapFlagsEx              DeviceCapFlags
	TSO                     TSOCaps
	RSS                     RSSCaps
	MaxWQTypeRQ             uint32
	PacketPacing            PacketPacingCaps
	RawPacket               RawPacketCaps
	TM                      TMCaps
	CQModeration            CQModerationCaps
	MaxDMSize               uint64 // bytes of device memory
	PCIAtomic               PCIAtomicCaps
	PhysPortCountEx         uint32 // counts beyond 255
}

// ODPCaps say which work requests may name memory that was registered with
// AccessOnDemand (struct ibv_odp_caps), by transport service.
type ODPCaps struct {
	General         ODPGeneral
	RC, UC, UD, XRC ODPTransport
}

// TSOCaps describe TCP segmentation (struct ibv_tso_caps).
type TSOCaps struct {
	MaxTSO        uint32 // bytes of a message; 0: none
	SupportedQPTs QPTypes
}

// RSSCaps describe receive-side scaling (struct ibv_rss_caps).
type RSSCaps struct {
	SupportedQPTs     QPTypes
	MaxRWQIndTables   uint32
	MaxRWQIndTableLen uint32
	RXHashFields      RXHashFields
	RXHashFunctions   RXHashFunc
}

// PacketPacingCaps describe rate limits (struct ibv_packet_pacing_caps).
type PacketPacingCaps struct {
	RateLimitMin  uint32 // kbit/s
	RateLimitMax  uint32 // kbit/s; 0: none
	SupportedQPTs QPTypes
}

// TMCaps describe tag matching (struct ibv_tm_caps).
type TMCaps struct {
	MaxRndvHdrSize uint32 // bytes
	MaxNumTags     uint32 // 0: none
	RC             bool   // over RC QPs
	MaxOps         uint32
	MaxSGE         uint32
}

// CQModerationCaps limit CQModeration (struct ibv_cq_moderation_caps).
type CQModerationCaps struct {
	MaxCount  uint16 // completions; 0: no moderation
	MaxPeriod time.Duration
}

// PCIAtomicCaps say which atomics the device can do across PCI (struct
// ibv_pci_atomic_caps).
type PCIAtomicCaps struct {
	FetchAdd, Swap, CompareSwap PCIAtomicSizes
}

// QPTypes is a set of QP types.
type QPTypes uint32

// Has tells whether typ is in the set: ibv_is_qpt_supported(3).
func (q QPTypes) Has(typ QPType) bool { return qpTypeSupported(uint32(q), typ) }

// QueryEx reads the device's attributes with the extended ones:
// ibv_query_device_ex(3).
func (d *Device) QueryEx() (DeviceAttrEx, error) {
	var attr DeviceAttrEx
	err := d.call("ibv_query_device_ex", func() (err error) {
		attr, err = queryDeviceEx(d.ctx)
		return err
	})
	return attr, err
}

// RawClock reads the device's free-running clock, which stamps completions:
// ibv_query_rt_values_ex(3). It counts from an arbitrary moment. A device
// without gives an error that satisfies errors.ErrUnsupported.
func (d *Device) RawClock() (time.Duration, error) {
	var clock time.Duration
	err := d.call("ibv_query_rt_values_ex", func() (err error) {
		clock, err = queryRawClock(d.ctx)
		return err
	})
	return clock, err
}

// QueryPortSpeed reads a port's effective speed in Mbit/s, over all its lanes
// and, where ports are bonded, over all of them: ibv_query_port_speed(3). It
// needs rdma-core 62; an older one, or a kernel or device without, gives an
// error that satisfies errors.ErrUnsupported.
func (d *Device) QueryPortSpeed(port int) (mbps uint64, err error) {
	err = d.call("ibv_query_port_speed", func() error {
		number, err := d.portNumber(port)
		if err != nil {
			return err
		}
		if err := newerVerb("ibv_query_port_speed", 62); err != nil {
			return err
		}
		units, err := queryPortSpeed(d.ctx, number)
		mbps = units * 100
		return err
	})
	return mbps, err
}

// QueryGIDEx reads one entry of a port's GID table with its type and netdev:
// ibv_query_gid_ex(3). An empty entry gives ENODATA.
func (d *Device) QueryGIDEx(port, index int) (GIDEntry, error) {
	var entry GIDEntry
	err := d.call("ibv_query_gid_ex", func() error {
		number, err := d.portNumber(port)
		if err != nil {
			return err
		}
		if index < 0 {
			return hint(syscall.EINVAL, "index %d", index)
		}
		entry, err = queryGIDEx(d.ctx, number, index)
		return err
	})
	return entry, err
}

// PKeyIndex finds a P_Key, in host byte order, in a port's table:
// ibv_get_pkey_index(3). A key that is not there gives ENOENT.
func (d *Device) PKeyIndex(port int, pkey uint16) (int, error) {
	var index int
	err := d.call("ibv_get_pkey_index", func() error {
		number, err := d.portNumber(port)
		if err != nil {
			return err
		}
		var be [2]byte
		binary.BigEndian.PutUint16(be[:], pkey)
		if index, err = pkeyIndex(d.ctx, number, be); err != nil {
			// libibverbs reads the table until that fails, for whichever reason.
			return hint(syscall.ENOENT, "port %d has no P_Key %#04x", port, pkey)
		}
		return nil
	})
	return index, err
}

// Index is the kernel's number of the device, which stays with it when it is
// renamed, or -1 where the kernel does not tell: ibv_get_device_index(3).
func (d *Device) Index() (int, error) {
	index := -1
	err := d.call("ibv_get_device_index", func() error {
		index = deviceIndex(d.ctx)
		return nil
	})
	return index, err
}
