package rnic

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// rdmaGroupNotify is RDMA_NL_GROUP_NOTIFY: devices that come, go, get a netdev
// or lose it. Kernels before 6.12 accept the subscription and send nothing.
const rdmaGroupNotify = 4

// monitor wakes a waiter when the kernel says that links, addresses or RDMA
// devices changed. It is a hint to look again and never the only one: the GID
// table follows an address change some time after its event.
type monitor struct {
	events  chan struct{} // capacity 1: what happened does not matter, that it did does
	sockets []*os.File
}

// newMonitor subscribes to what this kernel and process may subscribe to; with
// nothing of it the monitor just stays silent.
func newMonitor() *monitor {
	m := &monitor{events: make(chan struct{}, 1)}
	m.subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
	m.subscribe(unix.NETLINK_RDMA, rdmaGroupNotify)
	for _, f := range m.sockets {
		go m.relay(f)
	}
	return m
}

func (m *monitor) subscribe(proto int, groups ...int) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	if err != nil {
		return
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return
	}
	for _, g := range groups {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g); err != nil {
			unix.Close(fd)
			return
		}
	}
	// Non-blocking, so the file is in Go's poller: relay parks no thread and
	// Close ends it.
	m.sockets = append(m.sockets, os.NewFile(uintptr(fd), "netlink"))
}

func (m *monitor) relay(f *os.File) {
	buf := make([]byte, 1) // the rest of each message is dropped
	for {
		_, err := f.Read(buf)
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			return
		}
		select {
		case m.events <- struct{}{}:
		default:
		}
	}
}

func (m *monitor) close() {
	for _, f := range m.sockets {
		f.Close()
	}
}
