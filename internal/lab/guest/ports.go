package guest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// portsWithin bounds the wait for the ports, which the kernel makes a moment after their driver is loaded.
const portsWithin = 10 * time.Second

// port is a virtio serial port. It is read and written with plain blocking system calls: the ports are few and live as
// long as the machine.
type port struct {
	fd   int
	name string
}

func openPorts() (map[string]*port, error) {
	deadline := time.Now().Add(portsWithin)
	for {
		ports, missing := findPorts()
		if missing == "" {
			return ports, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("virtio port %s is missing", missing)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// findPorts opens all ports, or says which is not there yet.
func findPorts() (map[string]*port, string) {
	paths := make(map[string]string)
	files, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
	for _, file := range files {
		if name, err := os.ReadFile(file); err == nil {
			paths[strings.TrimSpace(string(name))] = "/dev/" + filepath.Base(filepath.Dir(file))
		}
	}
	for _, name := range wire.Ports() {
		if _, err := os.Stat(paths[name]); err != nil {
			return nil, name
		}
	}
	ports := make(map[string]*port)
	for _, name := range wire.Ports() {
		fd, err := unix.Open(paths[name], unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			for _, p := range ports {
				unix.Close(p.fd)
			}
			return nil, name
		}
		ports[name] = &port{fd: fd, name: name}
	}
	return ports, ""
}

// Read waits for bytes from the host. The kernel reports the end of the file while the host has not connected yet, which
// rdmalab always has a moment later, so that is no end.
func (p *port) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(p.fd, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, fmt.Errorf("%s: %w", p.name, err)
		case n == 0:
			time.Sleep(5 * time.Millisecond)
		default:
			return n, nil
		}
	}
}

// Write hands all of b to the host; it waits while the host does not read.
func (p *port) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(p.fd, b[done:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, fmt.Errorf("%s: %w", p.name, err)
		case n == 0:
			return done, io.ErrShortWrite
		default:
			done += n
		}
	}
	return done, nil
}
