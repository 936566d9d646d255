package rnic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// message builds a netlink payload of (type, value) pairs: numbers by their Go
// width, strings with a NUL.
func message(pairs ...any) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		var v []byte
		switch x := pairs[i+1].(type) {
		case string:
			v = append([]byte(x), 0)
		case []byte:
			v = x
		default:
			v, _ = binary.Append(nil, binary.NativeEndian, x)
		}
		b = binary.NativeEndian.AppendUint16(b, uint16(len(v)+attrHeader))
		b = binary.NativeEndian.AppendUint16(b, uint16(pairs[i].(int)))
		b = append(b, v...)
		b = append(b, make([]byte, -len(v)&3)...)
	}
	return b
}

func deviceMessage(index uint32, name, protocol string, node uint8) []byte {
	return message(
		nl.RDMA_NLDEV_ATTR_DEV_INDEX, index, nl.RDMA_NLDEV_ATTR_DEV_NAME, name,
		nl.RDMA_NLDEV_ATTR_PORT_INDEX, uint32(1), nl.RDMA_NLDEV_ATTR_CAP_FLAGS, uint64(0x1223c76),
		nl.RDMA_NLDEV_ATTR_FW_VERSION, "1.2.3",
		nl.RDMA_NLDEV_ATTR_NODE_GUID, uint64(0x6c5ed5fffe6e1b0f), nl.RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, uint64(0x6c5ed5fffe6e1b10),
		nl.RDMA_NLDEV_ATTR_DEV_NODE_TYPE, node, nldevAttrDevProtocol, protocol,
	)
}

func portMessage(index, port uint32, state, phys uint8, netdev string, ifindex uint32) []byte {
	m := message(
		nl.RDMA_NLDEV_ATTR_DEV_INDEX, index, nl.RDMA_NLDEV_ATTR_DEV_NAME, "any", nl.RDMA_NLDEV_ATTR_PORT_INDEX, port,
		nl.RDMA_NLDEV_ATTR_PORT_STATE, state, nl.RDMA_NLDEV_ATTR_PORT_PHYS_STATE, phys,
	)
	if netdev != "" {
		m = append(m, message(nldevAttrNdevIndex, ifindex, nl.RDMA_NLDEV_ATTR_NDEV_NAME, netdev)...)
	}
	return m
}

// fakeNetlink answers from tables: payloads by command and device index.
type fakeNetlink struct {
	devices [][]byte
	ports   map[uint32][][]byte
	uverbs  map[uint32][]byte
	err     map[int]error // by command
}

func (f *fakeNetlink) query(cmd, _ int, req ...*nl.RtAttr) ([][]byte, error) {
	if err := f.err[cmd]; err != nil {
		return nil, err
	}
	if cmd == nl.RDMA_NLDEV_CMD_GET {
		return f.devices, nil
	}
	index := binary.NativeEndian.Uint32(req[0].Data)
	if cmd == nldevCmdPortGet {
		return f.ports[index], nil
	}
	if m, ok := f.uverbs[index]; ok {
		return [][]byte{m}, nil
	}
	return nil, unix.EOPNOTSUPP
}

func uverbsMessage(driver uint32) []byte {
	return message(nldevAttrChardevName, "uverbs0", nldevAttrChardevABI, uint64(1), nldevAttrChardev, uint64(231<<8|192), nldevAttrDriverID, driver)
}

// withNetlink adds a netlink source to a Host that reads a tree.
func withNetlink(h Host, f *fakeNetlink) Host {
	h.NoNetlink = false
	h.fake = &kernel{query: f.query}
	return h
}

func TestParseDevice(t *testing.T) {
	got, err := parseDevice(deviceMessage(7, "rxe0", "roce", 1))
	if err != nil {
		t.Fatal(err)
	}
	want := nldevDevice{
		index: 7, name: "rxe0", firmware: "1.2.3", ports: 1, nodeType: NodeCA, protocol: ProtocolRoCE,
		nodeGUID:     GUID{0x6c, 0x5e, 0xd5, 0xff, 0xfe, 0x6e, 0x1b, 0x0f},
		sysImageGUID: GUID{0x6c, 0x5e, 0xd5, 0xff, 0xfe, 0x6e, 0x1b, 0x10},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseAttrsRefuses(t *testing.T) {
	good := deviceMessage(7, "rxe0", "roce", 1)
	tests := map[string][]byte{
		"length below header":   {3, 0, 1, 0},
		"length above message":  {9, 0, 1, 0, 0, 0, 0, 0},
		"bytes after the last":  append(slices.Clone(good), 1, 2),
		"device without a name": message(nl.RDMA_NLDEV_ATTR_DEV_INDEX, uint32(1)),
		"no attribute":          {},
	}
	for name, b := range tests {
		if d, err := parseDevice(b); err == nil {
			t.Errorf("%s: %+v, want an error", name, d)
		}
	}
	if _, err := parsePort(message(nl.RDMA_NLDEV_ATTR_PORT_STATE, uint8(4))); err == nil {
		t.Error("port without number: want an error")
	}
	for _, name := range []string{"", "../mem", "a/b"} {
		if _, err := parseChardev(message(nldevAttrChardevName, name)); err == nil {
			t.Errorf("char device %q: want an error", name)
		}
	}
	// The last attribute may lack its padding.
	if a, err := parseAttrs([]byte{5, 0, 1, 0, 42}); err != nil || a.num(1) != 42 {
		t.Errorf("unpadded: %v, %v", a, err)
	}
}

func TestListNetlink(t *testing.T) {
	h := withNetlink(tree(t, "rxe"), &fakeNetlink{
		devices: [][]byte{deviceMessage(2, "siw0", "iw", 4), deviceMessage(1, "rxe0", "roce", 1)},
		ports: map[uint32][][]byte{
			1: {portMessage(1, 1, 4, 5, "rxenet0", 2)},
			2: {portMessage(2, 1, 1, 3, "siwnet0", 3)},
		},
		uverbs: map[uint32][]byte{1: uverbsMessage(14), 2: uverbsMessage(18)},
	})
	rnics, err := h.List()
	if err != nil {
		t.Fatal(err)
	}
	var got, problems []string
	for _, r := range rnics {
		got = append(got, brief(r)...)
		problems = append(problems, problemLines(h, r)...)
	}
	// rxe1 is in the tree and not in netlink: it is not in this namespace.
	want := []string{
		`rxe0 rxe RoCE ca guid=6c5e:d5ff:fe6e:1b0f fw="1.2.3" desc="rxe0" pci= numa=-1 uverbs0=231:192,umad0=231:0,issm0=231:64,rdma_cm=10:126`,
		`  1 RoCE ACTIVE/LINK_UP Ethernet rxenet0/2 [rxenet0] mtu=4200/4096 "2.5 Gb/sec (1X SDR)"=2.5 lid=0x0 gids=2/1024`,
		`siw0 siw iWARP rnic guid=6c5e:d5ff:fe6e:1b0f fw="1.2.3" desc="" pci= numa=-1 rdma_cm=10:126`,
		`  1 iWARP DOWN/DISABLED Unknown siwnet0/3 [siwnet0] mtu=0/0 ""=0 lid=0x0 gids=0/0`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	wantProblems := []string{
		"class/infiniband/siw0: no such file or directory",
		"class/infiniband/siw0/ports/1/link_layer: no such file or directory",
		"class/net/siwnet0/mtu: no such file or directory",
	}
	if d := cmp.Diff(wantProblems, problems); d != "" {
		t.Errorf("problems: -want +got\n%s", d)
	}
}

func TestListNetlinkHostileName(t *testing.T) {
	name := "../../../../etc"
	h := withNetlink(tree(t, "siw"), &fakeNetlink{devices: [][]byte{deviceMessage(1, name, "roce", 1)}})
	rnics, err := h.List()
	if err != nil || len(rnics) != 1 {
		t.Fatalf("%v, %v", rnics, err)
	}
	if r := rnics[0]; r.Name != name || len(r.Ports) != 0 || len(r.Problems) != 1 {
		t.Errorf("got %+v, want the name, one problem and nothing read", r)
	}
}

func TestListNetlinkFails(t *testing.T) {
	denied := &fakeNetlink{err: map[int]error{nl.RDMA_NLDEV_CMD_GET: unix.EPERM}}
	if rnics, err := withNetlink(tree(t, "no_device"), denied).List(); !errors.Is(err, unix.EPERM) {
		t.Errorf("nothing in sysfs: %v, %v, want EPERM: it may be hidden", rnics, err)
	}
	rnics, err := withNetlink(tree(t, "siw"), denied).List()
	if err != nil || len(rnics) != 1 || len(rnics[0].Problems) != 1 || rnics[0].Problems[0].Err != unix.EPERM {
		t.Errorf("siw in sysfs: %+v, %v, want it with EPERM as its problem", rnics, err)
	}
	if _, err := withNetlink(tree(t, "unreadable_class"), denied).List(); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("both fail: %v, want one line", err)
	}
	none := &fakeNetlink{err: map[int]error{nl.RDMA_NLDEV_CMD_GET: errNoNetlink}}
	if rnics, err := withNetlink(tree(t, "no_rdma"), none).List(); err != nil || len(rnics) != 0 {
		t.Errorf("no RDMA: %v, %v, want an empty list", rnics, err)
	}
	ports := &fakeNetlink{
		devices: [][]byte{deviceMessage(1, "rxe0", "roce", 1)},
		err:     map[int]error{nldevCmdPortGet: unix.ENODEV},
	}
	rnics, err = withNetlink(tree(t, "half_removed"), ports).List()
	if err != nil || len(rnics) != 1 {
		t.Fatalf("%v, %v", rnics, err)
	}
	if p := rnics[0].Ports[0]; p.State != PortStateActive || p.Netdev != "rxenet0" || len(rnics[0].Problems) != 1 {
		t.Errorf("ports from sysfs: %+v, problems %v", p, rnics[0].Problems)
	}
}

// A device that goes away while it is read is not listed.
func TestListRemovedMeanwhile(t *testing.T) {
	f := &fakeNetlink{devices: [][]byte{deviceMessage(1, "gone0", "roce", 1)}}
	h := withNetlink(tree(t, "siw"), f)
	h.fake.query = func(cmd, flags int, req ...*nl.RtAttr) ([][]byte, error) {
		msgs, err := f.query(cmd, flags, req...)
		f.devices = nil
		return msgs, err
	}
	if rnics, err := h.List(); err != nil || len(rnics) != 0 {
		t.Errorf("%v, %v, want an empty list", rnics, err)
	}
}

func FuzzNetlink(f *testing.F) {
	f.Add(deviceMessage(7, "rxe0", "roce", 1))
	f.Add(portMessage(7, 1, 4, 5, "eth0", 2))
	f.Add(uverbsMessage(14))
	f.Add([]byte{5, 0, 1, 0, 42})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := slices.Clone(b)
		if d, err := parseDevice(b); err == nil && (d.ports < 0 || strings.ContainsRune(d.name, 0)) {
			t.Errorf("device %+v", d)
		}
		if p, err := parsePort(b); err == nil && (p.port <= 0 || p.ifindex < 0) {
			t.Errorf("port %+v", p)
		}
		if c, err := parseChardev(b); err == nil && checkName("", c.name, maxName) != nil {
			t.Errorf("char device %+v", c)
		}
		if !bytes.Equal(in, b) {
			t.Error("input changed")
		}
	})
}
