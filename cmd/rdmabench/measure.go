package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/internal/bench/report"
)

// measure runs the plan against the server at the other end of conn, and shows the
// results: also those that there are when it was cut short.
func (a *app) measure(ctx context.Context, conn net.Conn, plan bench.Plan, m measureFlags, why func(error) error) error {
	transports, err := a.transports(addresses{})
	if err != nil {
		return err
	}
	r := &bench.Report{
		Schema: bench.Schema, Started: time.Now().UTC().Truncate(time.Second), Client: bench.ReadEnvironment(),
		Settings: bench.Settings{
			Transports: plan.Transports, Ops: plan.Ops, Modes: plan.Modes, Sizes: plan.Sizes,
			Iterations: plan.Iters, DurationSeconds: plan.Duration.Seconds(), Depth: plan.Depth,
		},
		Measurements: []bench.Result{}, Connections: []bench.Connection{},
	}
	begin := time.Now()
	client, err := bench.Connect(ctx, conn, transports, r.Client)
	if err != nil {
		return why(err)
	}
	defer client.Close()
	r.Server = client.Server()
	r.SameHost = r.Server.Host == r.Client.Host
	bar := newProgress(a.err)
	runner := bench.Runner{Client: client, Plan: plan, Progress: func(done int, t bench.Task, transport string) {
		bar.at(done, r.Planned, t, transport)
	}}
	runErr := runner.Run(ctx, r)
	bar.close()
	client.Close() // before why, which waits for the server's end
	r.ElapsedSeconds = time.Since(begin).Seconds()
	if runErr != nil {
		runErr = why(runErr)
		r.Partial = runErr.Error()
	}
	if err := a.show(r, m); err != nil {
		return err
	}
	if runErr != nil {
		return runErr
	}
	if n := r.Failed(); n > 0 {
		return fmt.Errorf("%d of %d measurements failed", n, r.Planned)
	}
	return nil
}

// show writes the results wherever they are wanted.
func (a *app) show(r *bench.Report, m measureFlags) error {
	var errs []error
	switch {
	case m.json == "-":
		errs = append(errs, report.JSON(a.out, r))
	case m.figures:
		errs = append(errs, report.Figures(a.out, r))
	default:
		errs = append(errs, report.Text(a.out, r))
	}
	if m.json != "" && m.json != "-" {
		errs = append(errs, report.JSONFile(m.json, r))
	}
	return errors.Join(errs...)
}

// checkJSON makes sure, before a long run, that its results can be written.
func checkJSON(name string) error {
	if name == "" || name == "-" {
		return nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return usageError{fmt.Errorf("--json %s is a directory: name a file in it", name)}
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".rdmabench-*")
	if err != nil {
		return usageError{fmt.Errorf("--json %s: %w", name, errors.Unwrap(err))}
	}
	f.Close()
	return os.Remove(f.Name())
}
