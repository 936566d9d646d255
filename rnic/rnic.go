package rnic

import "fmt"

// RNIC is a snapshot of one RDMA device: a value, not a handle. What could not
// be read is in Problems, and its field is zero.
type RNIC struct {
	Name string `json:"name"`
	// Index is the kernel's number of the device; 0 where netlink was not
	// used (the kernel counts from 0, so it identifies only with netlink).
	Index uint32 `json:"index"`
	// Driver is the RDMA driver: "mlx5", "rxe", "siw", ...; where the kernel
	// does not name it, the driver of the PCI function: "mlx5_core".
	Driver          string   `json:"driver"`
	Protocol        Protocol `json:"protocol"` // of the first port; see Port.Protocol
	NodeType        NodeType `json:"node_type"`
	NodeGUID        GUID     `json:"node_guid"`
	SysImageGUID    GUID     `json:"sys_image_guid"`
	Firmware        string   `json:"firmware,omitempty"`
	NodeDescription string   `json:"node_description,omitempty"`
	// PCI is the PCI function's address; for rxe and siw that of their
	// netdev. Empty for a device on no bus, as a link on a dummy netdev.
	PCI      string `json:"pci,omitempty"`
	NUMANode int    `json:"numa_node"` // -1: none, or the machine has one node only
	Ports    []Port `json:"ports"`
	// CharDevices are the device files a process needs: uverbs, umad and
	// issm per device, and the host's rdma_cm.
	CharDevices []CharDevice `json:"char_devices"`
	Problems    []Problem    `json:"problems,omitempty"`
}

// Port is one port of an RNIC.
type Port struct {
	Number    int       `json:"number"` // counts from 1
	Protocol  Protocol  `json:"protocol"`
	LinkLayer LinkLayer `json:"link_layer"`
	State     PortState `json:"state"`
	PhysState PhysState `json:"phys_state"`
	LID       uint32    `json:"lid,omitempty"` // InfiniBand only
	// Netdev is the port's own network device. Empty where it has none, or
	// it is in another network namespace.
	Netdev        string `json:"netdev,omitempty"`
	NetdevIndex   int    `json:"netdev_index,omitempty"`
	NetdevMTU     int    `json:"netdev_mtu,omitempty"`     // bytes
	NetdevAddress string `json:"netdev_address,omitempty"` // MAC
	// Netdevs are all network devices that the port's GIDs belong to: VLANs
	// and bonds on top of Netdev, IPoIB interfaces on the device.
	Netdevs []string `json:"netdevs,omitempty"`
	// ActiveMTU is the largest RDMA payload per packet in bytes. For RoCE
	// and iWARP it follows from the netdev's MTU by the drivers' own rule;
	// 0 for InfiniBand, where the kernel tells it through verbs only.
	ActiveMTU int     `json:"active_mtu,omitempty"`
	Rate      string  `json:"rate,omitempty"`      // as the kernel has it: "100 Gb/sec (4X EDR)"
	RateGbps  float64 `json:"rate_gbps,omitempty"` // Gbit/s
	// GIDs are the entries of the GID table that are in use; GIDTableLen
	// counts all.
	GIDs        []GIDEntry `json:"gids"`
	GIDTableLen int        `json:"gid_table_len"`
}

// GIDEntry is one entry of a port's GID table.
type GIDEntry struct {
	Index  int     `json:"index"`
	GID    GID     `json:"gid"`
	Type   GIDType `json:"type,omitzero"`
	Netdev string  `json:"netdev,omitempty"` // the one the GID's address is on
}

// CharDevice is one device file.
type CharDevice struct {
	Kind string `json:"kind"` // "uverbs", "umad", "issm" or "rdma_cm"
	Path string `json:"path"` // "/dev/infiniband/uverbs0"
	Dev  DevNum `json:"dev"`
	Port int    `json:"port,omitempty"` // umad and issm belong to one port
	// Present says that Path is there and is this device: in a container it
	// often is not.
	Present bool `json:"present"`
}

// DevNum is a device number.
type DevNum struct{ Major, Minor uint32 }

// String is "231:192".
func (d DevNum) String() string { return fmt.Sprintf("%d:%d", d.Major, d.Minor) }

// MarshalText is String.
func (d DevNum) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *DevNum) UnmarshalText(b []byte) (err error) {
	*d, err = parseDevNum(string(b))
	return err
}
