package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// statusUsage is the exit status for a wrong command line.
const statusUsage = 2

// initPath is what the kernel starts from the initramfs. In a container, where rdmalab may be pid 1 too, it has another name.
const initPath = "/init"

func isInit(args []string) bool { return len(args) > 0 && args[0] == initPath }

// app is one invocation: its streams and the exit status that it works out.
type app struct {
	stdin          *os.File
	stdout, stderr io.Writer
	status         int
}

// run is main with its surroundings given; it returns the exit status.
func run(args []string, stdin *os.File, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := &cobra.Command{
		Use:   "rdmalab",
		Short: "Run commands where there is RDMA, on any machine",
		Long: `rdmalab boots a Debian kernel in QEMU and runs a command in it, on an rxe (RoCE v2)
and a siw (iWARP) device. The guest sees the host's files, and otherwise behaves as
if the command ran here: environment, working directory, output and exit status.

  go test -exec "rdmalab exec --" ./...`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{cmd, err} })
	root.AddCommand(a.execCommand(), a.shellCommand(), a.kernelsCommand(), a.prepareCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(stderr, "rdmalab:", err)
		var usage usageError
		switch {
		case errors.As(err, &usage):
			return statusUsage
		case a.status == 0:
			return 1
		}
	}
	return a.status
}

// usageError is a wrong command line.
type usageError struct {
	cmd *cobra.Command
	err error
}

func (e usageError) Error() string {
	return fmt.Sprintf("%v: see `%s --help`", e.err, e.cmd.CommandPath())
}

// usageArgs makes a failed check of the arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{cmd, err}
		}
		return nil
	}
}

// usageErrorf is a usage error that only shows once the command runs.
func usageErrorf(cmd *cobra.Command, format string, args ...any) error {
	return usageError{cmd, fmt.Errorf(format, args...)}
}
