package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// fakeGuest is the other side of a session: what a guest's init does, as a test wants it.
type fakeGuest struct {
	t     *testing.T
	conn  *wire.Conn
	ports map[string]*os.File
	m     *machine
}

// startSession returns a session whose guest is played by play, in a goroutine of its own.
func startSession(t *testing.T, cfg Config, play func(*fakeGuest)) *session {
	t.Helper()
	m := &machine{ports: make(map[string]*os.File), done: make(chan struct{})}
	g := &fakeGuest{t: t, ports: make(map[string]*os.File), m: m}
	for _, name := range wire.Ports() {
		ours, theirs, err := socketPair(name)
		if err != nil {
			t.Fatal(err)
		}
		m.ports[name], g.ports[name] = ours, theirs
	}
	g.conn = wire.NewConn(g.ports[wire.PortControl])
	go play(g)
	t.Cleanup(func() {
		m.close()
		for _, p := range g.ports {
			p.Close()
		}
	})
	return newSession(cfg, m, wire.NewConn(m.ports[wire.PortControl]), time.Now())
}

// spec receives what to run and says that it runs.
func (g *fakeGuest) begin() *wire.Spec {
	m, err := g.conn.Receive()
	if err != nil || m.Type != wire.Run {
		g.t.Errorf("first message %v, %v; want run", m, err)
		return &wire.Spec{}
	}
	g.send(wire.Message{Type: wire.Started})
	return m.Spec
}

func (g *fakeGuest) send(m wire.Message) {
	if err := g.conn.Send(m); err != nil {
		g.t.Errorf("send %v: %v", m, err)
	}
}

func (g *fakeGuest) write(port, text string) {
	if _, err := io.WriteString(g.ports[port], text); err != nil {
		g.t.Errorf("%s: %v", port, err)
	}
}

// die is a guest whose QEMU goes, with last words.
func (g *fakeGuest) die(console, stderr string) {
	g.m.mu.Lock()
	g.m.console = strings.Split(console, "\n")
	g.m.stderr.WriteString(stderr)
	g.m.mu.Unlock()
	for _, p := range g.ports {
		p.Close()
	}
	close(g.m.done)
}

func runSession(t *testing.T, ctx context.Context, s *session) (Result, error) {
	t.Helper()
	return s.run(ctx, Kernel{Version: "6.1", Release: "r", Dir: "/k"}, Result{Status: StatusLab})
}

// TestSession runs a command that reads its input, writes to both outputs, and ends before its output has arrived.
func TestSession(t *testing.T) {
	var stdout, stderr bytes.Buffer
	binary := string([]byte{0, 1, '\r', '\n', 0xff, 'a'})
	cfg := Config{
		Args: []string{"cmd", "arg"}, Env: []string{"A=b"}, Dir: "/work", Stdin: strings.NewReader("input"),
		Stdout: &stdout, Stderr: &stderr,
	}
	s := startSession(t, cfg, func(g *fakeGuest) {
		spec := g.begin()
		if strings.Join(spec.Args, " ") != "cmd arg" || spec.Dir != "/work" || spec.Env[0] != "A=b" || spec.TTY {
			g.t.Errorf("spec %+v", spec)
		}
		if m, err := g.conn.Receive(); err != nil || m.Type != wire.StdinEOF || m.Count != 5 {
			g.t.Errorf("message %v, %v; want the end of standard input after 5 bytes", m, err)
		}
		input := make([]byte, 5)
		if _, err := io.ReadFull(g.ports[wire.PortStdin], input); err != nil || string(input) != "input" {
			g.t.Errorf("standard input %q, %v", input, err)
		}
		g.write(wire.PortStderr, "problem\n")
		g.send(wire.Message{Type: wire.Exit, Code: 7, Sent: map[string]int64{wire.PortStdout: int64(len(binary)), wire.PortStderr: 8}})
		g.write(wire.PortStdout, binary)
	})
	res, err := runSession(t, context.Background(), s)
	if err != nil || res.Status != 7 {
		t.Errorf("status %d, error %v; want 7 and none", res.Status, err)
	}
	if stdout.String() != binary || stderr.String() != "problem\n" {
		t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
	}
	if res.Boot <= 0 {
		t.Error("no boot time")
	}
}

// TestSessionEnds tries every way for a run to end that is not the command's own.
func TestSessionEnds(t *testing.T) {
	const warning = "4,1,2000000,-;WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2\n"
	for _, tt := range []struct {
		name     string
		play     func(*fakeGuest)
		signals  []os.Signal
		timeout  bool
		status   int
		err      string
		problems int
	}{
		{name: "success", play: func(g *fakeGuest) { g.begin(); g.send(wire.Message{Type: wire.Exit}) }, status: 0},
		{name: "warning", play: func(g *fakeGuest) {
			g.begin()
			g.write(wire.PortKernel, warning)
			g.send(wire.Message{Type: wire.Exit, Sent: map[string]int64{wire.PortKernel: int64(len(warning))}})
		}, status: StatusKernel, problems: 1},
		{name: "warning and failure", play: func(g *fakeGuest) {
			g.begin()
			g.write(wire.PortKernel, warning)
			g.send(wire.Message{Type: wire.Exit, Code: 3, Sent: map[string]int64{wire.PortKernel: int64(len(warning))}})
		}, status: 3, problems: 1},
		{name: "not found", play: func(g *fakeGuest) {
			g.begin()
			g.send(wire.Message{Type: wire.Exit, Code: 127, Text: "nosuch: not found"})
		}, status: 127, err: "nosuch: not found"},
		{name: "lab failure", play: func(g *fakeGuest) {
			g.begin()
			g.send(wire.Message{Type: wire.Fail, Code: 125, Text: "mount 9p on /lower: no such file"})
		}, status: StatusLab, err: "the guest: mount 9p"},
		{name: "panic", play: func(g *fakeGuest) {
			g.begin()
			g.die("[    8.000000] before\n[    9.000000] Kernel panic - not syncing: Fatal exception", "")
		}, status: StatusKernel, err: "kernel died", problems: 1},
		{name: "power off", play: func(g *fakeGuest) { g.begin(); g.die("[    9.000000] reboot: Power down", "") }, status: StatusLab, err: "went down"},
		{name: "qemu fails", play: func(g *fakeGuest) { g.begin(); g.die("", "qemu-system-x86_64: oh no") }, status: StatusLab, err: "oh no"},
		{name: "timeout", play: func(g *fakeGuest) { g.begin() }, timeout: true, status: StatusTimeout, err: "--timeout"},
		{name: "signal twice", play: func(g *fakeGuest) { g.begin() }, signals: []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, status: 143, err: "terminated"},
		{name: "signal early", play: func(g *fakeGuest) {}, signals: []os.Signal{syscall.SIGINT}, status: 130, err: "interrupt"},
		{name: "signal obeyed", play: func(g *fakeGuest) {
			g.begin()
			for {
				m, err := g.conn.Receive()
				if err != nil {
					g.t.Errorf("no signal came: %v", err)
					return
				}
				if m.Type == wire.Signal {
					g.send(wire.Message{Type: wire.Exit, Code: 128 + m.Signal})
					return
				}
			}
		}, signals: []os.Signal{syscall.SIGUSR1}, status: 138},
	} {
		t.Run(tt.name, func(t *testing.T) {
			signals := make(chan os.Signal, len(tt.signals))
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			started := make(chan struct{})
			s := startSession(t, Config{Signals: signals}, func(g *fakeGuest) {
				tt.play(g)
				close(started)
			})
			go func() {
				if tt.name != "signal obeyed" {
					<-started
				}
				for _, sig := range tt.signals {
					signals <- sig
				}
				if tt.timeout {
					cancel(errTimeout)
				}
			}()
			res, err := runSession(t, ctx, s)
			if res.Status != tt.status || len(res.Problems) != tt.problems {
				t.Errorf("status %d and %d problems, want %d and %d", res.Status, len(res.Problems), tt.status, tt.problems)
			}
			if tt.name == "panic" && strings.Join(res.Tail, "|") != "[    8.000000] before" {
				t.Errorf("tail %q, want only what the problem does not show", res.Tail)
			}
			if (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestStreamLosesNothing(t *testing.T) {
	var got bytes.Buffer
	s := newStream()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go s.copy(&got, r)
	go func() { io.Copy(w, io.LimitReader(zeros{}, 1<<20)); w.Close() }()
	if !s.wait(1<<20, time.Minute) || got.Len() != 1<<20 {
		t.Errorf("%d bytes, want %d", got.Len(), 1<<20)
	}
	if s.wait(1<<20+1, time.Minute) {
		t.Error("a port that ended early is complete")
	}
}

// TestStreamWriterFails checks that output nobody takes does not stop the guest, and is reported.
func TestStreamWriterFails(t *testing.T) {
	s := newStream()
	full := errors.New("no space")
	s.copy(failingWriter{full}, io.LimitReader(zeros{}, 1<<20))
	if !s.wait(1<<20, time.Minute) || !errors.Is(s.err(), full) {
		t.Errorf("error %v, want %v after all was read", s.err(), full)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

func TestLineSplitter(t *testing.T) {
	var lines []string
	l := &lineSplitter{line: func(s string) { lines = append(lines, s) }}
	for _, part := range []string{"a", "b\nc\n", "\n", "d"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("write %q: %d, %v", part, n, err)
		}
	}
	if got := strings.Join(lines, "|"); got != "ab|c|" {
		t.Errorf("lines %q", got)
	}
}
