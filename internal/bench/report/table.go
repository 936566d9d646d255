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

// latencyColumns are in microseconds but for the last three.
var latencyColumns = []column{
	{"minimum", func(m, _ *bench.Result) string { return number(m.Latency.MinUS) }},
	{"median", func(m, _ *bench.Result) string { return number(m.Latency.P50US) }},
	{"99 %", func(m, _ *bench.Result) string { return number(m.Latency.P99US) }},
	{"99.9 %", func(m, _ *bench.Result) string { return number(m.Latency.P999US) }},
	{"vs TCP", func(m, tcp *bench.Result) string {
		if tcp == nil || tcp.Latency == nil || m == tcp {
			return ""
		}
		return ratio(m.Latency.P50US / tcp.Latency.P50US)
	}},
	{"CPU", cpu},
	{"machine", busy},
}

var throughputColumns = []column{
	{"MiB/s", func(m, _ *bench.Result) string { return number(m.Throughput.MiBPerSecond) }},
	{"Gbit/s", func(m, _ *bench.Result) string { return number(m.Throughput.GbitPerSecond) }},
	{"messages/s", func(m, _ *bench.Result) string { return number(m.Throughput.MessagesPerSecond) }},
	{"messages", func(m, _ *bench.Result) string { return fmt.Sprint(m.Iterations) }},
	{"vs TCP", func(m, tcp *bench.Result) string {
		if tcp == nil || tcp.Throughput == nil || m == tcp {
			return ""
		}
		return ratio(m.Throughput.MiBPerSecond / tcp.Throughput.MiBPerSecond)
	}},
	{"CPU", cpu},
	{"machine", busy},
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

func ratio(x float64) string { return "× " + number(x) }

func cpu(m, _ *bench.Result) string {
	return fmt.Sprintf("%.0f + %.0f %%", m.ClientUsage.Percent(), m.ServerUsage.Percent())
}

func busy(m, _ *bench.Result) string {
	if m.ClientUsage.MachinePercent < 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", m.ClientUsage.MachinePercent)
}

// writeTable writes the table of one mode and kind, if it has a row.
func writeTable(b *strings.Builder, r *bench.Report, mode bench.Mode, kind bench.Kind) {
	columns, unit := latencyColumns, "LATENCY in µs"
	if kind == bench.KindThroughput {
		columns, unit = throughputColumns, "THROUGHPUT"
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
			if bench.KindOf(size) != kind {
				continue
			}
			group(t, r, columns, op, mode, size)
			rows++
		}
	}
	if rows > 0 {
		fmt.Fprintf(b, "\n%s, %s\n%s\n", unit, how, t.Render())
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
			row = append(row, cell(r, columns[c], c, m, tcp))
		}
		t.AppendRow(row)
	}
	t.AppendSeparator()
}

// cell is a number, or in the first column why there is none.
func cell(r *bench.Report, c column, index int, m, tcp *bench.Result) string {
	switch {
	case m == nil && index == 0:
		return "not run"
	case m == nil || m.Error != "" && index > 0:
		return ""
	case m.Error != "":
		return fmt.Sprintf("failed [%d]", 1+slices.Index(failureNotes(r), failureNote(*m)))
	}
	if tcp != nil && tcp.Error != "" {
		tcp = nil
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
