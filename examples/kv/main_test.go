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

func serve(t *testing.T, target *verbstest.Target) *Server {
	t.Helper()
	s := verbstest.Must[*Server](t)(Serve(verbstest.Context(t), target.Addr.String()+":0"))
	verbstest.Close(t, s)
	return s
}

func dial(t *testing.T, s *Server) *Client {
	t.Helper()
	c := verbstest.Must[*Client](t)(Dial(verbstest.Context(t), s.Addr().String()))
	verbstest.Close(t, c)
	return c
}

// TestStore: several clients share what each puts.
func TestStore(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const clients, keys = 4, 25
		s := serve(t, target)
		ctx := verbstest.Context(t)
		key := func(i, j int) string { return fmt.Sprintf("key %d/%d", i, j) }
		value := func(i, j int) []byte {
			b := make([]byte, i*j*50)
			verbstest.Pattern(b, i+j)
			return b
		}
		var wg sync.WaitGroup
		for i := range clients {
			c := dial(t, s)
			wg.Go(func() {
				for j := range keys {
					if err := c.Put(ctx, key(i, j), value(i, j)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		c := dial(t, s)
		for i := range clients {
			for j := range keys {
				if got, err := c.Get(ctx, key(i, j)); err != nil || !bytes.Equal(got, value(i, j)) {
					t.Fatalf("%s: %d bytes, %v", key(i, j), len(got), err)
				}
			}
		}
		if err := c.Delete(ctx, key(1, 1)); err != nil {
			t.Error(err)
		}
		if _, err := c.Get(ctx, key(1, 1)); err != ErrNotFound {
			t.Errorf("a key that is gone: %v", err)
		}
		if err := c.Delete(ctx, key(1, 1)); err != ErrNotFound {
			t.Errorf("deleting it again: %v", err)
		}
	})
}

// TestStoreErrors: what a client does wrong is its own affair.
func TestStoreErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		s := serve(t, target)
		ctx := verbstest.Context(t)
		c := dial(t, s)
		if err := c.Put(ctx, "k", make([]byte, maxMessage)); err == nil {
			t.Error("a value that does not fit was taken")
		}
		if err := c.Put(ctx, "k", make([]byte, maxMessage-4)); err != nil {
			t.Errorf("a value that just fits: %v", err)
		}
		if got, err := c.Get(ctx, "k"); err != nil || len(got) != maxMessage-4 {
			t.Errorf("it came back as %d bytes, %v", len(got), err)
		}
		if _, err := c.ask(ctx, request{op: 9}); err == nil || !strings.Contains(err.Error(), "refuses") {
			t.Errorf("an unknown operation: %v", err)
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := c.Get(cancelled, "k"); !errors.Is(err, context.Canceled) {
			t.Errorf("with a cancelled context: %v", err)
		}
		if _, err := dial(t, s).Get(ctx, "k"); err != nil {
			t.Errorf("another client: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Dial(ctx, s.Addr().String()); err == nil {
			t.Error("dialed a server that has gone")
		}
	})
}

// TestCommand runs the commands as a user would.
func TestCommand(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		ctx, stop := context.WithCancel(verbstest.Context(t))
		out, in := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- run(ctx, []string{"serve", target.Addr.String() + ":0"}, in) }()
		var address string
		if _, err := fmt.Fscanf(out, "serving at %s\n", &address); err != nil {
			t.Fatal(err, <-served)
		}
		var got strings.Builder
		for _, args := range [][]string{{"put", address, "colour", "blue"}, {"get", address, "colour"}, {"delete", address, "colour"}} {
			if err := run(ctx, args, &got); err != nil {
				t.Error(err)
			}
		}
		if err := run(ctx, []string{"get", address, "colour"}, &got); !errors.Is(err, ErrNotFound) {
			t.Errorf("getting what was deleted: %v", err)
		}
		if got.String() != "blue\n" {
			t.Errorf("printed %q", got.String())
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	for _, args := range []string{"", "get", "get a", "put a k", "serve", "x a k"} {
		if err := run(t.Context(), strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), "usage") {
			t.Errorf("kv %s: %v", args, err)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	b, _ := request{opPut, "key", []byte("value")}.append(nil)
	f.Add(b)
	f.Add([]byte{opGet, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRequest(b)
		if err != nil {
			return
		}
		if again, err := r.append(nil); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("% x came back as % x, %v", b, again, err)
		}
	})
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte{statusOK, 1, 2})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		value, err := parseAnswer(b)
		if ok := len(b) > 0 && b[0] == statusOK; ok != (err == nil) || ok && !bytes.Equal(value, b[1:]) {
			t.Fatalf("% x gave % x, %v", b, value, err)
		}
	})
}
