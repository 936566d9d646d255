package tcpnet

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goverbs/goverbs/internal/bench"
)

func connect(t *testing.T) (client, server bench.Conn) {
	t.Helper()
	p := bench.Params{Depth: 8, Region: 1 << 20, Token: strings.Repeat("a", 32)}
	ln, err := Transport{}.Listen(t.Context(), p, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = (Transport{}).Dial(t.Context(), p, ln.Address()); err != nil {
		t.Fatal(err)
	}
	if server, err = ln.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, server
}

func prepare(t *testing.T, task bench.Task, conns ...bench.Conn) {
	t.Helper()
	for _, c := range conns {
		if err := c.Prepare(task); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPollingAllocatesNothing(t *testing.T) {
	client, server := connect(t)
	for _, op := range []bench.Op{bench.OpSend, bench.OpRead} {
		const iters = 2000
		task := bench.Task{Op: op, Mode: bench.ModePoll, Kind: bench.KindLatency, Size: 64, Iters: iters, Depth: 1}
		prepare(t, task, client, server)
		passive := make(chan error, 1)
		r := bench.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		go func() { passive <- server.Passive(t.Context(), task) }()
		if err := errors.Join(client.Active(t.Context(), task, r), <-passive); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > iters/2 {
			t.Errorf("%s: %d allocations in %d messages", op, n, iters)
		}
	}
}

// TestContextEnds: what waits for the other end stops, in both modes.
func TestContextEnds(t *testing.T) {
	for _, mode := range []bench.Mode{bench.ModePoll, bench.ModeEvent} {
		client, server := connect(t)
		task := bench.Task{Op: bench.OpSend, Mode: mode, Kind: bench.KindLatency, Size: 64, Iters: 10, Depth: 1}
		prepare(t, task, client, server)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		// Nobody answers.
		if err := client.Active(ctx, task, bench.NewRecorder()); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the client: %v", mode, err)
		}
		if err := server.Passive(t.Context(), bench.Task{Op: bench.OpSend, Mode: mode, Kind: bench.KindLatency, Size: 64, Iters: 1, Depth: 1}); err != nil {
			t.Errorf("%s: the one message that was sent: %v", mode, err)
		}
		if err := server.Passive(ctx, task); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the server: %v", mode, err)
		}
	}
}

// TestPeerGone: an end that is closed is an error at the other, not a message of
// zeroes.
func TestPeerGone(t *testing.T) {
	for _, mode := range []bench.Mode{bench.ModePoll, bench.ModeEvent} {
		client, server := connect(t)
		task := bench.Task{Op: bench.OpSend, Mode: mode, Kind: bench.KindLatency, Size: 64, Iters: 10, Depth: 1}
		prepare(t, task, client, server)
		client.Close()
		if err := server.Passive(t.Context(), task); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

func TestInfo(t *testing.T) {
	client, _ := connect(t)
	if info := client.Info(); info.Netdev != "lo" || info.MTU < 1000 || !strings.HasPrefix(info.Address, "127.0.0.1:") {
		t.Errorf("%+v", info)
	}
}
