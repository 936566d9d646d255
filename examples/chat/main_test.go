package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/goverbs/goverbs/internal/verbstest"
)

func TestMain(m *testing.M) { os.Exit(verbstest.Main(m)) }

// chatter is one who takes part.
type chatter struct {
	says  *io.PipeWriter
	hears *bufio.Scanner
	done  chan error
}

func join(t *testing.T, target *verbstest.Target, group netip.Addr, name string) *chatter {
	t.Helper()
	in, says := io.Pipe()
	hears, out := io.Pipe()
	c := &chatter{says, bufio.NewScanner(hears), make(chan error, 1)}
	go func() {
		err := chat(verbstest.Context(t), target.Addr.String(), group, name, in, out)
		out.CloseWithError(io.EOF)
		in.CloseWithError(io.ErrClosedPipe)
		c.done <- err
	}()
	if !c.hears.Scan() || !strings.Contains(c.hears.Text(), "* in "+group.String()) {
		t.Fatalf("%s: %q, %v", name, c.hears.Text(), <-c.done)
	}
	return c
}

func (c *chatter) expect(t *testing.T, line string) {
	t.Helper()
	if !c.hears.Scan() || c.hears.Text() != line {
		t.Errorf("heard %q, want %q", c.hears.Text(), line)
	}
}

// TestChat: everybody hears everybody else, and nobody himself.
func TestChat(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		group := netip.MustParseAddr("239.77.2.1")
		names := []string{"ann", "bob", "cyn"}
		var all []*chatter
		for _, name := range names {
			all = append(all, join(t, target, group, name))
		}
		for i, speaker := range all {
			for turn := range 3 {
				fmt.Fprintln(speaker.says, "hello", turn)
				for j, listener := range all {
					if j != i {
						listener.expect(t, fmt.Sprintf("[%v] %s: hello %d", target.Addr, names[i], turn))
					}
				}
			}
		}
		for _, c := range all {
			c.says.Close()
			if err := <-c.done; err != nil {
				t.Error(err)
			}
		}
	}, verbstest.Datagrams)
}

// TestNoChat: iWARP has no datagrams, and says so.
func TestNoChat(t *testing.T) {
	verbstest.EachLacking(t, verbstest.Datagrams, func(t *testing.T, target *verbstest.Target) {
		err := chat(verbstest.Context(t), target.Addr.String(), netip.MustParseAddr("239.77.2.1"), "ann", strings.NewReader(""), io.Discard)
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, want errors.ErrUnsupported", err)
		}
	})
}
