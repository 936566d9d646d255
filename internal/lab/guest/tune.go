package guest

import (
	"os"

	"golang.org/x/sys/unix"
)

// tune sets what suits a test machine. A kernel that lacks a knob goes without it.
func tune() {
	for file, value := range map[string]string{
		"kernel/printk":          "5",  // warnings and worse reach the console too, for a guest that dies
		"kernel/sysrq":           "1",  // all of it
		"kernel/dmesg_restrict":  "0",  // dmesg for every user
		"kernel/watchdog_thresh": "30", // a busy host may hold an emulated CPU up for a while
	} {
		_ = os.WriteFile("/proc/sys/"+file, []byte(value), 0o644)
	}
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unlimited) // siw enforces it for root too on 6.1
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 65536, Max: 1 << 20})
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 0, Max: unix.RLIM_INFINITY})
}
