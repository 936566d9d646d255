package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/goverbs/goverbs/internal/verbstest"
)

func TestMain(m *testing.M) { os.Exit(verbstest.Main(m)) }

func serve(t *testing.T, target *verbstest.Target, size int) *Server {
	t.Helper()
	s := verbstest.Must[*Server](t)(Serve(verbstest.Context(t), target.Addr.String()+":0", size))
	verbstest.Close(t, s)
	return s
}

func dial(t *testing.T, s *Server) *Memory {
	t.Helper()
	m := verbstest.Must[*Memory](t)(Dial(verbstest.Context(t), s.Addr().String()))
	verbstest.Close(t, m)
	return m
}

// TestMemory: what one client writes, another reads, each in its own place.
func TestMemory(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const part, clients = 3*chunk + 100, 4
		s := serve(t, target, part*clients)
		ctx := verbstest.Context(t)
		var wg sync.WaitGroup
		for i := range clients {
			m := dial(t, s)
			if m.Size() != part*clients {
				t.Errorf("%d bytes, want %d", m.Size(), part*clients)
			}
			wg.Go(func() {
				b := make([]byte, part)
				verbstest.Pattern(b, i)
				if n, err := m.WriteAt(ctx, b, uint64(i*part)); n != part || err != nil {
					t.Errorf("wrote %d, %v", n, err)
				}
				// The READ comes after the WRITE on this connection.
				if _, err := m.ReadAt(ctx, make([]byte, 1), uint64(i*part)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		all := make([]byte, part*clients)
		if n, err := dial(t, s).ReadAt(ctx, all, 0); n != len(all) || err != nil {
			t.Fatalf("read %d, %v", n, err)
		}
		for i := range clients {
			want := make([]byte, part)
			verbstest.Pattern(want, i)
			if !bytes.Equal(all[i*part:][:part], want) {
				t.Errorf("client %d's part is not what it wrote", i)
			}
		}
	})
}

func TestMemoryErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		s := serve(t, target, 100)
		m := dial(t, s)
		ctx := verbstest.Context(t)
		for _, offset := range []uint64{98, 101, 1 << 63} {
			if n, err := m.ReadAt(ctx, make([]byte, 3), offset); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("read %d at %d: %v, want EOF", n, offset, err)
			}
		}
		if n, err := m.WriteAt(ctx, []byte("abc"), 97); n != 3 || err != nil {
			t.Errorf("wrote %d at the end: %v", n, err)
		}
		// A client that means ill gets its connection ended, and no more.
		liar := dial(t, s)
		liar.remote.size = 1 << 40
		if _, err := liar.ReadAt(ctx, make([]byte, 10), 1<<30); err == nil {
			t.Error("read beyond the region")
		}
		b := make([]byte, 3)
		if _, err := m.ReadAt(ctx, b, 97); err != nil || string(b) != "abc" {
			t.Errorf("afterwards the other client reads %q, %v", b, err)
		}
	})
}

// TestCommand runs the commands as a user would.
func TestCommand(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx, stop := context.WithCancel(verbstest.Context(t))
		out, in := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- run(ctx, []string{"serve", target.Addr.String() + ":0", "4096"}, in) }()
		var size int
		var address string
		if _, err := fmt.Fscanf(out, "serving %d bytes at %s\n", &size, &address); err != nil || size != 4096 {
			t.Fatalf("%d bytes, %v, %v", size, err, <-served)
		}
		var got strings.Builder
		for _, args := range [][]string{{"write", address, "100", "hello"}, {"read", address, "101", "4"}} {
			if err := run(ctx, args, &got); err != nil {
				t.Error(err)
			}
		}
		if got.String() != "\"ello\"\n" {
			t.Errorf("read %s", got.String())
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	for _, args := range []string{"", "serve", "serve a b", "serve a 1 2", "read a 1", "read a 1 -1", "write a 1", "x a 1"} {
		if err := run(t.Context(), strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), "usage") {
			t.Errorf("remotemem %s: %v", args, err)
		}
	}
}

func FuzzParseRegion(f *testing.F) {
	f.Add(region{1, 2, 3}.bytes())
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRegion(b)
		if (err == nil) != (len(b) >= regionSize) {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		if err == nil && !bytes.Equal(r.bytes(), b[:regionSize]) {
			t.Fatalf("% x came back as % x", b, r.bytes())
		}
	})
}
