package rdmacm

// WaitBackground waits for clean-ups that outlive the call that began them.
func WaitBackground() { background.Wait() }

// ForgetDevices makes librdmacm let go of devices that are gone.
func ForgetDevices() { cForgetDevices() }
