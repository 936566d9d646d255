package tcpnet

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// blocking uses the connection as any program does.
type blocking struct{ tcp *net.TCPConn }

func (b blocking) readFull(buf []byte) error {
	_, err := io.ReadFull(b.tcp, buf)
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (b blocking) writeFull(buf []byte) error {
	_, err := b.tcp.Write(buf)
	return err
}

// spinner reads and writes the socket in a loop until all is done, instead of
// parking when the kernel says EAGAIN. It allocates nothing.
type spinner struct {
	raw     syscall.RawConn
	stopped atomic.Bool

	// What the loop works on, and its two halves, made once: a closure for each
	// call would allocate.
	buf         []byte
	err         error
	read, write func(fd uintptr) bool
}

func newSpinner(tcp *net.TCPConn) (*spinner, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &spinner{raw: raw}
	s.read = func(fd uintptr) bool { return s.loop(fd, unix.Read) }
	s.write = func(fd uintptr) bool { return s.loop(fd, unix.Write) }
	return s, nil
}

// loop moves all of s.buf. It always says that it is done: false would park.
func (s *spinner) loop(fd uintptr, move func(int, []byte) (int, error)) bool {
	for len(s.buf) > 0 {
		if s.stopped.Load() {
			s.err = os.ErrDeadlineExceeded
			return true
		}
		n, err := move(int(fd), s.buf)
		switch {
		case n > 0:
			s.buf = s.buf[n:]
		case err == unix.EAGAIN || err == unix.EINTR:
		case err != nil:
			s.err = err
			return true
		default:
			s.err = io.ErrUnexpectedEOF
			return true
		}
	}
	return true
}

func (s *spinner) readFull(buf []byte) error {
	s.buf, s.err = buf, nil
	if err := s.raw.Read(s.read); err != nil {
		return err
	}
	return s.err
}

func (s *spinner) writeFull(buf []byte) error {
	s.buf, s.err = buf, nil
	if err := s.raw.Write(s.write); err != nil {
		return err
	}
	return s.err
}
