package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/internal/bench/tcpnet"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// asProgram makes the test binary be rdmabench: compare starts itself again.
const asProgram = "RDMABENCH_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Setenv(asProgram, "1")
	os.Exit(verbstest.Main(m))
}

// quick are flags that make compare short.
var quick = []string{"--sizes=64,32K", "--iters=20"}

// runApp runs a command line in this process.
func runApp(t *testing.T, a *app, args ...string) (status int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a.out, a.err = &stdout, &stderr
	if a.transports == nil {
		a.transports = makeTransports
	}
	if a.self == nil {
		a.self = startSelf
	}
	status = a.run(args)
	return status, stdout.String(), stderr.String()
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{
		"", "measure", "--sizes=1", "compare extra", "compare --bogus", "compare --sizes=0", "compare --sizes=1G",
		"compare --sizes=", "compare --iters=x", "compare --iters=-1", "compare --duration=5", "compare --duration=-1s",
		"compare --ops=atomic", "compare --transports=udp", "compare --mode=busy", "compare --depth=0", "compare --depth=1000",
		"compare --depth=64 --sizes=64M", "compare --limit=0", "compare --limit=2h", "compare --figures --json=-",
		"compare --roce-addr=rxe0", "compare --tcp-addr=localhost", "compare --json=" + dir, "compare --json=" + dir + "/no/such",
		"client", "client a b", "client h --sizes=x", "server extra", "server --listen=nonsense", "server --control-fd=99",
	} {
		status, out, errOut := runApp(t, &app{}, strings.Fields(args)...)
		if status != 2 || out != "" || strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "rdmabench: ") {
			t.Errorf("%q: status %d, stdout %q, stderr %q; want 2 and one line", args, status, out, errOut)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"--help", "compare --help", "server --help", "client --help"} {
		status, out, errOut := runApp(t, &app{}, strings.Fields(args)...)
		if status != 0 || !strings.Contains(out, "Usage:") || errOut != "" {
			t.Errorf("%q: status %d, %q, stderr %q", args, status, out, errOut)
		}
	}
}

// TestCompareTCP goes all the way, with a child process as the server.
func TestCompareTCP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	status, out, errOut := runApp(t, &app{}, append([]string{"compare", "--transports=TCP", "--json=" + file}, quick...)...)
	if status != 0 || errOut != "" {
		t.Fatalf("status %d, stderr %q\n%s", status, errOut, out)
	}
	for _, want := range []string{"LATENCY in µs, lower is better (polling)", "THROUGHPUT, higher is better (waiting for events)", "every byte of all 320 messages"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	r := readReport(t, file)
	if len(r.Measurements) != 12 || r.Planned != 12 || r.Partial != "" || !r.SameHost || len(r.Connections) != 1 {
		t.Errorf("%d of %d measurements, %q, %+v", len(r.Measurements), r.Planned, r.Partial, r.Connections)
	}
	for _, m := range r.Measurements {
		if m.Error != "" || m.Iterations != 20 || m.Seconds <= 0 || m.Verified == nil || m.Verified.Messages < 20 ||
			m.ClientUsage == nil || m.ServerUsage == nil || (m.Latency == nil) == (m.Throughput == nil) {
			t.Errorf("%+v", m)
		}
	}
}

func readReport(t *testing.T, file string) *bench.Report {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	r := new(bench.Report)
	if err := dec.Decode(r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCompareFigures(t *testing.T) {
	status, out, errOut := runApp(t, &app{}, append([]string{"compare", "--transports=tcp", "--ops=read,send", "--figures"}, quick...)...)
	if status != 0 || errOut != "" {
		t.Fatalf("status %d, stderr %q", status, errOut)
	}
	line := regexp.MustCompile(`^figure (\S+) ([0-9.e+]+) (us|MiB/s)$`)
	var names []string
	for l := range strings.Lines(out) {
		m := line.FindStringSubmatch(strings.TrimSuffix(l, "\n"))
		if m == nil {
			t.Errorf("not a figure: %q", l)
			continue
		}
		names = append(names, m[1])
	}
	want := "bench_tcp_read_64_lat_p50_us bench_tcp_send_64_lat_p50_us bench_tcp_read_32768_bw_mibps bench_tcp_send_32768_bw_mibps " +
		"bench_tcp_read_64_event_lat_p50_us bench_tcp_send_64_event_lat_p50_us bench_tcp_read_32768_event_bw_mibps bench_tcp_send_32768_event_bw_mibps"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("figures: %s\nwant: %s", got, want)
	}
}

func TestCompareJSONOnly(t *testing.T) {
	status, out, errOut := runApp(t, &app{}, append([]string{"compare", "--transports=tcp", "--json=-", "--ops=send", "--mode=poll"}, quick...)...)
	var r bench.Report
	if err := json.Unmarshal([]byte(out), &r); status != 0 || errOut != "" || err != nil || r.Schema != bench.Schema {
		t.Errorf("status %d, stderr %q, %v:\n%s", status, errOut, err, out)
	}
}

// TestCompareDuration chooses the number of messages, one for all transports.
func TestCompareDuration(t *testing.T) {
	status, out, errOut := runApp(t, &app{}, "compare", "--transports=tcp", "--duration=20ms", "--iters=100000", "--sizes=64", "--ops=send", "--mode=event", "--json=-")
	var r bench.Report
	if err := json.Unmarshal([]byte(out), &r); status != 0 || err != nil || len(r.Measurements) != 1 {
		t.Fatalf("status %d, stderr %q, %v:\n%s", status, errOut, err, out)
	}
	if n := r.Measurements[0].Iterations; n < 10 || n > 100000 || r.Settings.DurationSeconds != 0.02 {
		t.Errorf("%d iterations, %+v", n, r.Settings)
	}
}

// hooked is TCP whose client end calls hook at the start of each run.
type hooked struct {
	tcpnet.Transport
	hook func(run int, ctx context.Context, c *hookedConn) error
	runs *int
}

type hookedConn struct {
	*tcpnet.Conn
	hooked
	spoil bool
}

func (h hooked) Dial(ctx context.Context, p bench.Params, address string) (bench.Conn, error) {
	c, err := h.Transport.Dial(ctx, p, address)
	if err != nil {
		return nil, err
	}
	return &hookedConn{Conn: c.(*tcpnet.Conn), hooked: h}, nil
}

func (c *hookedConn) Active(ctx context.Context, t bench.Task, r *bench.Recorder) error {
	*c.runs++
	if err := c.hook(*c.runs, ctx, c); err != nil {
		return err
	}
	return c.Conn.Active(ctx, t, r)
}

func (c *hookedConn) Check(t bench.Task) (bench.Verified, error) {
	if c.spoil {
		c.Sink[8] ^= 1
	}
	return c.Conn.Check(t)
}

// hookedApp has RoCE be hooked TCP, and TCP be TCP.
func hookedApp(hook func(run int, ctx context.Context, c *hookedConn) error) *app {
	return &app{transports: func(addresses) (map[string]bench.Transport, error) {
		return map[string]bench.Transport{
			"roce": tcpnet.Transport{},
			"tcp":  hooked{hook: hook, runs: new(int)},
		}, nil
	}}
}

// TestCompareShowsFailure: a transport that fails has its error in the table, and the
// exit status is 1. What did not fail is there.
func TestCompareShowsFailure(t *testing.T) {
	for _, tt := range []struct {
		name string
		hook func(run int, ctx context.Context, c *hookedConn) error
		want string
	}{
		{"once", func(run int, _ context.Context, _ *hookedConn) error {
			if run == 4 { // the second measurement
				return errors.New("boom")
			}
			return nil
		}, "[1] TCP: boom"},
		{"corrupt", func(run int, _ context.Context, c *hookedConn) error {
			c.spoil = run == 4
			return nil
		}, "[1] TCP: wrong data: message 0 of 64 bytes has"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, out, errOut := runApp(t, hookedApp(tt.hook), "compare", "--transports=tcp", "--mode=poll", "--sizes=64,32K", "--iters=20")
			if status != 1 || errOut != "rdmabench: 1 of 6 measurements failed\n" {
				t.Errorf("status %d, stderr %q", status, errOut)
			}
			if !strings.Contains(out, "failed [1]") || !strings.Contains(out, tt.want) {
				t.Errorf("no %q in:\n%s", tt.want, out)
			}
			if strings.Count(out, "failed [1]") != 1 || strings.Contains(out, "PARTIAL") {
				t.Errorf("one failure, and all measured:\n%s", out)
			}
		})
	}
}

// TestCompareWithoutDevice: a transport that cannot connect. The address is one that
// RDMA never works with.
func TestCompareWithoutDevice(t *testing.T) {
	status, out, errOut := runApp(t, &app{}, append([]string{"compare", "--transports=roce,tcp", "--ops=send", "--mode=event", "--roce-addr=127.0.0.1"}, quick...)...)
	if status != 1 || errOut != "rdmabench: 2 of 4 measurements failed\n" {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
	if strings.Count(out, "failed [1]") != 2 || !strings.Contains(out, "[1] RoCE v2: ") || !strings.Contains(out, "127.0.0.1:") {
		t.Error(out)
	}
}

// TestInterrupt: Ctrl-C ends both processes and shows what there is.
func TestInterrupt(t *testing.T) {
	a := hookedApp(func(run int, ctx context.Context, _ *hookedConn) error {
		if run < 4 {
			return nil
		}
		syscall.Kill(os.Getpid(), syscall.SIGINT)
		<-ctx.Done()
		return ctx.Err()
	})
	a.self = recordChild(t, nil)
	status, out, errOut := runApp(t, a, "compare", "--transports=tcp", "--mode=poll", "--sizes=64,32K", "--iters=20")
	if status != 1 || errOut != "rdmabench: interrupted\n" {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
	if !strings.Contains(out, "PARTIAL     1 of 6 measurements: interrupted") || strings.Contains(out, "WRITE  64 B") {
		t.Error(out)
	}
}

// recordChild starts children, hands them to started and makes sure that they have
// ended when the test has.
func recordChild(t *testing.T, started func(*exec.Cmd)) func(args ...string) (*exec.Cmd, error) {
	return func(args ...string) (*exec.Cmd, error) {
		cmd, err := startSelf(args...)
		t.Cleanup(func() {
			if cmd.ProcessState == nil {
				t.Error("the server process is still there")
			}
		})
		if started != nil {
			started(cmd)
		}
		return cmd, err
	}
}

// TestServerKilled: the client says so, and shows what there is.
func TestServerKilled(t *testing.T) {
	var child *exec.Cmd
	a := hookedApp(func(run int, ctx context.Context, _ *hookedConn) error {
		if run < 4 {
			return nil
		}
		child.Process.Kill()
		<-ctx.Done()
		return ctx.Err()
	})
	a.self = recordChild(t, func(cmd *exec.Cmd) { child = cmd })
	status, out, errOut := runApp(t, a, "compare", "--transports=tcp", "--mode=poll", "--sizes=64,32K", "--iters=20")
	const reason = "the server closed the control connection; the server process: signal: killed"
	if status != 1 || errOut != "rdmabench: "+reason+"\n" {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
	if flat := strings.Join(strings.Fields(out), " "); !strings.Contains(flat, "PARTIAL 1 of 6 measurements: "+reason) {
		t.Error(out)
	}
}

// TestClientKilled: the server process ends by itself.
func TestClientKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0], "compare", "--transports=tcp", "--mode=poll", "--sizes=64", "--iters=100000000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	child := childOf(t, cmd.Process.Pid)
	cmd.Process.Kill()
	waitUntil(t, "the server process ends", func() bool { return !alive(child) })
}

// childOf waits for a process to have a child.
func childOf(t *testing.T, pid int) (child string) {
	t.Helper()
	waitUntil(t, "compare has started its server", func() bool {
		files, _ := filepath.Glob(filepath.Join("/proc", itoa(pid), "task", "*", "children"))
		for _, f := range files {
			if data, _ := os.ReadFile(f); len(strings.Fields(string(data))) > 0 {
				child = strings.Fields(string(data))[0]
			}
		}
		return child != ""
	})
	return child
}

// alive says whether a process runs; one that nobody has waited for does not.
func alive(pid string) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(verbstest.Limit); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for: %s", verbstest.Limit, what)
		}
	}
}

// syncBuffer is written by one goroutine and read by another.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
