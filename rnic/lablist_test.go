package rnic_test

import (
	"encoding/json"
	"net"
	"net/netip"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/Mellanox/rdmamap"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/rnic"
)

// rdmaLink and rdmaDev are what rdma(8) prints.
type rdmaLink struct {
	Ifindex     uint32 `json:"ifindex"`
	Ifname      string `json:"ifname"`
	Port        int    `json:"port"`
	State       string `json:"state"`
	PhysState   string `json:"physical_state"`
	Netdev      string `json:"netdev"`
	NetdevIndex int    `json:"netdev_index"`
}

type rdmaDev struct {
	Ifindex      uint32 `json:"ifindex"`
	Ifname       string `json:"ifname"`
	NodeType     string `json:"node_type"`
	Firmware     string `json:"fw"`
	NodeGUID     string `json:"node_guid"`
	SysImageGUID string `json:"sys_image_guid"`
}

func TestLabLinkShow(t *testing.T) {
	var got []rdmaLink
	for _, r := range labRNICs(t) {
		for _, p := range r.Ports {
			got = append(got, rdmaLink{r.Index, r.Name, p.Number, p.State.String(), p.PhysState.String(), p.Netdev, p.NetdevIndex})
		}
	}
	var want []rdmaLink
	if err := json.Unmarshal([]byte(output(t, "rdma", "-j", "link", "show")), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(byName(want), byName(got)); d != "" {
		t.Errorf("-rdma link show +rnic\n%s", d)
	}
}

func byName(links []rdmaLink) map[string]rdmaLink {
	out := map[string]rdmaLink{}
	for _, l := range links {
		out[l.Ifname+"/"+strconv.Itoa(l.Port)] = l
	}
	return out
}

func TestLabDevShow(t *testing.T) {
	got := map[string]rdmaDev{}
	for _, r := range labRNICs(t) {
		got[r.Name] = rdmaDev{r.Index, r.Name, r.NodeType.String(), r.Firmware, r.NodeGUID.String(), r.SysImageGUID.String()}
	}
	var shown []rdmaDev
	if err := json.Unmarshal([]byte(output(t, "rdma", "-j", "dev", "show")), &shown); err != nil {
		t.Fatal(err)
	}
	want := map[string]rdmaDev{}
	for _, d := range shown {
		want[d.Ifname] = d
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-rdma dev show +rnic\n%s", d)
	}
}

// devinfo is what ibv_devinfo -v and package rnic both know.
type devinfo struct {
	Transport, Firmware, NodeGUID, SysImageGUID string
	Ports                                       map[int]devinfoPort
}

type devinfoPort struct {
	State, PhysState, LinkLayer string
	ActiveMTU                   int
	LID                         uint32
	GIDTableLen                 int
	GIDs                        map[int]string // "GID, type"
}

func TestLabDevinfo(t *testing.T) {
	for _, r := range labRNICs(t) {
		t.Run(r.Name, func(t *testing.T) {
			want := readDevinfo(t, r.Name)
			got := devinfoOf(r)
			if got.Firmware == "" {
				// Where the kernel has no firmware version libibverbs
				// prints zeroes.
				want.Firmware = strings.Trim(want.Firmware, "0.")
			}
			for n, p := range got.Ports {
				w := want.Ports[n]
				if p.ActiveMTU == 0 { // InfiniBand: verbs only
					w.ActiveMTU = 0
				}
				if r.Protocol == rnic.ProtocolIWARP { // ibv_devinfo prints neither
					w.PhysState = p.PhysState
					w.GIDs = map[int]string{0: macGID(t, r.Ports[n-1].NetdevAddress)}
				}
				want.Ports[n] = w
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-ibv_devinfo +rnic\n%s", d)
			}
		})
	}
}

// macGID is the one GID of an iWARP port.
func macGID(t *testing.T, mac string) string {
	t.Helper()
	a, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	var g rnic.GID
	copy(g[:], a)
	return g.String()
}

func devinfoOf(r rnic.RNIC) devinfo {
	out := devinfo{
		Transport: "InfiniBand (0)", Firmware: r.Firmware, NodeGUID: r.NodeGUID.String(), SysImageGUID: r.SysImageGUID.String(),
		Ports: map[int]devinfoPort{},
	}
	if r.NodeType == rnic.NodeRNIC {
		out.Transport = "iWARP (1)"
	}
	for _, p := range r.Ports {
		port := devinfoPort{
			State: p.State.String(), PhysState: p.PhysState.String(), LinkLayer: p.LinkLayer.String(),
			ActiveMTU: p.ActiveMTU, LID: p.LID, GIDTableLen: p.GIDTableLen, GIDs: map[int]string{},
		}
		for _, g := range p.GIDs {
			port.GIDs[g.Index] = g.GID.String()
			if g.Type == rnic.GIDTypeRoCEv1 || g.Type == rnic.GIDTypeRoCEv2 {
				port.GIDs[g.Index] += ", " + g.Type.String()
			}
		}
		out.Ports[p.Number] = port
	}
	return out
}

var devinfoLine = regexp.MustCompile(`^\s*([^:]+):\s+(.*?)\s*$`)

func readDevinfo(t *testing.T, name string) devinfo {
	t.Helper()
	out := devinfo{Ports: map[int]devinfoPort{}}
	port := 0
	for _, line := range strings.Split(output(t, "ibv_devinfo", "-v", "-d", name), "\n") {
		m := devinfoLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		key, value := m[1], m[2]
		p := out.Ports[port]
		if p.GIDs == nil {
			p.GIDs = map[int]string{}
		}
		word, _, _ := strings.Cut(value, " ")
		switch {
		case key == "transport":
			out.Transport = value
		case key == "fw_ver":
			out.Firmware = value
		case key == "node_guid":
			out.NodeGUID = value
		case key == "sys_image_guid":
			out.SysImageGUID = value
		case key == "port":
			port, p = number(t, value), devinfoPort{GIDs: map[int]string{}}
		case key == "state":
			p.State = strings.TrimPrefix(word, "PORT_")
		case key == "phys_state":
			p.PhysState = word
		case key == "link_layer":
			p.LinkLayer = value
		case key == "active_mtu":
			p.ActiveMTU = number(t, word)
		case key == "port_lid":
			p.LID = uint32(number(t, value))
		case key == "gid_tbl_len":
			p.GIDTableLen = number(t, value)
		case strings.HasPrefix(key, "GID["):
			p.GIDs[number(t, strings.Trim(key, "GID[ ]"))] = devinfoGID(t, value)
		}
		if port > 0 {
			out.Ports[port] = p
		}
	}
	return out
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// devinfoGID writes a GID in full: ibv_devinfo prints some as an IPv6 address.
func devinfoGID(t *testing.T, value string) string {
	t.Helper()
	text, typ, hasType := strings.Cut(value, ", ")
	if a, err := netip.ParseAddr(text); err == nil {
		text = rnic.GIDFromAddr(a).String()
	}
	if hasType {
		text += ", " + typ
	}
	return text
}

func TestLabCharDevices(t *testing.T) {
	for _, r := range labRNICs(t) {
		got := map[string]bool{}
		uverbs := 0
		for _, c := range r.CharDevices {
			got[c.Path] = true
			if !c.Present {
				t.Errorf("%s: %s is not there", r.Name, c.Path)
			}
			if c.Kind == "uverbs" {
				uverbs++
			}
		}
		if uverbs != 1 {
			t.Errorf("%s has %d uverbs devices: %v", r.Name, uverbs, r.CharDevices)
		}
		for _, path := range rdmamap.GetRdmaCharDevices(r.Name) {
			if !got[path] {
				t.Errorf("%s: rdmamap finds %s, which is not in %v", r.Name, path, r.CharDevices)
			}
		}
	}
}

// A healthy machine has nothing that cannot be read, and each RoCE or iWARP
// GID has its netdev.
func TestLabComplete(t *testing.T) {
	for _, r := range labRNICs(t) {
		for _, p := range r.Problems {
			t.Errorf("%s: %v", r.Name, p)
		}
		if r.Driver == "" || r.Protocol == rnic.ProtocolUnknown {
			t.Errorf("%s: driver %q, protocol %v", r.Name, r.Driver, r.Protocol)
		}
		for _, p := range r.Ports {
			for _, g := range p.GIDs {
				if p.Protocol != rnic.ProtocolIB && g.Netdev == "" {
					t.Errorf("%s port %d: GID %d has no netdev", r.Name, p.Number, g.Index)
				}
			}
		}
	}
}

// Sysfs alone and netlink with sysfs agree, so that each can stand in for the
// other.
func TestLabSourcesAgree(t *testing.T) {
	want := labRNICs(t)
	got, err := rnic.Host{NoNetlink: true}.List()
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].Index = 0 // netlink's alone
		if i < len(got) && got[i].Driver == want[i].Driver+"_core" {
			got[i].Driver = want[i].Driver // sysfs knows the PCI driver only
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-netlink and sysfs +sysfs\n%s", d)
	}
}

// Reading needs no privilege.
func TestLabUnprivileged(t *testing.T) {
	want := labRNICs(t)
	type result struct {
		rnics []rnic.RNIC
		err   error
	}
	done := make(chan result)
	go func() {
		// Of this thread alone, which ends here: unix.Setresuid would
		// change the whole process.
		runtime.LockOSThread()
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 && unix.Geteuid() == 0 {
			done <- result{err: errno}
			return
		}
		rnics, err := rnic.List()
		done <- result{rnics, err}
	}()
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	if d := cmp.Diff(want, got.rnics); d != "" {
		t.Errorf("-before +unprivileged\n%s", d)
	}
}
