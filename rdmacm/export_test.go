package rdmacm

// WaitBackground waits for clean-ups that outlive the dial that began them.
func WaitBackground() { background.Wait() }
