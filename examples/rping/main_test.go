package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goverbs/goverbs/internal/verbstest"
)

func TestMain(m *testing.M) { os.Exit(verbstest.Main(m)) }

func TestSplit(t *testing.T) {
	got := split([]string{"-svV", "-a", "192.0.2.1", "-C10", "-P", "-S", "100", "-", "-qd"})
	want := []string{"-s", "-v", "-V", "-a", "192.0.2.1", "-C10", "-P", "-S", "100", "-", "-q", "-d"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range []string{
		"", "-s -c -a 192.0.2.1", "-c", "-c -a 192.0.2.1 -S 25", "-c -a 192.0.2.1 -S 65536",
		"-s -p 0", "-s -p 65536", "-c -a 192.0.2.1 -C -1", "-s extra", "-x", "-C ten -s",
	} {
		var out, errOut bytes.Buffer
		if status := run(context.Background(), strings.Fields(args), &out, &errOut); status != 2 {
			t.Errorf("rping %s: status %d, want 2", args, status)
		}
		if errOut.Len() == 0 {
			t.Errorf("rping %s: no message", args)
		}
	}
}

// TestFill: the texts are those of C rping.
func TestFill(t *testing.T) {
	for _, tc := range []struct {
		i    int
		want string
	}{
		{0, "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abc\x00"},
		{1, "rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcd\x00"},
		{57, "rdma-ping-57: zABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`a\x00"},
		{58, "rdma-ping-58: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`ab\x00"},
	} {
		b := make([]byte, len(tc.want))
		fill(b, tc.i)
		if string(b) != tc.want {
			t.Errorf("ping %d: %q, want %q", tc.i, b, tc.want)
		}
	}
}

func TestInfo(t *testing.T) {
	in := info{addr: 0x0102030405060708, rkey: 0x090a0b0c, size: 0x0d0e0f10}
	b := make([]byte, infoSize)
	in.put(b)
	for i := range b {
		if b[i] != byte(i+1) {
			t.Fatalf("on the wire: % x", b)
		}
	}
	var out info
	if out.get(b); out != in {
		t.Errorf("came back as %+v", out)
	}
}

// program runs rping, ours or the C one, and gives what it printed.
type program func(ctx context.Context, args ...string) (output string, err error)

func ours(ctx context.Context, args ...string) (string, error) {
	var out lockedBuffer
	if status := run(ctx, args, &out, &out); status != 0 {
		return out.String(), fmt.Errorf("status %d", status)
	}
	return out.String(), nil
}

func c(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "rping", args...).CombinedOutput()
	return string(out), err
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// pings counts the pings in a program's output.
func pings(output, prefix string) int {
	return len(regexp.MustCompile(`(?m)^`+prefix+`ping data: rdma-ping-\d+: `).FindAllString(output, -1))
}

// TestInterop pings between ours and the C program, both ways, over IPv4 and
// IPv6, on every device.
func TestInterop(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for _, tc := range []struct {
			name           string
			server, client program
		}{
			{"ours to ours", ours, ours},
			{"ours to C", c, ours},
			{"C to ours", ours, c},
		} {
			for _, addr := range []netip.Addr{target.Addr, target.Addr6} {
				t.Run(fmt.Sprintf("%s/%v", tc.name, addr), func(t *testing.T) {
					interop(t, addr, tc.server, tc.client)
				})
			}
		}
	})
}

func interop(t *testing.T, addr netip.Addr, server, client program) {
	const count = 10
	ctx := verbstest.Context(t)
	port := strconv.Itoa(freePort(t, addr))
	type result struct {
		out string
		err error
	}
	served := make(chan result, 1)
	go func() {
		// The C server's buffer is no larger than its -S.
		out, err := server(ctx, "-s", "-v", "-a", addr.String(), "-p", port, "-S", "1000")
		served <- result{out, err}
	}()
	var out string
	var err error
	// Until the server listens, the client is refused.
	for ctx.Err() == nil {
		out, err = client(ctx, "-c", "-v", "-V", "-a", addr.String(), "-p", port, "-C", strconv.Itoa(count), "-S", "1000")
		if err == nil || pings(out, "") > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil || pings(out, "") != count {
		t.Errorf("the client: %v, %d pings of %d:\n%s", err, pings(out, ""), count, out)
	}
	r := <-served
	// The C server's status tells nothing: it ends by failing to wait for one
	// ping more.
	if pings(r.out, "server ") != count {
		t.Errorf("the server: %v, %d pings of %d:\n%s", r.err, pings(r.out, "server "), count, r.out)
	}
}

// freePort asks TCP for a port. The RDMA port spaces are others, but siw's is
// TCP's.
func freePort(t *testing.T, addr netip.Addr) int {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestPersistent serves three C clients at once, until it is interrupted.
func TestPersistent(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx := verbstest.Context(t)
		serverCtx, interrupt := context.WithCancel(ctx)
		defer interrupt()
		port := strconv.Itoa(freePort(t, target.Addr))
		var out lockedBuffer
		served := make(chan int, 1)
		go func() {
			served <- run(serverCtx, []string{"-sPd", "-a", target.Addr.String(), "-p", port}, &out, &out)
		}()
		for !strings.Contains(out.String(), "listening") {
			if ctx.Err() != nil {
				t.Fatalf("the server does not listen:\n%s", out.String())
			}
			time.Sleep(10 * time.Millisecond)
		}
		var clients sync.WaitGroup
		for range 3 {
			clients.Go(func() {
				if out, err := c(ctx, "-c", "-V", "-a", target.Addr.String(), "-p", port, "-C", "20"); err != nil {
					t.Errorf("a client: %v:\n%s", err, out)
				}
			})
		}
		clients.Wait()
		interrupt()
		if status := <-served; status != 0 {
			t.Errorf("the interrupted server: status %d:\n%s", status, out.String())
		}
	})
}
