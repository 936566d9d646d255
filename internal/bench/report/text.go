package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

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
		text := wrap(fmt.Sprintf(format, args...), strings.Repeat(" ", 14), 0)
		b.WriteString("  " + fmt.Sprintf("%-12s", key) + strings.TrimLeft(text, " "))
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
		add("READ depth %d", a.ReadDepth)
	}
	return strings.Join(parts, ", ")
}

// workload says how much of what, the same for all transports.
func workload(r *bench.Report) string {
	var much string
	switch s := r.Settings; {
	case s.DurationSeconds > 0:
		much = fmt.Sprintf("as many messages as the slowest transport moves in %g s", s.DurationSeconds)
	case s.Iterations > 0:
		much = fmt.Sprintf("%d messages", s.Iterations)
	default:
		much = fmt.Sprintf("%d messages for latency, %d MiB of them (%d at least) for throughput",
			bench.DefaultLatencyIters, bench.DefaultVolume>>20, bench.MinThroughputIters)
	}
	return fmt.Sprintf("%s; one under way for latency, %d for throughput; the same on every transport, warm-up left out",
		much, r.Settings.Depth)
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
		return fmt.Sprintf("every byte of all %d messages, after the clock had stopped", all)
	}
	return fmt.Sprintf("every byte of %d of %d messages (the last ones of each run), after the clock had stopped", got, all)
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
	list := explain(r)
	if strings.Contains(b.String(), none) {
		list = append(list, none+": too few messages, or too little time, for this number to mean anything.")
	}
	b.WriteString("\n")
	for _, n := range list {
		b.WriteString(wrap(n, "  ", 2))
	}
	failures := failureNotes(r)
	if len(failures) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%d of %d measurements failed:\n", r.Failed(), len(r.Measurements))
	for i, f := range failures {
		b.WriteString(wrap(fmt.Sprintf("[%d] %s", i+1, f), "  ", 4))
	}
}

// explain says only what matters to the tables that are there.
func explain(r *bench.Report) []string {
	var notes []string
	if slices.ContainsFunc(r.Settings.Sizes, func(n int) bool { return bench.KindOf(n) == bench.KindLatency }) {
		notes = append(notes, "Latency of SEND and WRITE is half of a round trip; of READ it is the whole one, "+
			"from asking for the data to having it.")
		notes = append(notes, explainWrite(r)...)
	}
	if slices.Contains(r.Settings.Transports, bench.TransportTCP) {
		notes = append(notes, "TCP has no one-sided operations: its WRITE is a message that the peer's program receives, "+
			"its READ a request that the program answers.")
	}
	notes = append(notes, explainDepth(r)...)
	notes = append(notes,
		"CPU is the processor time of client + server, in percent of one core. What the kernel does in interrupts "+
			"and threads of its own shows only in \"machine\": how busy all cores were.")
	if strings.HasPrefix(r.Client.Machine, "emulated") {
		notes = append(notes, "The processor is emulated: compare the transports with each other, not the numbers with those of hardware.")
	}
	return notes
}

// explainDepth names the connections that allow fewer READs than were asked for.
func explainDepth(r *bench.Report) []string {
	var notes []string
	for _, m := range r.Measurements {
		if m.Error != "" || m.DepthGranted >= m.Depth {
			continue
		}
		note := fmt.Sprintf("%s allows %d READs under way, not %d: its READs were measured with so many.",
			bench.TransportTitle(m.Transport), m.DepthGranted, m.Depth)
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

func explainWrite(r *bench.Report) []string {
	if !slices.Contains(r.Settings.Ops, bench.OpWrite) || slices.Equal(r.Settings.Transports, []string{bench.TransportTCP}) {
		return nil
	}
	var how []string
	if slices.Contains(r.Settings.Modes, bench.ModePoll) {
		how = append(how, "when polling, the receiver watches its memory for the last byte")
	}
	if slices.Contains(r.Settings.Modes, bench.ModeEvent) {
		how = append(how, "with events, a SEND of 8 bytes behind the data wakes it")
	}
	return []string{"RDMA WRITE: " + strings.Join(how, "; ") + "."}
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

// width is how wide text may be: as wide as the tables are.
const width = 92

// wrap breaks text into lines, each after the indent; all but the first hang by so
// many columns more.
func wrap(text, indent string, hang int) string {
	var b strings.Builder
	line, empty := indent, true
	for _, word := range strings.Fields(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line, empty = indent+strings.Repeat(" ", hang), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return b.String() + line + "\n"
}
