package lab

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// stream copies one of the guest's ports and counts what came, so that the end can be told from a pause.
type stream struct {
	mu      sync.Mutex
	got     int64
	ended   bool
	changed chan struct{} // closed and replaced whenever got or ended changes
	failed  error         // of the writer
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

// copy runs until the port is closed. What the writer refuses is thrown away: the guest must not hang on it.
func (s *stream) copy(w io.Writer, port io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := port.Read(buf)
		var werr error
		if n > 0 && w != nil {
			_, werr = w.Write(buf[:n])
		}
		s.mu.Lock()
		s.got += int64(n)
		s.ended = err != nil
		if werr != nil && s.failed == nil {
			s.failed, w = werr, nil
		}
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// wait waits until total bytes came. It gives up when the port is closed, or when nothing comes for as long as idle: the
// bytes are then lost, which the result tells.
func (s *stream) wait(total int64, idle time.Duration) (complete bool) {
	for {
		s.mu.Lock()
		got, ended, changed := s.got, s.ended, s.changed
		s.mu.Unlock()
		if got >= total || ended {
			return got >= total
		}
		select {
		case <-changed:
		case <-time.After(idle):
			return false
		}
	}
}

// err returns the first error of the writer.
func (s *stream) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// lineSplitter is a writer that calls line with each line, without its end.
type lineSplitter struct {
	line func(string)
	rest []byte
}

func (l *lineSplitter) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.line(string(line))
		l.rest = append(l.rest[:0], rest...)
	}
}

// sendInput copies the caller's input to the guest, and says when it ends.
func sendInput(conn *wire.Conn, port io.Writer, from io.Reader) {
	var sent int64
	if from != nil {
		sent, _ = io.Copy(port, from) // when the guest is gone nobody wants to know
	}
	_ = conn.Send(wire.Message{Type: wire.StdinEOF, Count: sent})
}
