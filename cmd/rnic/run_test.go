package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/rnic"
)

// fakeHost records what is asked of it and answers from fields.
type fakeHost struct {
	rnics     []rnic.RNIC
	listErr   error
	linkErr   error
	waitErr   error
	calls     []string
	hadToWait bool // WaitUsable had a deadline
}

func (f *fakeHost) List() ([]rnic.RNIC, error) { return f.rnics, f.listErr }

func (f *fakeHost) Find(name string) (rnic.RNIC, error) {
	for _, r := range f.rnics {
		if r.Name == name {
			return r, nil
		}
	}
	return rnic.RNIC{}, &rnic.OpError{Op: "list", Object: name, Err: rnic.ErrNotFound}
}

// ReadCounters gives an RNIC's Problems, and counters to one that has none.
func (f *fakeHost) ReadCounters(name string) (rnic.Counters, error) {
	r, err := f.Find(name)
	c := rnic.Counters{RNIC: name, Problems: r.Problems}
	if err == nil && r.Problems == nil {
		c.Counters = []rnic.Counter{{Source: rnic.CounterHW, Name: "vport_loopback", Value: 7}, {Source: rnic.CounterPort, Port: 1, Name: "a\x1b[2J", Value: 1 << 63}}
	}
	return c, err
}

func (f *fakeHost) AddLink(_ context.Context, l rnic.Link) error {
	f.calls = append(f.calls, fmt.Sprintf("add %+v", l))
	return f.linkErr
}

func (f *fakeHost) DelLink(_ context.Context, name string) error {
	f.calls = append(f.calls, "del "+name)
	return f.linkErr
}

func (f *fakeHost) WaitUsable(ctx context.Context, name string) error {
	f.calls = append(f.calls, "wait "+name)
	_, f.hadToWait = ctx.Deadline()
	return f.waitErr
}

func mustGID(s string) rnic.GID {
	g, err := rnic.ParseGID(s)
	if err != nil {
		panic(err)
	}
	return g
}

// machine has a whole RNIC, one without a port that could be read, and a name
// that means harm.
func machine() []rnic.RNIC {
	return []rnic.RNIC{
		{
			Name: "mlx5_0", Driver: "mlx5", Protocol: rnic.ProtocolRoCE, NodeType: rnic.NodeCA, Firmware: "20.31.1014",
			NodeDescription: "node17 mlx5_0", PCI: "0000:3b:00.0", NUMANode: 1,
			NodeGUID: rnic.GUID{0xb8, 0x59, 0x9f, 3, 0, 0xd1, 0x0a, 0x2c},
			Ports: []rnic.Port{{
				Number: 1, Protocol: rnic.ProtocolRoCE, LinkLayer: rnic.LinkLayerEthernet, State: rnic.PortStateActive,
				PhysState: rnic.PhysStateLinkUp, Netdev: "ens1f0np0", NetdevIndex: 4, NetdevMTU: 9000, NetdevAddress: "b8:59:9f:d1:0a:2c",
				Netdevs: []string{"ens1f0np0", "ens1f0np0.100"}, ActiveMTU: 4096, Rate: "100 Gb/sec (2X HDR)", RateGbps: 100, GIDTableLen: 256,
				GIDs: []rnic.GIDEntry{{Index: 3, GID: mustGID("0000:0000:0000:0000:0000:ffff:c000:0211"), Type: rnic.GIDTypeRoCEv2, Netdev: "ens1f0np0"}},
			}},
			CharDevices: []rnic.CharDevice{
				{Kind: "uverbs", Path: "/dev/infiniband/uverbs0", Dev: rnic.DevNum{Major: 231, Minor: 192}, Present: true},
				{Kind: "umad", Path: "/dev/infiniband/umad0", Dev: rnic.DevNum{Major: 231}, Port: 1},
			},
		},
		{
			Name: "a\x1b[2J\tb", NUMANode: -1,
			Problems: []rnic.Problem{{Source: "/sys/class/infiniband/a\x1b[2J\tb", Err: unix.ENODEV}},
		},
	}
}

func invoke(t *testing.T, h host, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	status = runOn(t.Context(), h, args, &out, &errOut)
	return status, out.String(), errOut.String()
}

func TestListTable(t *testing.T) {
	h := &fakeHost{rnics: machine()}
	status, stdout, stderr := invoke(t, h, "list")
	want := `
NAME           DRIVER  PROTOCOL  PORT  STATE   NETDEV     MTU   ACTIVE MTU  GIDS  RATE                 PCI           NUMA
mlx5_0         mlx5    RoCE      1     ACTIVE  ens1f0np0  9000  4096        1     100 Gb/sec (2X HDR)  0000:3b:00.0  1
"a\x1b[2J\tb"  ?       unknown   ?     ?       ?          ?     ?           ?     ?                    ?             ?
`
	if d := cmp.Diff(want[1:], stdout); d != "" {
		t.Errorf("stdout: -want +got\n%s", d)
	}
	wantErr := `rnic: "a\x1b[2J\tb": cannot read "/sys/class/infiniband/a\x1b[2J\tb": no such device` + "\n"
	if stderr != wantErr {
		t.Errorf("stderr %q, want %q", stderr, wantErr)
	}
	if status != exitFailed {
		t.Errorf("status %d, want %d: something could not be read", status, exitFailed)
	}
}

func TestListVerbose(t *testing.T) {
	status, stdout, stderr := invoke(t, &fakeHost{rnics: machine()[:1]}, "list", "-v", "mlx5_0")
	want := `
mlx5_0
  driver                 mlx5
  protocol               RoCE
  node type              ca
  node GUID              b859:9f03:00d1:0a2c
  system image GUID      0000:0000:0000:0000
  firmware               20.31.1014
  node description       node17 mlx5_0
  PCI address            0000:3b:00.0
  NUMA node              1
  uverbs device          /dev/infiniband/uverbs0 (231:192)
  umad device of port 1  /dev/infiniband/umad0 (231:0), MISSING
  port 1                 ACTIVE (physical: LINK_UP)
    protocol             RoCE
    link layer           Ethernet
    rate                 100 Gb/sec (2X HDR)
    active MTU           4096 bytes
    netdev               ens1f0np0 (index 4, MTU 9000, address b8:59:9f:d1:0a:2c)
    netdevs              ens1f0np0, ens1f0np0.100
    GID table            1 of 256 entries used
      GID 3              0000:0000:0000:0000:0000:ffff:c000:0211 (192.0.2.17), RoCE v2, ens1f0np0
`
	if d := cmp.Diff(want[1:], stdout); d != "" {
		t.Errorf("stdout: -want +got\n%s", d)
	}
	if status != exitOK || stderr != "" {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
}

func TestListJSON(t *testing.T) {
	_, stdout, _ := invoke(t, &fakeHost{rnics: machine()}, "list", "--json")
	var got []map[string]any
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got) != 2 {
		t.Fatalf("%v: %s", err, stdout)
	}
	port := got[0]["ports"].([]any)[0].(map[string]any)
	for key, want := range map[string]any{"state": "ACTIVE", "phys_state": "LINK_UP", "active_mtu": 4096.0, "rate_gbps": 100.0, "netdev": "ens1f0np0"} {
		if port[key] != want {
			t.Errorf("%s is %v, want %v", key, port[key], want)
		}
	}
	if p := got[1]["problems"].([]any); p[0] != `"/sys/class/infiniband/a\x1b[2J\tb": no such device` {
		t.Errorf("problems %v", p)
	}
}

func TestCounters(t *testing.T) {
	status, stdout, stderr := invoke(t, &fakeHost{rnics: machine()}, "counters")
	want := `
NAME    PORT  SOURCE       COUNTER         VALUE
mlx5_0  -     hw_counters  vport_loopback  7
mlx5_0  1     counters     "a\x1b[2J"      9223372036854775808
`
	if d := cmp.Diff(want[1:], stdout); d != "" {
		t.Errorf("stdout: -want +got\n%s", d)
	}
	if status != exitFailed || !strings.HasPrefix(stderr, `rnic: "a\x1b[2J\tb": cannot read `) {
		t.Errorf("status %d, stderr %q: something could not be read", status, stderr)
	}
	status, stdout, _ = invoke(t, &fakeHost{rnics: machine()}, "counters", "mlx5_0", "--json")
	var got []rnic.Counters
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || status != exitOK || len(got) != 1 || got[0].Counters[1].Value != 1<<63 {
		t.Errorf("status %d, %v: %s", status, err, stdout)
	}
}

func TestExitStatus(t *testing.T) {
	broken := &rnic.OpError{Op: "add", Object: "rxe0", Err: unix.EPERM, Hint: "sudo"}
	tests := []struct {
		args   string
		host   fakeHost
		status int
		stdout string
		stderr string // a part of it; empty: nothing
		calls  []string
	}{
		{args: "list", stderr: "no RNIC here"},
		{args: "list --json", stdout: "[]\n"},
		{args: "list", host: fakeHost{listErr: broken}, status: 1, stderr: "rnic: add rxe0: operation not permitted: sudo\n"},
		{args: "list --json", host: fakeHost{listErr: broken}, status: 1, stdout: "[]\n", stderr: "not permitted"},
		{args: "counters"},
		{args: "counters --json", stdout: "[]\n"},
		{args: "counters --json", host: fakeHost{listErr: broken}, status: 1, stdout: "[]\n", stderr: "not permitted"},
		{args: "counters nosuch", status: 1, stderr: "rnic: no RNIC nosuch; `rnic list` shows all\n"},
		{args: "counters --what", status: 2, stderr: "rnic: unknown flag: --what; see `rnic counters --help`\n"},
		{args: "list nosuch", status: 1, stderr: "rnic: no RNIC nosuch; `rnic list` shows all\n"},
		{args: "list -v --json", status: 2, stderr: "--json"},
		{args: "list --what", status: 2, stderr: "rnic: unknown flag: --what; see `rnic list --help`\n"},
		{args: "", status: 2, stderr: "no command given"},
		{args: "lsit", status: 2, stderr: `no command "lsit"`},

		{args: "add rxe0 --type rxe --netdev eth0", calls: []string{"add {Name:rxe0 Type:rxe Netdev:eth0}", "wait rxe0"}},
		{args: "add siw0 --type siw --netdev eth0 --wait 0", calls: []string{"add {Name:siw0 Type:siw Netdev:eth0}"}},
		{args: "add rxe0 --type rxe --netdev eth0", host: fakeHost{linkErr: broken}, status: 1,
			stderr: "rnic: add rxe0: operation not permitted: sudo\n", calls: []string{"add {Name:rxe0 Type:rxe Netdev:eth0}"}},
		{args: "add rxe0 --type rxe --netdev eth0", host: fakeHost{waitErr: errors.New("down")}, status: 1,
			stderr: "rnic: down\n", calls: []string{"add {Name:rxe0 Type:rxe Netdev:eth0}", "wait rxe0"}},
		{args: "add rxe0 --type rxe --netdev eth0 --wait 2s",
			host:   fakeHost{waitErr: &rnic.OpError{Op: "wait", Object: "rxe0", Err: context.DeadlineExceeded, Hint: "still missing: a port"}},
			status: 1, stderr: "rnic: rxe0 is added, but not usable after 2s: still missing: a port\n",
			calls: []string{"add {Name:rxe0 Type:rxe Netdev:eth0}", "wait rxe0"}},
		{args: "add", status: 2, stderr: "arg"},
		{args: "add a b", status: 2, stderr: "arg"},
		{args: "add rxe0 --netdev eth0", status: 2, stderr: "--type"},
		{args: "add rxe0 --type mlx5 --netdev eth0", status: 2, stderr: "--type must be rxe or siw"},
		{args: "add rxe0 --type rxe", status: 2, stderr: "--netdev"},
		{args: "add rxe0 --type rxe --netdev eth0 --wait -1s", status: 2, stderr: "--wait"},
		{args: "add rxe0 --type rxe --netdev eth0 --wait soon", status: 2, stderr: "--wait"},

		{args: "del rxe0", calls: []string{"del rxe0"}},
		{args: "del rxe0 siw0", host: fakeHost{linkErr: broken}, status: 1, stderr: "not permitted", calls: []string{"del rxe0", "del siw0"}},
		{args: "del", status: 2, stderr: "arg"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			status, stdout, stderr := invoke(t, &tt.host, strings.Fields(tt.args)...)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			if stdout != tt.stdout {
				t.Errorf("stdout %q, want %q", stdout, tt.stdout)
			}
			if !strings.Contains(stderr, tt.stderr) || tt.stderr == "" && stderr != "" {
				t.Errorf("stderr %q, want %q in it", stderr, tt.stderr)
			}
			if d := cmp.Diff(tt.calls, tt.host.calls); d != "" {
				t.Errorf("calls: -want +got\n%s", d)
			}
			if len(tt.host.calls) == 2 && strings.HasPrefix(tt.args, "add") && !tt.host.hadToWait {
				t.Error("waits without a deadline")
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"--help", "list --help", "counters --help", "add --help", "del --help"} {
		status, stdout, stderr := invoke(t, &fakeHost{}, strings.Fields(args)...)
		if status != exitOK || stderr != "" || !strings.Contains(stdout, "Usage:") {
			t.Errorf("%s: status %d, stderr %q, stdout %q", args, status, stderr, stdout)
		}
	}
}

// The real host, wherever the test runs: it must answer in JSON, in time.
func TestRunReal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errOut bytes.Buffer
	status := run(ctx, []string{"list", "--json"}, &out, &errOut)
	var got []rnic.RNIC
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Errorf("status %d, stdout %q: %v", status, out.String(), err)
	}
	if (status == exitOK) != (errOut.Len() == 0) {
		t.Errorf("status %d with stderr %q", status, errOut.String())
	}
}
