// Package wire is what rdmalab on the host and rdmalab as the guest's init say to each other.
//
// They speak over virtio serial ports, one for each kind of traffic, so that a command which reads no input or a caller
// which reads no output holds up nothing else. The control port carries JSON, one message a line, both ways. The
// others carry bytes as they are; how many there will be, and so where they end, is said on the control port.
package wire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Names of the ports, as /sys/class/virtio-ports shows them in the guest.
const (
	PortControl = "rdmalab.control"
	PortStdin   = "rdmalab.stdin"
	PortStdout  = "rdmalab.stdout"
	PortStderr  = "rdmalab.stderr"
	PortKernel  = "rdmalab.kernel" // the guest's /dev/kmsg records, one a line
)

// Ports lists every port in the order in which QEMU numbers them.
func Ports() []string {
	return []string{PortControl, PortStdin, PortStdout, PortStderr, PortKernel}
}

// Where the initramfs keeps what init needs before it has a root file system.
const (
	ModulesDir = "/modules"      // module files, by base name
	ModuleList = "/modules.list" // their names and parameters, one a line, in the order to load them
)

// Type says what a Message is.
type Type string

// The messages, in the order in which a run sends them.
const (
	Hello    Type = "hello"     // guest: init runs and can be told what to do
	Run      Type = "run"       // host: what to run (Spec)
	Started  Type = "started"   // guest: the command runs
	Signal   Type = "signal"    // host: send Signal to the command
	Winsize  Type = "winsize"   // host: the terminal is now Rows by Cols
	StdinEOF Type = "stdin-eof" // host: standard input ended after Count bytes
	Exit     Type = "exit"      // guest: the command ended with Code; Sent says how many bytes each port carried
	Fail     Type = "fail"      // guest: the lab itself failed, with Text
)

// Message is one line on the control port.
type Message struct {
	Type   Type             `json:"type"`
	Spec   *Spec            `json:"spec,omitempty"`
	Signal int              `json:"signal,omitempty"`
	Rows   uint16           `json:"rows,omitempty"`
	Cols   uint16           `json:"cols,omitempty"`
	Count  int64            `json:"count,omitempty"`
	Code   int              `json:"code"`
	Text   string           `json:"text,omitempty"`
	Sent   map[string]int64 `json:"sent,omitempty"`
}

// Spec says what a guest is to be and to run.
type Spec struct {
	Args     []string `json:"args"`
	Env      []string `json:"env"`
	Dir      string   `json:"dir"`
	TTY      bool     `json:"tty,omitempty"`
	Rows     uint16   `json:"rows,omitempty"`
	Cols     uint16   `json:"cols,omitempty"`
	Hostname string   `json:"hostname"`
	// Modules is the host's folder that becomes /lib/modules/RELEASE, empty for none.
	Modules string `json:"modules,omitempty"`
	// Shares are the host folders that the guest may write to.
	Shares []Share `json:"shares,omitempty"`
	Links  []Link  `json:"links,omitempty"`
	// Nonce is what init writes to the kernel log when the command has ended: all that came before it has then been sent.
	Nonce string `json:"nonce"`
}

// Share is a host folder that appears, writable, at the same path in the guest.
type Share struct {
	Tag  string `json:"tag"`
	Path string `json:"path"`
}

// Link is an RDMA link on a dummy netdev of its own.
type Link struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"` // rxe or siw
	Netdev string   `json:"netdev"`
	MTU    int      `json:"mtu"`
	Addrs  []string `json:"addrs"` // with prefix lengths
}

// Links are what a guest has unless told otherwise.
func Links() []Link {
	return []Link{
		{Name: "rxe0", Type: "rxe", Netdev: "rxenet0", MTU: 4200, Addrs: []string{"10.77.1.1/24", "fd77:1::1/64"}},
		{Name: "siw0", Type: "siw", Netdev: "siwnet0", MTU: 4200, Addrs: []string{"10.77.2.1/24", "fd77:2::1/64"}},
	}
}

// Status maps how a process ended to an exit status, as a shell does: 128 and the signal's number for one that was killed.
func Status(exited bool, code int, signal int) int {
	if exited {
		return code
	}
	return 128 + signal
}

// Conn sends and receives messages. Send may be called from several goroutines, Receive from one.
type Conn struct {
	mu sync.Mutex
	w  io.Writer
	r  *bufio.Reader
}

// NewConn speaks over rw.
func NewConn(rw io.ReadWriter) *Conn {
	return &Conn{w: rw, r: bufio.NewReader(rw)}
}

// Send writes one message.
func (c *Conn) Send(m Message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.w.Write(append(line, '\n'))
	return err
}

// Receive waits for the next message. It returns io.EOF when the other side is gone.
func (c *Conn) Receive() (Message, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return Message{}, err
	}
	var m Message
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return Message{}, fmt.Errorf("control port: %q: %w", strings.TrimSpace(line), err)
	}
	return m, nil
}
