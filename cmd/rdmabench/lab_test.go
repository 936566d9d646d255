package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rnic"
)

// transportsHere are the transports that this machine has devices for, in the
// tables' order. Without a device the test skips, or fails where one is required.
func transportsHere(t *testing.T) []string {
	t.Helper()
	verbstest.Device(t)
	rnics, err := rnic.List()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{bench.TransportTCP: true}
	for _, r := range rnics {
		have[bench.TransportRoCE] = have[bench.TransportRoCE] || r.Protocol == rnic.ProtocolRoCE
		have[bench.TransportIWARP] = have[bench.TransportIWARP] || r.Protocol == rnic.ProtocolIWARP
	}
	var list []string
	for _, name := range bench.AllTransports() {
		if have[name] {
			list = append(list, name)
		}
	}
	return list
}

// checkAll makes sure that everything was measured, and every message compared.
func checkAll(t *testing.T, r *bench.Report, transports []string) {
	t.Helper()
	if r.Planned != len(r.Measurements) || len(r.Connections) != len(transports) || r.Partial != "" {
		t.Errorf("%d of %d measurements over %d connections, %q", len(r.Measurements), r.Planned, len(r.Connections), r.Partial)
	}
	for _, c := range r.Connections {
		if (c.Transport != bench.TransportTCP) != (c.Client.Device != "") {
			t.Errorf("connection %+v", c)
		}
	}
	for _, m := range r.Measurements {
		want := int64(m.Iterations)
		if m.Kind == bench.KindLatency && m.Op != bench.OpRead {
			want *= 2
		}
		if m.Error != "" || m.Verified == nil || m.Verified.Messages != want || m.Verified.Bytes != want*int64(m.SizeBytes) {
			t.Errorf("%s %s %s %d bytes: %q, verified %+v, want %d messages", m.Transport, m.Op, m.Mode, m.SizeBytes, m.Error, m.Verified, want)
		}
	}
	if r.Client.RDMACore == "" {
		t.Error("the version of rdma-core is not in the report")
	}
}

// TestLabCompare compares all transports in both modes.
func TestLabCompare(t *testing.T) {
	transports := transportsHere(t)
	file := t.TempDir() + "/results.json"
	status, out, errOut := runApp(t, &app{}, "compare", "--transports="+strings.Join(transports, ","), "--sizes=1,4K,64K", "--iters=10", "--json="+file)
	if status != 0 || errOut != "" {
		t.Fatalf("status %d, stderr %q\n%s", status, errOut, out)
	}
	checkAll(t, readReport(t, file), transports)
	t.Log("\n" + out)
}

// TestLabServerAndClient uses the control connection that two hosts have.
func TestLabServerAndClient(t *testing.T) {
	transports := transportsHere(t)
	p := startServerProcess(t)
	file := t.TempDir() + "/results.json"
	status, _, errOut := runApp(t, &app{}, "client", p.address, "--transports="+strings.Join(transports, ","), "--sizes=64,32K", "--iters=10", "--json="+file)
	if status != 0 || errOut != "" {
		t.Fatalf("status %d, stderr %q; the server:\n%s", status, errOut, p.err.String())
	}
	checkAll(t, readReport(t, file), transports)
}

// TestLabServerKilled: with the server process gone in the middle of a run, the client
// says so and leaves nothing behind (TestMain looks), and a new run works at once.
func TestLabServerKilled(t *testing.T) {
	for _, name := range transportsHere(t) {
		for _, mode := range []string{"poll", "event"} {
			for _, op := range []string{"send", "write", "read"} {
				t.Run(name+" "+mode+" "+op, func(t *testing.T) {
					var child *exec.Cmd
					a := &app{transports: func(addr addresses) (map[string]bench.Transport, error) {
						all, err := makeTransports(addr)
						all[name] = killer{all[name], func() { child.Process.Kill() }}
						return all, err
					}}
					a.self = recordChild(t, func(cmd *exec.Cmd) { child = cmd })
					// More messages than anything does before the kill shows.
					status, out, errOut := runApp(t, a, "compare", "--transports="+name, "--mode="+mode, "--ops="+op, "--sizes=64", "--iters=1000000000")
					if status != 1 || errOut != "rdmabench: the server closed the control connection; the server process: signal: killed\n" {
						t.Errorf("status %d, stderr %q\n%s", status, errOut, out)
					}
				})
			}
		}
	}
	transports := strings.Join(transportsHere(t), ",")
	if status, out, errOut := runApp(t, &app{}, "compare", "--transports="+transports, "--mode=event", "--sizes=64", "--iters=5"); status != 0 {
		t.Errorf("after it: status %d, stderr %q\n%s", status, errOut, out)
	}
}

// killer kills the server when a client's run begins.
type killer struct {
	bench.Transport
	kill func()
}

type killerConn struct {
	bench.Conn
	kill func()
}

func (k killer) Dial(ctx context.Context, p bench.Params, address string) (bench.Conn, error) {
	conn, err := k.Transport.Dial(ctx, p, address)
	return killerConn{conn, k.kill}, err
}

func (k killerConn) Active(ctx context.Context, t bench.Task, r *bench.Recorder) error {
	k.kill()
	return k.Conn.Active(ctx, t, r)
}

// TestLabWrongAddress: an address of the other kind of device is refused by name.
func TestLabWrongAddress(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		name := bench.TransportIWARP
		if target.Dev.Info().Transport == ibverbs.TransportIWARP {
			name = bench.TransportRoCE
		}
		status, out, errOut := runApp(t, &app{}, "compare", "--transports="+name, "--"+name+"-addr="+target.Addr.String(), "--sizes=64", "--ops=send", "--mode=poll")
		if status != 1 || errOut != "rdmabench: 1 of 1 measurements failed\n" {
			t.Errorf("status %d, stderr %q", status, errOut)
		}
		flat := strings.Join(strings.Fields(out), " ")
		if !strings.Contains(flat, "not "+bench.TransportTitle(name)) || !strings.Contains(flat, target.Dev.Name()) {
			t.Error(out)
		}
	})
}
