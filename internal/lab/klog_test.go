package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func scanFile(t *testing.T, name string) (problems []Problem, fatalities int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "klog", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	l := &kernelLog{onFatal: func() { fatalities++ }}
	for line := range strings.Lines(string(text)) {
		l.Add(strings.TrimSuffix(line, "\n"))
	}
	return l.Problems(), fatalities
}

// TestKernelLogProblems reads logs of kernels in trouble: one problem each, found with all of its lines.
func TestKernelLogProblems(t *testing.T) {
	for _, tt := range []struct {
		file, title, last string
		lines             int
		fatal             int
	}{
		{"warn", "WARNING: CPU: 1 PID: 412 at drivers/infiniband/core/cq.c:359 ib_free_cq+0x109/0x150 [ib_core]", "---[ end trace 0000000000000000 ]---", 9, 0},
		{"warn-new", "WARNING: drivers/infiniband/sw/rxe/rxe_pool.c:115 at rxe_pool_cleanup+0x2f/0x40 [rdma_rxe], CPU#0: rdma/321", "---[ end trace 0000000000000000 ]---", 3, 0},
		{"oops", "BUG: kernel NULL pointer dereference, address: 0000000000000008", "---[ end trace 0000000000000000 ]---", 9, 1},
		{"bug", "kernel BUG at mm/slub.c:379!", "---[ end trace 0000000000000000 ]---", 4, 1},
		{"hung", "INFO: task ibverbs.test:431 blocked for more than 120 seconds.", " rdma_restrack_del+0x9a/0x100 [ib_core]", 7, 1},
		{"kasan", "BUG: KASAN: slab-use-after-free in rxe_completer+0x1d3a/0x2390 [rdma_rxe]", "Read of size 8 at addr ffff88800a1b2c38 by task ksoftirqd/1/21", 2, 1},
		{"lockup", "watchdog: BUG: soft lockup - CPU#1 stuck for 62s! [rdmabench:512]", "Modules linked in: siw rdma_rxe", 2, 1},
		{"stall", "rcu: INFO: rcu_preempt self-detected stall on CPU", "rcu: \t1-....: (5249 ticks this GP) idle=1c2/1/0x4000000000000000", 2, 0},
		{"panic", "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000200", "---[ end Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000200 ]---", 2, 1},
		{"leak", "unregister_netdevice: waiting for rxenet0 to become free. Usage count = 2", "unregister_netdevice: waiting for rxenet0 to become free. Usage count = 2", 1, 0},
	} {
		t.Run(tt.file, func(t *testing.T) {
			problems, fatalities := scanFile(t, tt.file)
			if len(problems) != 1 {
				t.Fatalf("%d problems, want 1: %q", len(problems), problems)
			}
			p := problems[0]
			if p.Title != tt.title {
				t.Errorf("title %q, want %q", p.Title, tt.title)
			}
			if len(p.Lines) != tt.lines {
				t.Errorf("%d lines, want %d:\n%s", len(p.Lines), tt.lines, strings.Join(p.Lines, "\n"))
			}
			if last := p.Lines[len(p.Lines)-1]; !strings.HasSuffix(last, "] "+tt.last) {
				t.Errorf("last line %q, want %q", last, tt.last)
			}
			if fatalities != tt.fatal {
				t.Errorf("fatal %d times, want %d", fatalities, tt.fatal)
			}
		})
	}
}

// TestKernelLogClean reads what looks like trouble and is none: boot messages, crashes of processes, and the worst that
// a process can write to /dev/kmsg.
func TestKernelLogClean(t *testing.T) {
	problems, fatalities := scanFile(t, "clean")
	if len(problems) != 0 || fatalities != 0 {
		t.Errorf("%d fatalities, problems %q; want none", fatalities, problems)
	}
}

func TestKernelLogSeparatesProblems(t *testing.T) {
	l := new(kernelLog)
	for i := range problemsMost + 5 {
		l.Add(fmt.Sprintf("4,%d,%d,-;WARNING: CPU: 0 PID: 1 at a.c:%d f+0x1/0x2", i, i*5_000_000, i))
		l.Add(fmt.Sprintf("6,%d,%d,-;something else, much later", i, i*5_000_000+3_000_000))
	}
	problems := l.Problems()
	if len(problems) != problemsMost {
		t.Fatalf("%d problems, want %d", len(problems), problemsMost)
	}
	for _, p := range problems {
		if len(p.Lines) != 1 {
			t.Errorf("problem %q has %d lines, want 1", p.Title, len(p.Lines))
		}
	}
}

// TestConsole reads the serial console of a guest that panicked before it could send its log.
func TestConsole(t *testing.T) {
	l := new(kernelLog)
	for _, line := range []string{
		"SeaBIOS (version 1.16.2)",
		"[    2.101010] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
		"[    2.101020][    T1] CPU: 0 PID: 1 Comm: swapper/0 Not tainted",
	} {
		l.AddConsole(line)
	}
	want := []Problem{{
		Title: "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
		Lines: []string{
			"[    2.101010] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
			"[    2.101020] CPU: 0 PID: 1 Comm: swapper/0 Not tainted",
		},
	}}
	if diff := cmp.Diff(want, l.Problems()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestOutOfMemory(t *testing.T) {
	l := new(kernelLog)
	l.Add("3,1,1,-;Out of memory: Killed process 412 (go) total-vm:2097152kB, anon-rss:1800000kB")
	if !l.OutOfMemory() || len(l.Problems()) != 0 {
		t.Errorf("out of memory %v, problems %q; want true and none", l.OutOfMemory(), l.Problems())
	}
}

func TestTail(t *testing.T) {
	l := new(kernelLog)
	for i := range 10 * tailLines {
		l.Add(fmt.Sprintf("6,%d,%d,-;line %d", i, i, i))
	}
	tail := l.Tail()
	if len(tail) != tailLines || !strings.HasSuffix(tail[tailLines-1], fmt.Sprintf("line %d", 10*tailLines-1)) {
		t.Errorf("tail of %d lines ends %q", len(tail), tail[len(tail)-1])
	}
}

func TestMergeTails(t *testing.T) {
	log := []string{"[    1.000000] a", "[    2.000000] b"}
	console := []string{"[    2.000000] b", "[    3.000000] panic", "[    3.000001] b"}
	if diff := cmp.Diff([]string{"[    1.000000] a", "[    2.000000] b", "[    3.000000] panic"}, mergeTails(log, console)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(console, mergeTails(nil, console)); diff != "" {
		t.Errorf("console alone (-want +got):\n%s", diff)
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, s := range []string{"6,1,2,-;text", "12,1,2,-,caller=T1;x;y", ";", "a,b,c;d", "6,1;x", "-9,1,-2,-;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		l := &kernelLog{onFatal: func() {}}
		l.Add(line)
		l.AddConsole(line)
		if r, ok := parseRecord(line); ok && !strings.HasSuffix(line, ";"+r.text) {
			t.Errorf("%q parsed to text %q", line, r.text)
		}
	})
}
