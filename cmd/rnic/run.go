package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goverbs/goverbs/rnic"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a command line that cannot be run.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// errReported says that everything there is to say is on stderr already.
var errReported = errors.New("reported")

// host is what a command acts on. Tests replace it.
type host interface {
	List() ([]rnic.RNIC, error)
	Find(name string) (rnic.RNIC, error)
	ReadCounters(name string) (rnic.Counters, error)
	AddLink(ctx context.Context, l rnic.Link) error
	DelLink(ctx context.Context, name string) error
	WaitUsable(ctx context.Context, name string) error
}

// run is the program: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runOn(ctx, rnic.Host{}, args, stdout, stderr)
}

func runOn(ctx context.Context, h host, args []string, stdout, stderr io.Writer) int {
	root := rootCommand(h)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "rnic: %v; see `%s --help`\n", err, cmd.CommandPath())
		return exitUsage
	}
	complain(stderr, err)
	return exitFailed
}

// complain prints an error as one line that names the program once.
func complain(w io.Writer, err error) {
	fmt.Fprintln(w, "rnic: "+strings.TrimPrefix(err.Error(), "rnic: "))
}

func rootCommand(h host) *cobra.Command {
	root := &cobra.Command{
		Use:   "rnic",
		Short: "List RDMA network adapters (RNICs), and make software ones",
		Long: `List RDMA network adapters (RNICs), and make software ones: rxe (RoCE v2) and
siw (iWARP), on top of any Ethernet device.

Exit status: 0, 1 (it failed, or something could not be read), 2 (usage).`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q", args[0])}
			}
			return usageError{errors.New("no command given")}
		},
		Args: cobra.ArbitraryArgs,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(listCommand(h), countersCommand(h), addCommand(h), delCommand(h))
	return root
}

// usageArgs makes a wrong number of arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
