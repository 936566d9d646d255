package guest

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// finishWithin bounds the wait for the kernel log's last record.
const finishWithin = 5 * time.Second

// kernelLog sends the kernel's log to the host as it comes. Its records say who wrote them, so that what a process
// writes to /dev/kmsg is never taken for the kernel's own word.
type kernelLog struct {
	to    *port
	nonce []byte
	sent  int64
	done  chan struct{}
}

func newKernelLog(to *port, nonce string) *kernelLog {
	return &kernelLog{to: to, nonce: []byte(nonce), done: make(chan struct{})}
}

// stream copies records until the one with the nonce.
func (k *kernelLog) stream() {
	defer close(k.done)
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	record := make([]byte, 16<<10)
	for {
		n, err := unix.Read(fd, record)
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EINTR) {
			continue // EPIPE: the log's ring went round; the next read goes on with what is there
		}
		if err != nil || n == 0 {
			return
		}
		if len(k.nonce) > 0 && bytes.Contains(record[:n], k.nonce) {
			return
		}
		// A record's first line is its header and text; the lines after it are properties that the host does not need.
		line, _, _ := bytes.Cut(record[:n], []byte("\n"))
		sent, err := k.to.Write(append(line, '\n'))
		k.sent += int64(sent)
		if err != nil {
			return
		}
	}
}

// finish marks the log's end, waits until all before it was sent, and adds how much that was to sent.
func (k *kernelLog) finish(sent map[string]int64) map[string]int64 {
	if sent == nil {
		sent = make(map[string]int64)
	}
	all := maps.Clone(sent)
	if err := os.WriteFile("/dev/kmsg", append(k.nonce, '\n'), 0); err != nil {
		return all
	}
	select {
	case <-k.done:
		all[wire.PortKernel] = k.sent
	case <-time.After(finishWithin):
	}
	return all
}
