package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/goverbs/goverbs/rnic"
)

func listCommand(h host) *cobra.Command {
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "list [NAME...]",
		Short: "List RNICs with driver, protocol, netdev, state, MTU and GIDs",
		Long: `List all RNICs, or those named, one line for each port. It needs no privilege.

What cannot be read is shown as "?" and said on stderr, and makes the exit
status 1. A host without RDMA has an empty list, which is no failure.`,
		Example: `  rnic list
  rnic list -v rxe0
  rnic list --json | jq -r '.[].ports[].gids[].gid'`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if asJSON && verbose {
				return usageError{errors.New("--json has all that is known: leave out --verbose")}
			}
			stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
			rnics, failed := collect(h, names, stderr)
			var err error
			switch {
			case asJSON:
				err = writeJSON(stdout, rnics)
			case len(rnics) == 0 && !failed:
				fmt.Fprintln(stderr, "rnic: no RNIC here; `rnic add` makes a software one")
			case len(rnics) > 0 && verbose:
				err = writeDetails(stdout, rnics)
			case len(rnics) > 0:
				err = writeTable(stdout, rnics)
			}
			if err == nil && failed {
				err = errReported
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array with all that is known")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print all that is known, GIDs included")
	return cmd
}

// collect reads the RNICs and says on stderr what could not be read.
func collect(h host, names []string, stderr io.Writer) (rnics []rnic.RNIC, failed bool) {
	if len(names) == 0 {
		all, err := h.List()
		if err != nil {
			complain(stderr, err)
			return nil, true
		}
		rnics = all
	}
	for _, name := range names {
		r, err := h.Find(name)
		if err != nil {
			complain(stderr, notFound(name, err))
			failed = true
			continue
		}
		rnics = append(rnics, r)
	}
	for _, r := range rnics {
		failed = sayProblems(stderr, r.Name, r.Problems) || failed
	}
	return rnics, failed
}

// notFound says where to look for the name of an RNIC that is not there.
func notFound(name string, err error) error {
	if errors.Is(err, rnic.ErrNotFound) {
		return fmt.Errorf("no RNIC %s; `rnic list` shows all", safe(name))
	}
	return err
}

// sayProblems reports whether there are any.
func sayProblems(stderr io.Writer, name string, problems []rnic.Problem) bool {
	for _, p := range problems {
		fmt.Fprintf(stderr, "rnic: %s: cannot read %v\n", safe(name), p)
	}
	return len(problems) > 0
}

func writeJSON[T any](w io.Writer, list []T) error {
	if list == nil {
		list = []T{} // [] and not null
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
}
