package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// process is rdmabench as a process of its own.
type process struct {
	cmd      *exec.Cmd
	out, err syncBuffer
	address  string
}

// startServerProcess starts "rdmabench server" and waits until it listens.
func startServerProcess(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], append([]string{"server", "--listen=127.0.0.1:0"}, args...)...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	waitUntil(t, "the server listens", func() bool {
		_, address, ok := strings.Cut(p.out.String(), "listening on ")
		p.address = strings.TrimSpace(address)
		return ok && strings.HasSuffix(address, "\n")
	})
	return p
}

func TestServerAndClient(t *testing.T) {
	p := startServerProcess(t)
	for range 2 { // one client after the other
		status, out, errOut := runApp(t, &app{}, append([]string{"client", p.address, "--transports=tcp"}, quick...)...)
		if status != 0 || errOut != "" || !strings.Contains(out, "every byte of all 320 messages") {
			t.Fatalf("status %d, stderr %q\n%s", status, errOut, out)
		}
	}
	p.cmd.Process.Signal(syscall.SIGINT)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the server after Ctrl-C: %v", err)
	}
	if log := p.err.String(); strings.Count(log, "has left") != 2 || !strings.Contains(log, "TCP SEND 64 B latency poll: 20 iterations") {
		t.Errorf("the server's log:\n%s", log)
	}
}

func TestServerOnce(t *testing.T) {
	p := startServerProcess(t, "--once", "--quiet")
	status, _, errOut := runApp(t, &app{}, append([]string{"client", p.address, "--transports=tcp", "--mode=event"}, quick...)...)
	if status != 0 {
		t.Errorf("status %d, %q", status, errOut)
	}
	if err := p.cmd.Wait(); err != nil || p.err.String() != "" {
		t.Errorf("the server: %v, %q", err, p.err.String())
	}
}

// TestServerIsBusy: a second client is told, and the first one is not disturbed.
func TestServerIsBusy(t *testing.T) {
	p := startServerProcess(t)
	first, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the first client is in", func() bool { return strings.Contains(p.err.String(), "client 127.0.0.1") })
	status, out, errOut := runApp(t, &app{}, "client", p.address, "--transports=tcp")
	if status != 1 || out != "" || errOut != "rdmabench: server: busy with another client: try again later\n" {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, errOut)
	}
	first.Close()
	waitUntil(t, "the server has noticed", func() bool { return strings.Contains(p.err.String(), "has left") })
	if status, _, errOut := runApp(t, &app{}, "client", p.address, "--transports=tcp", "--ops=send", "--mode=event", "--sizes=64", "--iters=5"); status != 0 {
		t.Errorf("the next client: %d, %q", status, errOut)
	}
}

// TestServerSurvivesNonsense: whoever calls, the next client is served.
func TestServerSurvivesNonsense(t *testing.T) {
	p := startServerProcess(t)
	for i, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x00\x00\x02{}", "\xff\xff\xff\xff", ""} {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, text)
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, conn)
		conn.Close()
		waitUntil(t, "the server is done with it", func() bool {
			return strings.Count(p.err.String(), "nonsense")+strings.Count(p.err.String(), "has left")+
				strings.Count(p.err.String(), "closed the control") > i
		})
	}
	if status, _, errOut := runApp(t, &app{}, "client", p.address, "--transports=tcp", "--ops=send", "--mode=event", "--sizes=64", "--iters=5"); status != 0 {
		t.Errorf("the next client: %d, %q", status, errOut)
	}
}

func TestNoServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	status, out, errOut := runApp(t, &app{}, "client", address)
	want := fmt.Sprintf("rdmabench: no rdmabench server at %s: connect: connection refused (start \"rdmabench server\" there)\n", address)
	if status != 1 || out != "" || errOut != want {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, errOut)
	}
}

// TestPortTaken: the server says which port it did not get.
func TestPortTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	status, _, errOut := runApp(t, &app{}, "server", "--listen="+ln.Addr().String())
	if status != 1 || !strings.Contains(errOut, "address already in use") || strings.Count(errOut, "\n") != 1 {
		t.Errorf("status %d, %q", status, errOut)
	}
}

func TestWithPort(t *testing.T) {
	for in, want := range map[string]string{
		"host": "host:18520", "host:1": "host:1", "192.0.2.1": "192.0.2.1:18520", "2001:db8::1": "[2001:db8::1]:18520",
		"[2001:db8::1]": "[2001:db8::1]:18520", "[2001:db8::1]:5": "[2001:db8::1]:5",
	} {
		if got := withPort(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
