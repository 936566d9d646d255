package rnic

// MonitorEvents subscribes as WaitUsable does, for the lab's tests.
func MonitorEvents() (events <-chan struct{}, sources int, closeAll func()) {
	m := newMonitor()
	return m.events, len(m.sockets), m.close
}
