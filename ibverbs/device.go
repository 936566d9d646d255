package ibverbs

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// DeviceInfo describes an RDMA device without opening it.
type DeviceInfo struct {
	Name       string    // "rxe0", "mlx5_0"
	UverbsName string    // its character device: "uverbs0"
	NodeType   NodeType  // CA for InfiniBand and RoCE, RNIC for iWARP
	Transport  Transport // InfiniBand (RoCE too) or iWARP
	NodeGUID   GUID
}

// GUID is an EUI-64 in network byte order.
type GUID [8]byte

// String is the form that rdma(8) and ibv_devinfo(1) print, such as
// "5054:00ff:fe12:3456".
func (g GUID) String() string {
	s := hex.EncodeToString(g[:])
	return strings.Join([]string{s[:4], s[4:8], s[8:12], s[12:]}, ":")
}

// Devices lists the RDMA devices that libibverbs can drive in this network
// namespace: ibv_get_device_list(3). Where there are none, the list is empty
// and the error nil.
//
// A device that the kernel has (see package rnic) but that is missing here
// lacks its user-space provider: Open says where it was looked for.
func Devices() ([]DeviceInfo, error) {
	infos, err := listDevices()
	return infos, wrap("ibv_get_device_list", "", err)
}

// Device is an open RDMA device: an ibv_context.
//
// It is the parent of all other objects, and safe for concurrent use.
type Device struct {
	handle
	ctx  *cContext
	info DeviceInfo
	lent bool // ctx is another library's to close

	plug *cCQ // siw only; see plugSIW

	async async

	attrOnce sync.Once
	attr     DeviceAttr
	attrErr  error

	serial  atomic.Int64 // names objects that have no number of their own
	qps     sync.Map     // rxe's QPs by number
	windows sync.Map     // type 2 memory windows by the index in their rkey
}

// Open opens the device of that name: ibv_open_device(3). The caller closes
// it. A name that does not exist gives ENODEV, and says which do, or that the
// kernel's device of that name has no provider.
func Open(name string) (*Device, error) {
	const op = "ibv_open_device"
	ctx, info, found, err := openDevice(name)
	if err == nil && !found {
		err = hint(syscall.ENODEV, "%s", whyNot(name))
	}
	if err == syscall.EACCES || err == syscall.EPERM {
		err = hint(err, "this user needs access to /dev/infiniband/%s", info.UverbsName)
	}
	if err != nil {
		return nil, wrap(op, name, err)
	}
	return newDevice(ctx, info), nil
}

func newDevice(ctx *cContext, info DeviceInfo) *Device {
	d := &Device{ctx: ctx, info: info}
	d.adopt("device") // without a parent nothing can be in its way
	d.object = info.Name
	d.plugSIW()
	watch(d, &d.handle)
	return d
}

// whyNot says why there is no device of that name: it is misspelt, or
// libibverbs has no provider for it, of which C says nothing.
func whyNot(name string) string {
	if _, err := os.Stat(filepath.Join("/sys/class/infiniband", filepath.Base(name))); err != nil {
		return availableDevices()
	}
	return "the kernel has it, and libibverbs no provider for it: " + provided() + "; install ibverbs-providers"
}

// providerDir is where libibverbs finds the names of its providers.
const providerDir = "/etc/libibverbs.d"

func provided() string {
	files, err := filepath.Glob(providerDir + "/*.driver")
	if err != nil || len(files) == 0 {
		return "none is in " + providerDir
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".driver")
	}
	return providerDir + " has " + strings.Join(files, ", ") + ", whose libraries may be missing"
}

func availableDevices() string {
	infos, err := Devices()
	if err != nil || len(infos) == 0 {
		return "there is no RDMA device here that libibverbs can drive; see them all with: rdma link"
	}
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name
	}
	return "devices here: " + strings.Join(names, ", ")
}

// Info describes the device, also after Close.
func (d *Device) Info() DeviceInfo { return d.info }

// Name is the device's name, also after Close.
func (d *Device) Name() string { return d.info.Name }

// Close closes the device: ibv_close_device(3). It fails with EBUSY while
// objects of the device are open, and is nil when called again. It wakes readers
// of asynchronous events with os.ErrClosed.
func (d *Device) Close() error {
	return d.close("ibv_close_device", d.wakeAsync, func() error {
		if d.plug != nil {
			if err := destroyCQ(d.plug); err != nil {
				return err
			}
			d.plug = nil
		}
		if d.lent {
			return nil
		}
		return closeDevice(d.ctx)
	})
}

// DeviceAttr holds a device's limits and identity (struct ibv_device_attr).
// The fields keep the order of the C struct.
type DeviceAttr struct {
	FWVer           string
	NodeGUID        GUID
	SysImageGUID    GUID
	MaxMRSize       uint64 // bytes
	PageSizeCap     uint64 // bit n set: pages of 2^n bytes
	VendorID        uint32
	VendorPartID    uint32
	HWVer           uint32
	MaxQP           int
	MaxQPWR         int // work requests of one queue
	CapFlags        DeviceCapFlags
	MaxSGE          int
	MaxSGERD        int // SGEs of a READ; 1 on iWARP
	MaxCQ           int
	MaxCQE          int
	MaxMR           int
	MaxPD           int
	MaxQPRDAtom     int // READs and atomics in flight that a QP can serve
	MaxResRDAtom    int
	MaxQPInitRDAtom int // READs and atomics in flight that a QP can start
	AtomicCap       AtomicCap
	MaxMW           int
	MaxMcastGrp     int
	MaxMcastQPs     int
	MaxAH           int
	MaxSRQ          int
	MaxSRQWR        int
	MaxSRQSGE       int
	MaxPKeys        int
	LocalACKDelay   uint8 // 4.096us*2^n
	PhysPortCount   int
}

// Query reads the device's attributes: ibv_query_device(3).
func (d *Device) Query() (DeviceAttr, error) {
	var attr DeviceAttr
	err := d.call("ibv_query_device", func() (err error) {
		attr, err = queryDevice(d.ctx)
		return err
	})
	return attr, err
}

// limits is Query, asked once: the limits do not change while it is open.
func (d *Device) limits() (DeviceAttr, error) {
	if err := d.acquire(); err != nil {
		return DeviceAttr{}, err
	}
	defer d.release()
	d.attrOnce.Do(func() { d.attr, d.attrErr = queryDevice(d.ctx) })
	return d.attr, d.attrErr
}

// Vendor IDs of the kernel's Soft-iWARP and Soft-RoCE drivers.
const (
	vendorSIW = 0x626d74
	vendorRXE = 0xffffff
)

// isRXE tells rxe, whose kernel part must be kept from some work requests.
func (d *Device) isRXE() bool {
	attr, err := d.limits()
	return err == nil && d.info.Transport == TransportIB && attr.VendorID == vendorRXE
}

// isSIW tells Soft-iWARP, whose provider must be kept from some work requests.
func (d *Device) isSIW() bool {
	attr, err := d.limits()
	return err == nil && d.info.Transport == TransportIWARP && attr.VendorID == vendorSIW
}

// plugSIW keeps siw's queues away from page 144 of what a context maps.
//
// siw maps each queue at an offset that the kernel chooses, from 0 upwards.
// rdma-core takes the offset 0x90000 to mean that there is no queue, so that
// the one that would start there, and with it all later ones, fails: some 20
// QPs fill a context. A first CQ that reaches beyond that page leaves no other
// queue to start there. It costs 1 MiB.
func (d *Device) plugSIW() {
	const (
		badOffset = 0x90000
		entrySize = 32 // struct siw_cqe
	)
	if !d.isSIW() {
		return
	}
	// Where even this fails, the context has its limit.
	d.plug, _ = createCQ(d.ctx, badOffset/entrySize+1, 0, nil, 0)
}
