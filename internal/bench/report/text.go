package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goverbs/goverbs/internal/bench"
)

// Text writes r for people: where it was measured, a table of latencies and one of
// throughput for each mode, and how to read them.
func Text(w io.Writer, r *bench.Report) error {
	var b strings.Builder
	header(&b, r)
	for _, mode := range r.Settings.Modes {
		for _, kind := range []bench.Kind{bench.KindLatency, bench.KindThroughput} {
			writeTable(&b, r, mode, kind)
		}
	}
	notes(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

// header says where and what was measured.
func header(b *strings.Builder, r *bench.Report) {
	b.WriteString("rdmabench: one workload over " + listTransports(r.Settings.Transports) + "\n\n")
	line := func(key, format string, args ...any) {
		fmt.Fprintf(b, "  %-12s%s\n", key, fmt.Sprintf(format, args...))
	}
	if r.SameHost {
		machine(line, "machine", r.Client)
		line("", "both ends on this machine: client and server are two processes")
	} else {
		machine(line, "client", r.Client)
		machine(line, "server", r.Server)
	}
	for _, c := range r.Connections {
		line(bench.TransportTitle(c.Transport), "%s", describe(c))
	}
	line("workload", "%s", workload(r))
	if checked := verified(r); checked != "" {
		line("checked", "%s", checked)
	}
	line("measured", "%s, in %.0f s, by rdmabench %s (%s)", r.Started.UTC().Format("2006-01-02 15:04 UTC"),
		r.ElapsedSeconds, r.Client.Version, r.Client.Go)
	if r.Partial != "" {
		line("PARTIAL", "%d of %d measurements: %s", len(r.Measurements), r.Planned, r.Partial)
	}
}

func listTransports(names []string) string {
	titles := make([]string, len(names))
	for i, n := range names {
		titles[i] = bench.TransportTitle(n)
	}
	if len(titles) < 2 {
		return strings.Join(titles, "")
	}
	last := len(titles) - 1
	return strings.Join(titles[:last], ", ") + " and " + titles[last]
}

func machine(line func(string, string, ...any), key string, e bench.Environment) {
	cpus := "1 CPU"
	if e.CPUs != 1 {
		cpus = fmt.Sprintf("%d CPUs", e.CPUs)
	}
	line(key, "%s, %s, %s: %s", e.Host, e.Machine, cpus, e.CPU)
	core := "no rdma-core"
	if e.RDMACore != "" {
		core = "rdma-core " + e.RDMACore
	}
	line("", "Linux %s %s, %s", e.Kernel, e.Arch, core)
}

// describe names both ends of a connection, the shared parts once.
func describe(c bench.Connection) string {
	parts := []string{}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	a, z := c.Client, c.Server
	switch {
	case a.Device != "" && a.Device == z.Device:
		add("%s on %s", a.Device, a.Netdev)
	case a.Device != "":
		add("%s on %s to %s on %s", a.Device, a.Netdev, z.Device, z.Netdev)
	case a.Netdev != "" && a.Netdev == z.Netdev:
		add("%s", a.Netdev)
	case a.Netdev != "":
		add("%s to %s", a.Netdev, z.Netdev)
	}
	add("address %s", z.Address)
	if a.MTU > 0 {
		add("MTU %d B", min(a.MTU, max(z.MTU, 1)))
	}
	if a.ReadDepth > 0 {
		add("%d READs at most under way", a.ReadDepth)
	}
	return strings.Join(parts, ", ")
}

// workload says how much of what, the same for all transports.
func workload(r *bench.Report) string {
	iters := "iterations by size"
	switch s := r.Settings; {
	case s.DurationSeconds > 0:
		iters = fmt.Sprintf("as many messages as the slowest transport moves in %g s", s.DurationSeconds)
	case s.Iterations > 0:
		iters = fmt.Sprintf("%d messages", s.Iterations)
	default:
		iters = fmt.Sprintf("%d messages for latency, %d MiB or %d messages for throughput",
			bench.DefaultLatencyIters, bench.DefaultVolume>>20, bench.MinThroughputIters)
	}
	return fmt.Sprintf("%s, depth %d; the same on every transport, warm-up left out", iters, r.Settings.Depth)
}

// verified says how much of the data was compared.
func verified(r *bench.Report) string {
	var got, all int64
	for _, m := range r.Measurements {
		if m.Verified == nil {
			continue
		}
		got += m.Verified.Messages
		all += received(m)
	}
	switch {
	case all == 0:
		return ""
	case got == all:
		return fmt.Sprintf("every byte of all %d messages, when the clock had stopped", all)
	}
	return fmt.Sprintf("every byte of %d of %d messages, when the clock had stopped", got, all)
}

// received is how many messages both ends together received in m.
func received(m bench.Result) int64 {
	n := int64(m.Iterations)
	if m.Kind == bench.KindLatency && m.Op != bench.OpRead {
		n *= 2
	}
	return n
}

// notes explains the tables, and lists what failed.
func notes(b *strings.Builder, r *bench.Report) {
	b.WriteString("\n")
	for _, n := range explain(r) {
		b.WriteString(wrap(n, "  ", 96))
	}
	failures := failureNotes(r)
	if len(failures) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%d of %d measurements failed:\n", r.Failed(), len(r.Measurements))
	for i, f := range failures {
		b.WriteString(wrap(fmt.Sprintf("[%d] %s", i+1, f), "  ", 96))
	}
}

// explain says only what matters to the tables that are there.
func explain(r *bench.Report) []string {
	notes := []string{"SEND and WRITE latency is half of a round trip, READ latency the whole: " +
		"from asking for the data to having it."}
	if slices.Contains(r.Settings.Ops, bench.OpWrite) {
		note := "WRITE: "
		if slices.Contains(r.Settings.Modes, bench.ModePoll) {
			note += "when polling, the receiver watches its memory for the last byte; "
		}
		if slices.Contains(r.Settings.Modes, bench.ModeEvent) {
			note += "with events, an empty SEND behind the data wakes it; "
		}
		notes = append(notes, note+"TCP, which has no one-sided operation, sends a message as for SEND.")
	}
	return append(notes,
		"CPU is the time of client + server, in percent of one core. Work of the kernel in interrupts and "+
			"threads of its own is in \"machine\" only: how busy all cores were.")
}

// failureNotes are the different errors of r, each once.
func failureNotes(r *bench.Report) []string {
	var out []string
	for _, m := range r.Measurements {
		if m.Error != "" && !slices.Contains(out, failureNote(m)) {
			out = append(out, failureNote(m))
		}
	}
	return out
}

func failureNote(m bench.Result) string {
	return bench.TransportTitle(m.Transport) + ": " + m.Error
}

// wrap breaks text into lines of at most width, each after the indent.
func wrap(text, indent string, width int) string {
	var b strings.Builder
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line)+len(word)+1 > width && line != indent {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent + "  "
		}
		line += word + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}
