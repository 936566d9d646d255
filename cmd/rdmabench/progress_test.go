package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/bench"
)

// terminal opens a pseudo-terminal: what is written to the one can be read from the
// other.
func terminal(t *testing.T) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	fd := int(screen.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return screen, program
}

func TestProgressOnATerminal(t *testing.T) {
	screen, program := terminal(t)
	p := newProgress(program)
	run := bench.Task{Op: bench.OpSend, Size: 64, Kind: bench.KindLatency, Mode: bench.ModePoll}
	p.at(0, 4, run, "roce")
	buf := make([]byte, 4096)
	n, err := screen.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SEND 64 B RoCE v2 poll", "/4"} {
		if !strings.Contains(string(buf[:n]), want) {
			t.Errorf("no %q on the screen: %q", want, buf[:n])
		}
	}
	p.close()
}

func TestNoProgressInAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var buf bytes.Buffer
	for _, p := range []*progress{newProgress(w), newProgress(&buf)} {
		p.at(1, 4, bench.Task{}, "tcp")
		p.close()
	}
	w.Close()
	if n, _ := r.Read(make([]byte, 1)); n > 0 || buf.Len() > 0 {
		t.Error("something was written")
	}
}
