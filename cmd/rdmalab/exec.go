package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/goverbs/goverbs/internal/lab"
)

// execTimeout ends a run that nobody limited otherwise: a CI job should not wait for a guest for ever.
const execTimeout = 30 * time.Minute

func (a *app) execCommand() *cobra.Command {
	var o options
	var tty bool
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command in a guest with RDMA",
		Long: `Runs a command in a fresh guest with rxe0 (10.77.1.1, fd77:1::1) and siw0 (10.77.2.1, fd77:2::1).

The guest's files are the host's; what the command writes is gone with the guest, but for --share
folders and for the files that go test asks its binaries to write. Exit status: the command's own;
128 + N if signal N killed it; 1 if the guest's kernel reported a problem (an oops, a warning, a
hung task); 2 for a wrong command line; 124 after --timeout; 125 if the lab failed; 126 or 127 if
the command cannot be run or is not found.`,
		Example: `  rdmalab exec -- ibv_devinfo
  rdmalab exec -- sh -c 'rping -s -a 10.77.1.1 -C 10 & sleep 1; rping -c -a 10.77.1.1 -C 10'
  go test -exec "rdmalab exec --" ./...`,
		Args: usageArgs(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("what shall run? Name a command")
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			cfg, err := o.config(args)
			if err != nil {
				return err
			}
			return a.inGuest(cmd, o, cfg, tty)
		},
	}
	o.add(cmd, execTimeout)
	cmd.Flags().BoolVarP(&tty, "tty", "t", false, "run the command on a terminal, like this one")
	return cmd
}

func (a *app) shellCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "shell",
		Short: "Open a shell in a guest with RDMA",
		Long:  "Opens $SHELL (or sh) in a fresh guest, on a terminal like this one. What you change there is gone with the guest, but for --share folders.",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			shell := os.Getenv("SHELL")
			if shell == "" {
				shell = "sh"
			}
			cfg, err := o.config([]string{shell})
			if err != nil {
				return err
			}
			return a.inGuest(cmd, o, cfg, true)
		},
	}
	o.add(cmd, 0)
	return cmd
}

// inGuest runs what cfg says and reports.
func (a *app) inGuest(cmd *cobra.Command, o options, cfg lab.Config, tty bool) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, lab.Signals()...)
	defer signal.Stop(signals)
	cfg.Signals, cfg.Stdout, cfg.Stderr = signals, a.stdout, a.stderr
	a.status = lab.StatusLab
	if o.kernelLog != "" {
		f, err := os.Create(o.kernelLog)
		if err != nil {
			return err
		}
		defer f.Close()
		cfg.KernelLog = f
	}
	terminal := isTerminal(a.stdin)
	switch {
	case tty && !terminal:
		return usageErrorf(cmd, "a terminal is needed on standard input: leave --tty out (for a shell: rdmalab exec -- sh)")
	case tty:
		restore, t, err := makeRaw(a.stdin)
		if err != nil {
			return err
		}
		defer restore()
		cfg.TTY, cfg.Stdin = t, a.stdin
	case !terminal:
		cfg.Stdin = a.stdin
	}
	res, err := lab.Run(context.Background(), cfg)
	a.status = res.Status
	a.report(o, res, tty)
	return err
}

// report prints what the caller should know beside the command's own output.
func (a *app) report(o options, res lab.Result, tty bool) {
	end := "\n"
	if tty {
		end = "\r\n" // the terminal is still raw
	}
	say := func(format string, args ...any) { fmt.Fprintf(a.stderr, format+end, args...) }
	for _, p := range res.Problems {
		say("rdmalab: the guest's kernel reported a problem: %s", p.Title)
		for _, line := range p.Lines {
			say("  %s", line)
		}
	}
	if len(res.Tail) > 0 {
		say("rdmalab: the guest's last console lines:")
		for _, line := range res.Tail {
			say("  %s", line)
		}
	}
	if res.OutOfMemory {
		say("rdmalab: the guest ran out of memory and its kernel killed a process: give it more with --mem (now %v)", o.memory)
	}
	if o.verbose && res.Boot > 0 {
		say("rdmalab: boot %.1f s (%s, kernel %s), total %.1f s", res.Boot.Seconds(), res.Accel, res.Release, res.Total.Seconds())
	}
}
