package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goverbs/goverbs/internal/bench"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (go test -update writes it anew):\n%s", name, diff)
	}
}

func environment(host string) bench.Environment {
	return bench.Environment{
		Host: host, Kernel: "6.1.0-57-amd64", Arch: "amd64", CPU: "QEMU TCG CPU version 2.5+", CPUs: 2,
		Machine: "emulated (QEMU TCG)", RDMACore: "44.0", Go: "go1.26.8", Version: "v0.1.0",
	}
}

// complete is a report of one machine, with every kind of number in it.
func complete() *bench.Report {
	r := &bench.Report{
		Schema: bench.Schema, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ElapsedSeconds: 57.6,
		Client: environment("lab"), Server: environment("lab"), SameHost: true,
		Settings: bench.Settings{
			Transports: bench.AllTransports(), Ops: []bench.Op{bench.OpSend, bench.OpWrite, bench.OpRead},
			Modes: []bench.Mode{bench.ModePoll, bench.ModeEvent}, Sizes: []int{64, 1 << 20}, Depth: 8,
		},
	}
	for i, name := range r.Settings.Transports {
		c := bench.Connection{Transport: name}
		c.Client = bench.ConnInfo{Device: []string{"rxe0", "siw0", ""}[i], Netdev: []string{"rxenet0", "siwnet0", "lo"}[i],
			Address: "192.0.2.1:4001", MTU: 4096, ReadDepth: []int{16, 16, 0}[i]}
		c.Server = c.Client
		c.Server.Address = "192.0.2.1:4000"
		r.Connections = append(r.Connections, c)
	}
	plan := bench.Plan{Ops: r.Settings.Ops, Modes: r.Settings.Modes, Sizes: r.Settings.Sizes, Depth: 8, Limit: time.Minute}
	for n, row := range plan.Rows() {
		for i, name := range r.Settings.Transports {
			r.Measurements = append(r.Measurements, result(name, row, float64(10*n+i+1)))
		}
	}
	r.Planned = len(r.Measurements)
	return r
}

// result is a measurement whose numbers follow from x.
func result(name string, t bench.Task, x float64) bench.Result {
	m := bench.Result{
		Transport: name, Op: t.Op, Mode: t.Mode, Kind: t.Kind, SizeBytes: t.Size, Iterations: t.Iters,
		Warmup: t.Warmup().Iters, Depth: t.Depth, DepthGranted: t.Depth, Seconds: x / 10,
		ClientUsage: &bench.Usage{UserPercent: 40 + x/10, SystemPercent: 50, VoluntarySwitches: 3, MachinePercent: 99.4},
		ServerUsage: &bench.Usage{UserPercent: 1, SystemPercent: 2.2, InvoluntarySwitches: 7, MachinePercent: 99.4},
	}
	messages := received(m)
	m.Verified = &bench.Verified{Messages: messages, Bytes: messages * int64(t.Size)}
	if t.Kind == bench.KindLatency {
		m.Latency = &bench.Latency{Samples: int64(t.Iters), MinUS: x / 3, P50US: x, P99US: 3 * x, P999US: 30 * x, MaxUS: 31 * x, MeanUS: 1.1 * x}
	} else {
		m.Throughput = &bench.Throughput{MiBPerSecond: 7 * x, GbitPerSecond: 7 * x * 8 * (1 << 20) / 1e9, MessagesPerSecond: 7 * x}
	}
	return m
}

func fail(m bench.Result, why string) bench.Result {
	return bench.Result{
		Transport: m.Transport, Op: m.Op, Mode: m.Mode, Kind: m.Kind, SizeBytes: m.SizeBytes, Iterations: m.Iterations,
		Warmup: m.Warmup, Depth: m.Depth, DepthGranted: m.DepthGranted, Error: why,
	}
}

func render(t *testing.T, r *bench.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, r); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(b.String(), "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends with blanks", i+1)
		}
	}
	return b.Bytes()
}

func TestTextComplete(t *testing.T) { golden(t, "complete.txt", render(t, complete())) }

// TestTextPartial has two different errors, one of them twice, a transport whose TCP
// to compare with failed, and measurements that never were.
func TestTextPartial(t *testing.T) {
	r := complete()
	r.Partial = "interrupted"
	r.Measurements = r.Measurements[:11]
	for i, why := range map[int]string{0: "server: no RoCE v2 device: add one", 3: "server: no RoCE v2 device: add one", 8: "not finished within 1m0s"} {
		r.Measurements[i] = fail(r.Measurements[i], why)
	}
	r.Measurements[4].Latency.Samples = 999
	r.Measurements[4].ClientUsage.MachinePercent = -1
	golden(t, "partial.txt", render(t, r))
}

// TestTextTwoHosts has one operation and mode, numbers of messages that differ by row,
// and more messages than were compared.
func TestTextTwoHosts(t *testing.T) {
	r := complete()
	r.Server, r.SameHost = environment("there"), false
	r.Settings.Transports, r.Settings.Modes, r.Settings.Ops = []string{"roce", "iwarp"}, []bench.Mode{bench.ModeEvent}, []bench.Op{bench.OpRead}
	r.Settings.DurationSeconds = 1.5
	r.Connections = r.Connections[:2]
	r.Client.Machine, r.Server.Machine = "bare metal", "virtual machine (KVM)"
	r.Connections[1].Server.Device, r.Connections[1].Server.Netdev = "siw1", "eth1"
	var kept []bench.Result
	for i, m := range r.Measurements {
		if m.Transport != "tcp" && m.Mode == bench.ModeEvent && m.Op == bench.OpRead {
			m.Iterations *= i + 1
			m.DepthGranted = min(m.Depth, 4)
			kept = append(kept, m)
		}
	}
	r.Measurements, r.Planned = kept, len(kept)
	golden(t, "two-hosts.txt", render(t, r))
}

func TestFigures(t *testing.T) {
	r := complete()
	r.Measurements[0] = fail(r.Measurements[0], "boom")
	var b bytes.Buffer
	if err := Figures(&b, r); err != nil {
		t.Fatal(err)
	}
	golden(t, "figures.txt", b.Bytes())
}

func TestJSONGoesThrough(t *testing.T) {
	r := complete()
	r.Measurements[2] = fail(r.Measurements[2], "boom")
	r.Partial = "interrupted"
	file := filepath.Join(t.TempDir(), "out.json")
	for range 2 { // the second one replaces the first
		if err := JSONFile(file, r); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := new(bench.Report)
	if err := json.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestJSONFileFails(t *testing.T) {
	name := filepath.Join(t.TempDir(), "no", "such", "dir.json")
	if err := JSONFile(name, complete()); err == nil || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
}

// TestReadFileRefuses what cannot be shown; what can be is read.
func TestReadFileRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*bench.Report)
		want   string
	}{
		"good":        {func(*bench.Report) {}, ""},
		"a failure":   {func(r *bench.Report) { r.Measurements[0] = fail(r.Measurements[0], "boom") }, ""},
		"schema":      {func(r *bench.Report) { r.Schema = "rdmabench/0" }, `schema "rdmabench/0"`},
		"no latency":  {func(r *bench.Report) { r.Measurements[0].Latency = nil }, "measurement 0"},
		"another's":   {func(r *bench.Report) { r.Measurements[1].SizeBytes = 1 << 20 }, "measurement 1"},
		"no usage":    {func(r *bench.Report) { r.Measurements[2].ServerUsage = nil }, "measurement 2"},
		"cut in half": {func(r *bench.Report) { r.Measurements[9].Throughput = nil }, "measurement 9"},
	} {
		r := complete()
		tt.change(r)
		file := filepath.Join(t.TempDir(), "r.json")
		if err := JSONFile(file, r); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(file)
		if tt.want == "" {
			if diff := cmp.Diff(r, got); err != nil || diff != "" {
				t.Errorf("%s: %v %s", name, err, diff)
			}
		} else if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
