package ibverbs

// HasVerb tells whether the installed libibverbs has a function.
var HasVerb = hasVerb

// HasODP tells whether a device can page memory in on demand.
func HasODP(d *Device) bool { return hasODP(d.ctx) }
