package verbstest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
)

// Main runs a package's tests, and fails the run if they leave kernel objects
// or Go objects behind. It returns the exit status: os.Exit(verbstest.Main(m)).
func Main(m *testing.M) int {
	var mu sync.Mutex
	var leaks []string
	ibverbs.ReportLeaks(func(object, stack string) {
		mu.Lock()
		defer mu.Unlock()
		leaks = append(leaks, object+" was never closed; created by\n"+stack)
	})
	status := m.Run()

	// Cleanups run some time after the collection that found the garbage.
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	left, err := kernelObjects()
	if err != nil {
		leaks = append(leaks, err.Error())
	}
	for _, l := range append(leaks, left...) {
		fmt.Fprintln(os.Stderr, "leak:", l)
		status = max(status, 1)
	}
	return status
}

// kernelObjects lists what the kernel's resource tracker holds for this
// process. Without devices there is nothing to ask.
func kernelObjects() ([]string, error) {
	devices, err := ibverbs.Devices()
	if err != nil || len(devices) == 0 {
		return nil, err
	}
	threads, err := ownThreads()
	if err != nil {
		return nil, err
	}
	var left []string
	// Contexts are listed too, but librdmacm keeps some of its own open; memory
	// windows are not.
	for _, kind := range []string{"qp", "cq", "mr", "pd", "srq", "cm_id"} {
		// Kernels before 6.x cannot list some kinds of some drivers; they
		// then print an empty list.
		out, err := exec.Command("rdma", "-j", "resource", "show", kind).Output()
		if err != nil {
			return left, fmt.Errorf("rdma resource show %s: %w (install iproute2)", kind, err)
		}
		objects, err := ownObjects(out, threads)
		if err != nil {
			return left, fmt.Errorf("rdma resource show %s: %w", kind, err)
		}
		for _, o := range objects {
			left = append(left, "the kernel still has "+kind+" "+o)
		}
	}
	return left, nil
}

// ownThreads lists the process's threads. What the tracker calls an object's
// pid is the thread that created it.
func ownThreads() (map[int]bool, error) {
	entries, err := os.ReadDir("/proc/self/task")
	threads := make(map[int]bool)
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		threads[tid] = true
	}
	return threads, err
}

// ownObjects picks what these threads have created from rdma's JSON.
func ownObjects(out []byte, threads map[int]bool) ([]string, error) {
	if strings.TrimSpace(string(out)) == "" {
		return nil, nil
	}
	var objects []map[string]any
	if err := json.Unmarshal(out, &objects); err != nil {
		return nil, err
	}
	var own []string
	for _, o := range objects {
		if p, ok := o["pid"].(float64); ok && threads[int(p)] {
			own = append(own, fmt.Sprint(o))
		}
	}
	return own, nil
}
