package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/goverbs/goverbs/rnic"
)

func countersCommand(h host) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "counters [NAME...]",
		Short: "Print the hw_counters and port counters of RNICs",
		Long: `Print the counters of all RNICs, or of those named: the driver's hw_counters and
the port counters, as the kernel names them. It needs no privilege. Port "-" is
the whole device. siw has no counters.

What cannot be read is left out and said on stderr, and makes the exit status 1.`,
		Example: `  rnic counters rxe0
  rnic counters --json | jq '.[].counters[] | select(.value > 0)'`,
		RunE: func(cmd *cobra.Command, names []string) error {
			stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
			all, failed := readCounters(h, names, stderr)
			var err error
			switch {
			case asJSON:
				err = writeJSON(stdout, all)
			case len(all) > 0:
				err = writeCounters(stdout, all)
			}
			if err == nil && failed {
				err = errReported
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// readCounters says on stderr what could not be read.
func readCounters(h host, names []string, stderr io.Writer) (all []rnic.Counters, failed bool) {
	if len(names) == 0 {
		rnics, err := h.List()
		if err != nil {
			complain(stderr, err)
			return nil, true
		}
		for _, r := range rnics {
			names = append(names, r.Name)
		}
	}
	for _, name := range names {
		c, err := h.ReadCounters(name)
		if err != nil {
			complain(stderr, notFound(name, err))
			failed = true
			continue
		}
		failed = sayProblems(stderr, name, c.Problems) || failed
		all = append(all, c)
	}
	return all, failed
}

func writeCounters(w io.Writer, all []rnic.Counters) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tPORT\tSOURCE\tCOUNTER\tVALUE")
	for _, rn := range all {
		for _, c := range rn.Counters {
			port := "-"
			if c.Port > 0 {
				port = fmt.Sprint(c.Port)
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\n", safe(rn.RNIC), port, c.Source, safe(c.Name), c.Value)
		}
	}
	return tw.Flush()
}
