package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goverbs/goverbs/internal/bench"
)

// addresses are where the server waits for data connections; empty: chosen.
type addresses struct{ roce, iwarp, tcp string }

func (a *addresses) register(cmd *cobra.Command, tcpDefault string) {
	f := cmd.Flags()
	f.StringVar(&a.roce, "roce-addr", "", "IP address of the RoCE device to use (default: that of the first one)")
	f.StringVar(&a.iwarp, "iwarp-addr", "", "IP address of the iWARP device to use (default: that of the first one)")
	f.StringVar(&a.tcp, "tcp-addr", "", "IP address to use for TCP (default: "+tcpDefault+")")
}

// args are the flags that give a to another rdmabench.
func (a *addresses) args() []string {
	var out []string
	for _, f := range [][2]string{{"--roce-addr", a.roce}, {"--iwarp-addr", a.iwarp}, {"--tcp-addr", a.tcp}} {
		if f[1] != "" {
			out = append(out, f[0]+"="+f[1])
		}
	}
	return out
}

func parseAddr(flag, s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return addr, usageError{fmt.Errorf("%s %q: give an IP address, such as 192.0.2.1", flag, s)}
	}
	return addr, nil
}

// measureFlags are what compare and client have in common.
type measureFlags struct {
	sizes, ops, transports, modes []string

	iters    int
	duration time.Duration
	depth    int
	limit    time.Duration
	json     string
	figures  bool
}

func (m *measureFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&m.sizes, "sizes", []string{"64", "4K", "64K", "1M"},
		fmt.Sprintf("message sizes in bytes, K or M: latency is measured up to %s, throughput above", bench.FormatSize(bench.LatencyMaxSize)))
	f.IntVar(&m.iters, "iters", 0, fmt.Sprintf("messages per measurement (default: %d for latency, %s worth for throughput)",
		bench.DefaultLatencyIters, bench.FormatSize(bench.DefaultVolume)))
	f.DurationVar(&m.duration, "duration", 0,
		"choose the messages so that a measurement takes about this long on the slowest transport (the most: --iters)")
	f.StringSliceVar(&m.ops, "ops", []string{"send", "write", "read"}, "operations")
	f.StringSliceVar(&m.transports, "transports", bench.AllTransports(), "transports")
	f.StringSliceVar(&m.modes, "mode", []string{"poll", "event"}, "how to learn of completions")
	f.IntVar(&m.depth, "depth", bench.DefaultDepth, "messages under way, for throughput")
	f.DurationVar(&m.limit, "limit", bench.DefaultLimit, "longest time for one measurement: after it, it has failed")
	f.StringVar(&m.json, "json", "", "also write the results to this file, as JSON; - writes them instead of the tables")
	m.addFigures(f)
}

func (m *measureFlags) addFigures(f *pflag.FlagSet) {
	f.BoolVar(&m.figures, "figures", false, "print lines of the form \"figure NAME VALUE UNIT\" instead of the tables")
}

// plan reads the flags. Its errors are the user's.
func (m *measureFlags) plan() (bench.Plan, error) {
	p := bench.Plan{
		Transports: unique(m.transports),
		Ops:        convert[bench.Op](unique(m.ops)),
		Modes:      convert[bench.Mode](unique(m.modes)),
		Iters:      m.iters, Duration: m.duration, Depth: m.depth, Limit: m.limit,
	}
	for _, s := range m.sizes {
		n, err := bench.ParseSize(s)
		if err != nil {
			return p, usageError{fmt.Errorf("--sizes: %w", err)}
		}
		if !slices.Contains(p.Sizes, n) {
			p.Sizes = append(p.Sizes, n)
		}
	}
	slices.Sort(p.Sizes)
	if m.figures && m.json == "-" {
		return p, usageError{fmt.Errorf("--figures and --json - both want the standard output: use one of them")}
	}
	if err := p.Validate(); err != nil {
		return p, usageError{err}
	}
	return p, nil
}

// unique drops repetitions and makes all lower case.
func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.ToLower(strings.TrimSpace(s)); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func convert[T ~string](list []string) []T {
	out := make([]T, len(list))
	for i, s := range list {
		out[i] = T(s)
	}
	return out
}
