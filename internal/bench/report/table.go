package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/goverbs/goverbs/internal/bench"
)

// column is one column of numbers.
type column struct {
	title string
	value func(m, tcp *bench.Result) string
}

// minSamples is how many messages a percentile needs to be more than the maximum
// under another name.
const (
	minSamples99  = 100
	minSamples999 = 1000
)

// columnsOf are the columns of one kind of table.
func columnsOf(r *bench.Report, kind bench.Kind) []column {
	columns := []column{
		{"minimum", func(m, _ *bench.Result) string { return number(m.Latency.MinUS) }},
		{"median", func(m, _ *bench.Result) string { return number(m.Latency.P50US) }},
		{"99 %", func(m, _ *bench.Result) string { return percentile(m, m.Latency.P99US, minSamples99) }},
		{"99.9 %", func(m, _ *bench.Result) string { return percentile(m, m.Latency.P999US, minSamples999) }},
		{againstTCP, func(m, tcp *bench.Result) string { return ratio(m.Latency.P50US, tcp.Latency.P50US) }},
	}
	if kind == bench.KindThroughput {
		columns = []column{
			{"MiB/s", func(m, _ *bench.Result) string { return number(m.Throughput.MiBPerSecond) }},
			{"Gbit/s", func(m, _ *bench.Result) string { return number(m.Throughput.GbitPerSecond) }},
			{"messages/s", func(m, _ *bench.Result) string { return number(m.Throughput.MessagesPerSecond) }},
			{againstTCP, func(m, tcp *bench.Result) string {
				return ratio(m.Throughput.MiBPerSecond, tcp.Throughput.MiBPerSecond)
			}},
		}
	}
	if !comparesWithTCP(r) {
		columns = columns[:len(columns)-1]
	}
	columns = append(columns, column{"CPU", cpu}, column{"machine", busy})
	if r.Settings.DurationSeconds > 0 {
		columns = append(columns, column{"messages", func(m, _ *bench.Result) string { return fmt.Sprint(m.Iterations) }})
	}
	return columns
}

// againstTCP is the title of the column that is there only if it has a meaning.
const againstTCP = "vs TCP"

func comparesWithTCP(r *bench.Report) bool {
	return len(r.Settings.Transports) > 1 && slices.Contains(r.Settings.Transports, bench.TransportTCP)
}

// none stands where a number would mean nothing.
const none = "–"

func percentile(m *bench.Result, us float64, least int64) string {
	if m.Latency.Samples < least {
		return none
	}
	return number(us)
}

// number has three significant digits, or all before the decimal point.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// ratio compares with TCP.
func ratio(x, tcp float64) string {
	if tcp <= 0 {
		return none
	}
	return "× " + number(x/tcp)
}

func cpu(m, _ *bench.Result) string {
	return fmt.Sprintf("%.0f + %.0f %%", m.ClientUsage.Percent(), m.ServerUsage.Percent())
}

func busy(m, _ *bench.Result) string {
	if m.ClientUsage.MachinePercent < 0 {
		return none
	}
	return fmt.Sprintf("%.0f %%", m.ClientUsage.MachinePercent)
}

// writeTable writes the table of one mode and kind, if it has a row.
func writeTable(b *strings.Builder, r *bench.Report, mode bench.Mode, kind bench.Kind) {
	columns, title := columnsOf(r, kind), "LATENCY in µs, lower is better"
	if kind == bench.KindThroughput {
		title = "THROUGHPUT, higher is better"
	}
	how := "polling"
	if mode == bench.ModeEvent {
		how = "waiting for events"
	}
	t := table.NewWriter()
	style(t, columns)
	rows := 0
	for _, op := range r.Settings.Ops {
		for _, size := range r.Settings.Sizes {
			if bench.KindOf(size) != kind || !measured(r, op, mode, size) {
				continue
			}
			group(t, r, columns, op, mode, size)
			rows++
		}
	}
	if rows > 0 {
		fmt.Fprintf(b, "\n%s (%s)\n", title, how)
		for line := range strings.Lines(t.Render()) {
			b.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
	}
}

// group adds one line for each transport.
func group(t table.Writer, r *bench.Report, columns []column, op bench.Op, mode bench.Mode, size int) {
	tcp := find(r, bench.TransportTCP, op, mode, size)
	for i, name := range r.Settings.Transports {
		row := table.Row{"", "", bench.TransportTitle(name)}
		if i == 0 {
			row[0], row[1] = strings.ToUpper(string(op)), bench.FormatSize(size)
		}
		m := find(r, name, op, mode, size)
		for c := range columns {
			row = append(row, cell(r, columns[c], c == 0, m, tcp))
		}
		t.AppendRow(row)
	}
	t.AppendSeparator()
}

// measured says whether at least one transport got that far.
func measured(r *bench.Report, op bench.Op, mode bench.Mode, size int) bool {
	return slices.ContainsFunc(r.Settings.Transports, func(name string) bool {
		return find(r, name, op, mode, size) != nil
	})
}

// cell is a number, or in the first column why there is none.
func cell(r *bench.Report, c column, first bool, m, tcp *bench.Result) string {
	switch {
	case m == nil && first:
		return "not run"
	case m == nil || m.Error != "" && !first:
		return ""
	case m.Error != "":
		return fmt.Sprintf("failed [%d]", 1+slices.Index(failureNotes(r), failureNote(*m)))
	case c.title == againstTCP && (m == tcp || tcp == nil || tcp.Error != ""):
		return ""
	}
	return c.value(m, tcp)
}

func find(r *bench.Report, transport string, op bench.Op, mode bench.Mode, size int) *bench.Result {
	for i, m := range r.Measurements {
		if m.Transport == transport && m.Op == op && m.Mode == mode && m.SizeBytes == size {
			return &r.Measurements[i]
		}
	}
	return nil
}

// style is light lines, no outer box, numbers to the right.
func style(t table.Writer, columns []column) {
	header := table.Row{"", "size", "transport"}
	configs := []table.ColumnConfig{{Number: 2, Align: text.AlignRight}}
	for i, c := range columns {
		header = append(header, c.title)
		configs = append(configs, table.ColumnConfig{Number: i + 4, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	s := table.StyleLight
	s.Format.Header = text.FormatDefault
	s.Options.DrawBorder = false
	s.Options.SeparateColumns = false
	s.Options.SeparateHeader = true
	t.SetStyle(s)
}
