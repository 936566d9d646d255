package wire

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConn(t *testing.T) {
	a, b := net.Pipe()
	here, there := NewConn(a), NewConn(b)
	sent := []Message{
		{Type: Hello},
		{Type: Run, Spec: &Spec{Args: []string{"sh", "-c", "echo \"a\nb\""}, Env: []string{"A=\x01\n"}, Dir: "/w", Links: Links(), Nonce: "n"}},
		{Type: Exit, Code: 3, Sent: map[string]int64{PortStdout: 1 << 40}},
	}
	go func() {
		for _, m := range sent {
			if err := here.Send(m); err != nil {
				t.Errorf("send %v: %v", m, err)
			}
		}
		a.Close()
	}()
	for _, want := range sent {
		got, err := there.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
	}
	if _, err := there.Receive(); err != io.EOF {
		t.Errorf("at the end: %v, want io.EOF", err)
	}
}

func TestReceiveNonsense(t *testing.T) {
	c := NewConn(struct {
		io.Reader
		io.Writer
	}{strings.NewReader("login: \n"), io.Discard})
	if _, err := c.Receive(); err == nil || !strings.Contains(err.Error(), "login:") {
		t.Errorf("error %v, want one that shows the line", err)
	}
}

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		exited       bool
		code, signal int
		want         int
	}{{true, 0, -1, 0}, {true, 2, -1, 2}, {true, 255, -1, 255}, {false, -1, 9, 137}, {false, -1, 11, 139}} {
		if got := Status(tt.exited, tt.code, tt.signal); got != tt.want {
			t.Errorf("Status(%v, %d, %d) = %d, want %d", tt.exited, tt.code, tt.signal, got, tt.want)
		}
	}
}
