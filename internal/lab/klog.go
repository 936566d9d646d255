package lab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Bounds of what is kept of a guest's log.
const (
	tailLines    = 40 // shown of a guest that hangs or dies
	problemLines = 80 // shown of one kernel problem
	problemsMost = 20
)

// record is one line of the kernel's log.
type record struct {
	facility int // 0: the kernel itself; a process that writes to /dev/kmsg cannot claim that
	seconds  float64
	text     string
}

// String prints a record as dmesg does.
func (r record) String() string { return fmt.Sprintf("[%12.6f] %s", r.seconds, r.text) }

// parseRecord reads a /dev/kmsg record: "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,...];TEXT".
func parseRecord(line string) (record, bool) {
	header, text, ok := strings.Cut(line, ";")
	fields := strings.Split(header, ",")
	if !ok || len(fields) < 3 {
		return record{}, false
	}
	priority, err1 := strconv.Atoi(fields[0])
	micros, err2 := strconv.ParseInt(fields[2], 10, 64)
	if err1 != nil || err2 != nil {
		return record{}, false
	}
	return record{facility: priority >> 3, seconds: float64(micros) / 1e6, text: text}, true
}

// problemStart matches the first line of what a healthy kernel never says. All are at the start of a record, where only
// the kernel's own code writes.
var problemStart = regexp.MustCompile(`^(` + strings.Join([]string{
	`WARNING: `,
	`(watchdog: )?BUG: `, // NULL pointers, page faults, KASAN, KFENCE, soft lockups, sleeping in atomic context
	`kernel BUG at `,
	`Oops\b`,
	`general protection fault\b`,
	`(int3|invalid opcode|divide error|stack segment|double fault|traps: PANIC): `,
	`Kernel panic - not syncing`,
	`INFO: task .* blocked (for more than|on|in I/O wait)`,
	`INFO: (possible|inconsistent|suspicious|trying to register non-static key)`,
	`(rcu: )?INFO: rcu_\w+ (self-)?detected .*stall`,
	`(rcu: )?INFO: rcu_\w+ detected stalls`,
	`NMI watchdog: `,
	`watchdog: Watchdog detected hard LOCKUP`,
	`UBSAN: `,
	`(list_add|list_del) corruption`,
	`refcount_t: `,
	`unregister_netdevice: waiting for `,
	`unreferenced object 0x`,
}, "|") + `)`)

// fatal problems leave the guest's kernel in no state to go on; a mere warning does not.
var fatal = regexp.MustCompile(`^(Oops|kernel BUG|general protection|Kernel panic|INFO: task|(watchdog: )?BUG: (kernel|unable|soft|KASAN|Bad)|watchdog: )`)

// end of a report that has one; others end with the lines limit or the next problem.
var problemEnd = regexp.MustCompile(`^---\[ end (trace|Kernel panic)`)

// benign lines look like a problem and are none.
var benign = regexp.MustCompile(`^(NMI watchdog: (Enabled|Perf|disabled)|WARNING: Spectre|WARNING: \w+ is deprecated)`)

// outOfMemory is a guest too small, not a kernel problem.
var outOfMemory = regexp.MustCompile(`^(Out of memory|Memory cgroup out of memory): `)

// Problem is something that the guest's kernel should never have said.
type Problem struct {
	Title string   `json:"title"` // its first line
	Lines []string `json:"lines"` // all of it, as dmesg prints it
}

// kernelLog keeps the tail of a guest's log and finds its problems. It may be used from several goroutines.
type kernelLog struct {
	mu       sync.Mutex
	tail     []string
	problems []Problem
	open     bool // the last problem's report goes on
	lastAt   float64
	oom      bool
	onFatal  func() // called once
}

// Add takes one raw /dev/kmsg record.
func (l *kernelLog) Add(line string) {
	r, ok := parseRecord(line)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(r)
}

// AddConsole takes one line from the serial console, of which nobody knows who wrote it; with trusted, it is scanned.
func (l *kernelLog) AddConsole(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := line
	seconds := l.lastAt
	if m := consoleStamp.FindStringSubmatch(line); m != nil {
		seconds, _ = strconv.ParseFloat(m[1], 64)
		text = m[2]
	}
	l.add(record{seconds: seconds, text: text})
}

// consoleStamp is how the kernel starts a line on its console.
var consoleStamp = regexp.MustCompile(`^\[ *(\d+\.\d+)\](?:\[ *[TC]\d+\])? (.*)$`)

func (l *kernelLog) add(r record) {
	l.tail = append(l.tail, r.String())
	if len(l.tail) > 4*tailLines {
		l.tail = append([]string(nil), l.tail[len(l.tail)-tailLines:]...)
	}
	if r.facility != 0 {
		return
	}
	l.oom = l.oom || outOfMemory.MatchString(r.text)
	starts := problemStart.MatchString(r.text) && !benign.MatchString(r.text)
	switch {
	case starts && l.open && r.seconds-l.lastAt < 1:
		// One report often has several such lines: BUG, then Oops.
		l.keep(r)
	case starts && len(l.problems) < problemsMost:
		l.problems = append(l.problems, Problem{Title: r.text, Lines: []string{r.String()}})
		l.open = true
	case l.open && r.seconds-l.lastAt < 1:
		l.keep(r)
	default:
		l.open = false
	}
	if starts && fatal.MatchString(r.text) && l.onFatal != nil {
		l.onFatal()
		l.onFatal = nil
	}
	if problemEnd.MatchString(r.text) {
		l.open = false
	}
	l.lastAt = r.seconds
}

// keep adds a line to the last problem.
func (l *kernelLog) keep(r record) {
	p := &l.problems[len(l.problems)-1]
	if len(p.Lines) < problemLines {
		p.Lines = append(p.Lines, r.String())
	}
}

// Problems returns what was found so far.
func (l *kernelLog) Problems() []Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Problem(nil), l.problems...)
}

// Tail returns the last lines.
func (l *kernelLog) Tail() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.tail[max(0, len(l.tail)-tailLines):]...)
}

// OutOfMemory reports whether the kernel killed a process for want of memory.
func (l *kernelLog) OutOfMemory() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oom
}
