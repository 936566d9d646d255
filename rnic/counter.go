package rnic

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// CounterSource is the sysfs folder that a counter is in.
type CounterSource string

// The sources of counters.
const (
	// CounterHW are the driver's own: what it retried, dropped or refused.
	CounterHW CounterSource = "hw_counters"
	// CounterPort are InfiniBand's port counters, which RoCE drivers may have
	// too: port_xmit_data and port_rcv_data count units of 4 bytes.
	CounterPort CounterSource = "counters"
)

// lifespan is the one file among the hw_counters that is a setting: for how
// many milliseconds the kernel answers from its copy.
const lifespan = "lifespan"

// Counter is the value of one counter.
type Counter struct {
	Source CounterSource `json:"source"`
	Port   int           `json:"port"` // 0: of the whole device
	Name   string        `json:"name"` // the kernel's
	Value  uint64        `json:"value"`
}

// Counters are the counters of one RNIC. What could not be read is in Problems
// and not in Counters.
type Counters struct {
	RNIC     string    `json:"rnic"`
	Time     time.Time `json:"time"` // when reading began
	Counters []Counter `json:"counters"`
	Problems []Problem `json:"problems,omitempty"`
}

// ReadCounters reads the counters of the RNIC of that name. See
// Host.ReadCounters.
func ReadCounters(name string) (Counters, error) { return Host{}.ReadCounters(name) }

// ReadCounters reads the hw_counters and the port counters of the RNIC of that
// name, the device's own first, then by port, source and name. A driver may
// have none, as siw: an empty list and no error. The kernel answers from a copy
// for a driver's lifespan (10 ms if it says nothing), and the counters are read
// one after the other: they are not of one instant. It needs no privilege, and
// blocks on the driver only. ErrNotFound where there is no such RNIC.
func (h Host) ReadCounters(name string) (Counters, error) {
	fail := func(err error) (Counters, error) {
		return Counters{}, &OpError{Op: "counters", Object: name, Err: err}
	}
	d, err := h.device(name)
	if err != nil {
		return fail(err)
	}
	r := h.reader(d)
	out := Counters{RNIC: name, Time: time.Now(), Counters: []Counter{}}
	if _, err := os.Stat(r.path(r.dir...)); err != nil {
		if absent(err) && !h.stillThere(name) {
			return fail(ErrNotFound)
		}
		r.problem(r.path(r.dir...), err)
		out.Problems = r.problems
		return out, nil
	}
	out.Counters = r.counters(out.Counters, 0, CounterHW, string(CounterHW))
	ports := r.numbers(r.at("ports")...)
	if len(ports) == 0 {
		r.problem(r.path(r.at("ports")...), errEmpty) // every device has one
	}
	for _, port := range ports {
		for _, source := range []CounterSource{CounterPort, CounterHW} {
			out.Counters = r.counters(out.Counters, port, source, "ports", strconv.Itoa(port), string(source))
		}
	}
	out.Problems = r.problems
	return out, nil
}

// counters appends those in the folder at dir below the RNIC's.
func (r *reader) counters(to []Counter, port int, source CounterSource, dir ...string) []Counter {
	for _, name := range r.list(r.at(dir...)...) {
		if source == CounterHW && name == lifespan {
			continue
		}
		path := r.path(append(r.at(dir...), name)...)
		text, err := readAttr(path)
		var v uint64
		if err == nil {
			v, err = parseCounter(text)
		}
		if err != nil {
			r.problem(path, err)
			continue
		}
		to = append(to, Counter{Source: source, Port: port, Name: name, Value: v})
	}
	return to
}

func parseCounter(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a counter's value", s)
	}
	return v, nil
}
