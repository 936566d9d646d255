package rdmacm

// WaitBackground waits for clean-ups that outlive the call that began them.
func WaitBackground() { background.Wait() }

// CachedPaths is how many address handles a Datagram keeps.
func CachedPaths(d *Datagram) int {
	d.paths.mu.Lock()
	defer d.paths.mu.Unlock()
	return len(d.paths.by)
}
