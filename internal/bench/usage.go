package bench

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is what a process used of its machine during a run. Percentages are of
// one core: two busy threads are 200 %.
//
// A process is charged for its own work and its system calls. What the kernel does
// for it elsewhere (interrupts, kernel threads) shows in MachinePercent only.
type Usage struct {
	UserPercent         float64 `json:"user_percent"`
	SystemPercent       float64 `json:"system_percent"`
	VoluntarySwitches   int64   `json:"voluntary_switches"`
	InvoluntarySwitches int64   `json:"involuntary_switches"`
	// MachinePercent is how busy all cores together were, whoever kept them
	// busy: 100 is all of them. -1 if the run was too short to tell.
	MachinePercent float64 `json:"machine_percent"`
}

// Percent is user and system time together.
func (u Usage) Percent() float64 { return u.UserPercent + u.SystemPercent }

// Meter measures a Usage: StartMeter before, Stop after.
type Meter struct {
	start  time.Time
	rusage unix.Rusage
	stat   procStat
}

// StartMeter reads the counters for the first time.
func StartMeter() Meter {
	// /proc/stat comes first and last: reading it is the dearer of the two.
	m := Meter{stat: readProcStat("/proc/stat")}
	readRusage(&m.rusage)
	m.start = time.Now()
	return m
}

// Stop reads the counters again and returns the difference.
func (m Meter) Stop() Usage {
	wall := time.Since(m.start)
	var now unix.Rusage
	readRusage(&now)
	percent := func(from, to unix.Timeval) float64 {
		return 100 * float64(to.Nano()-from.Nano()) / float64(max(wall, 1))
	}
	return Usage{
		UserPercent:         percent(m.rusage.Utime, now.Utime),
		SystemPercent:       percent(m.rusage.Stime, now.Stime),
		VoluntarySwitches:   now.Nvcsw - m.rusage.Nvcsw,
		InvoluntarySwitches: now.Nivcsw - m.rusage.Nivcsw,
		MachinePercent:      m.stat.busyUntil(readProcStat("/proc/stat")),
	}
}

// readRusage cannot fail with a valid address and RUSAGE_SELF.
func readRusage(r *unix.Rusage) { _ = unix.Getrusage(unix.RUSAGE_SELF, r) }

// procStat is the first line of /proc/stat, in clock ticks.
type procStat struct{ busy, total int64 }

// readProcStat returns zeroes where there is nothing to read.
func readProcStat(path string) procStat {
	data, err := os.ReadFile(path)
	if err != nil {
		return procStat{}
	}
	return parseProcStat(string(data))
}

// parseProcStat adds up user, nice, system, idle, iowait, irq, softirq and steal.
// Guest time is contained in user time.
func parseProcStat(text string) procStat {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 5 || fields[0] != "cpu" {
		return procStat{}
	}
	var s procStat
	for i, f := range fields[1:min(len(fields), 9)] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return procStat{}
		}
		s.total += n
		if i != 3 && i != 4 { // idle, iowait
			s.busy += n
		}
	}
	return s
}

// minTicks is how many clock ticks a busy share must rest on: one tick is 10 ms of
// one core.
const minTicks = 10

func (s procStat) busyUntil(end procStat) float64 {
	total := end.total - s.total
	if total < minTicks {
		return -1
	}
	return 100 * float64(end.busy-s.busy) / float64(total)
}
