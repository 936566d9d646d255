package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/internal/bench/tcpnet"
	"github.com/goverbs/goverbs/internal/bench/verbsnet"
)

// app is one run of the program. Tests put other things in its place.
type app struct {
	out, err io.Writer
	// transports makes the transports, whose listeners use the addresses given.
	transports func(addresses) (map[string]bench.Transport, error)
	// self starts this program again, as the server of compare.
	self func(args ...string) (*exec.Cmd, error)
	// started: the command line was understood, so that an error is not one of
	// usage.
	started bool
}

// usageError is about what the user wrote.
type usageError struct{ error }

// errFailed: all has been said, and the exit status is 1.
var errFailed = errors.New("failed")

// run executes a command line and returns the exit status: 0, 1 if something failed, 2
// for wrong usage.
func run(args []string, out, errOut io.Writer) int {
	a := &app{out: out, err: errOut, transports: makeTransports, self: startSelf}
	return a.run(args)
}

func (a *app) run(args []string) int {
	ctx, stop := withSignals(context.Background())
	defer stop()
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	switch usage := (usageError{}); {
	case err == nil:
		return 0
	case errors.Is(err, errFailed):
		return 1
	case errors.As(err, &usage) || !a.started:
		fmt.Fprintf(a.err, "rdmabench: %v (see rdmabench --help)\n", err)
		return 2
	default:
		fmt.Fprintf(a.err, "rdmabench: %v\n", err)
		return 1
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "rdmabench",
		Short: "Measure one workload over RoCE v2, iWARP and TCP, side by side",
		Long: `rdmabench measures SEND, WRITE and READ over RoCE v2, iWARP and TCP: the same sizes,
depth, iterations and checked data for each of them.

On one machine, "rdmabench compare" does it all. On two, run "rdmabench server" on
one and "rdmabench client HOST" on the other.`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError{errors.New("name a command: compare, server, client or show")}
		},
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			a.started = true
			raiseMemlock()
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(a.compareCommand(), a.serverCommand(), a.clientCommand(), a.showCommand())
	return root
}

// withSignals ends ctx at the first Ctrl-C or SIGTERM. The second one ends the
// program at once.
func withSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

var errInterrupted = errors.New("interrupted")

// raiseMemlock lifts the limit of memory that may be registered as far as this
// process may. Where that is not enough, registration says so.
func raiseMemlock() {
	all := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if unix.Setrlimit(unix.RLIMIT_MEMLOCK, &all) == nil {
		return
	}
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &now) == nil {
		now.Cur = now.Max
		_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &now)
	}
}

// makeTransports makes the three real ones.
func makeTransports(a addresses) (map[string]bench.Transport, error) {
	roce, err := parseAddr("--roce-addr", a.roce)
	if err != nil {
		return nil, err
	}
	iwarp, err := parseAddr("--iwarp-addr", a.iwarp)
	if err != nil {
		return nil, err
	}
	tcp, err := parseAddr("--tcp-addr", a.tcp)
	if err != nil {
		return nil, err
	}
	return map[string]bench.Transport{
		bench.TransportRoCE:  verbsnet.Transport{Name: bench.TransportRoCE, Address: roce},
		bench.TransportIWARP: verbsnet.Transport{Name: bench.TransportIWARP, Address: iwarp},
		bench.TransportTCP:   tcpnet.Transport{Address: tcp},
	}, nil
}
