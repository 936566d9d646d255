package rdmacm

// WaitBackground waits for clean-ups that outlive the call that began them.
func WaitBackground() { background.Wait() }
