package main

import (
	"github.com/spf13/cobra"

	"github.com/goverbs/goverbs/internal/bench/report"
)

func (a *app) showCommand() *cobra.Command {
	var m measureFlags
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Print the results that --json wrote to a file once more",
		Example: `  rdmabench compare --json results.json
  rdmabench show results.json --figures`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := report.ReadFile(args[0])
			if err != nil {
				return usageError{err}
			}
			return a.show(r, m)
		},
	}
	m.addFigures(cmd.Flags())
	return cmd
}
