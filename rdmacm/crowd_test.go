package rdmacm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// crowd is many connections, with both ends in this process.
type crowd struct {
	clients, servers []*rdmacm.Conn
}

// gather makes n connections at once.
func gather(ctx context.Context, l *rdmacm.Listener, d rdmacm.Dialer, n int) (*crowd, error) {
	c := &crowd{clients: make([]*rdmacm.Conn, n), servers: make([]*rdmacm.Conn, n)}
	accepted := make(chan error, 1)
	acceptCtx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for range n {
			conn, err := l.Accept(acceptCtx)
			if err != nil {
				accepted <- err
				return
			}
			c.servers[binary.BigEndian.Uint32(conn.PrivateData())] = conn
		}
		accepted <- nil
	}()
	err := atOnce(n, func(i int) (err error) {
		own := d
		own.PrivateData = binary.BigEndian.AppendUint32(nil, uint32(i))
		c.clients[i], err = own.DialContext(ctx, l.Addr().String())
		return err
	})
	if err != nil {
		stop()
	}
	return c, errors.Join(err, <-accepted)
}

// echo sends a message to and fro on every connection at once.
func (c *crowd) echo(ctx context.Context) error {
	return atOnce(len(c.clients), func(i int) error { return echo(ctx, c.clients[i], c.servers[i], i) })
}

// close closes all ends at once.
func (c *crowd) close() error {
	return atOnce(2*len(c.clients), func(i int) error {
		end := c.clients
		if i%2 == 1 {
			end = c.servers
		}
		if conn := end[i/2]; conn != nil {
			return conn.Close()
		}
		return nil
	})
}

// atOnce runs fn for 0 to n-1, each in a goroutine of its own.
func atOnce(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// crowdConfig has queues as small as an echo needs, and no patience limits of
// its own: the test's context has them.
var crowdConfig = rdmacm.Config{SendDepth: 16, RecvDepth: 16, Prepare: prepare}

// status reads a number of /proc/self/status: Threads, VmRSS (in KiB).
func status(t testing.TB, name string) int {
	t.Helper()
	all, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(all), "\n"+name+":")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(line, "kB")))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// allowFiles raises RLIMIT_NOFILE: an end takes four descriptors.
func allowFiles(t testing.TB, n uint64) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if old.Cur >= n {
		return
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: max(n, old.Max)}); err != nil {
		t.Fatalf("%d connections need %d descriptors: %v", n/8, n, err)
	}
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &old) })
}

// extraThreads is how many OS threads a process may have besides GOMAXPROCS,
// whatever the number of its connections.
const extraThreads = 12

// runCrowd makes, uses and ends n connections, and reports what they took. Threads
// are never given back: the number at the end is the greatest.
func runCrowd(t testing.TB, target *verbstest.Target, n int) (threads, kibPerConn int) {
	t.Helper()
	allowFiles(t, uint64(8*n+200))
	ctx := verbstest.Context(t)
	l := listen(t, target, rdmacm.ListenConfig{Config: crowdConfig, Backlog: n, HandshakeTimeout: verbstest.Limit})
	d := rdmacm.Dialer{Config: crowdConfig, Timeout: verbstest.Limit, ResolveTimeout: verbstest.Limit}
	before := status(t, "VmRSS")
	c, err := gather(ctx, l, d, n)
	if err == nil {
		err = c.echo(ctx)
	}
	kibPerConn = (status(t, "VmRSS") - before) / n
	for i := range n {
		if err == nil && (c.clients[i].Err() != nil || c.servers[i].Err() != nil) {
			t.Errorf("connection %d ended by itself: %v, %v", i, c.clients[i].Err(), c.servers[i].Err())
		}
	}
	if err := errors.Join(err, c.close()); err != nil {
		lines := strings.SplitN(err.Error(), "\n", 6)
		t.Fatal(strings.Join(lines[:min(5, len(lines))], "\n"))
	}
	rdmacm.WaitBackground()
	threads = status(t, "Threads")
	if most := runtime.GOMAXPROCS(0) + extraThreads; threads > most {
		t.Errorf("%d connections took %d OS threads, want %d at most", n, threads, most)
	}
	return threads, kibPerConn
}

// TestCrowd: many connections in one process, in event mode, are all established,
// all echo and all close, with few OS threads (reports 6 and 20). BenchmarkThousand
// has a thousand.
func TestCrowd(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		threads, kib := runCrowd(t, target, 128)
		t.Logf("%d OS threads, %d KiB a connection", threads, kib)
	})
}
