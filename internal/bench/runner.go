package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Runner carries out a Plan.
type Runner struct {
	Client *Client
	Plan   Plan
	// Progress, if not nil, is called before each measurement with the number of
	// those done.
	Progress func(done int, t Task, transport string)

	links  map[string]*Link
	failed map[string]*failures
	report *Report
}

// failures are how a transport has failed in a row. After maxFailures it is not
// tried again, so that a dead one does not cost its time limit each time.
type failures struct {
	count int
	last  error
}

const maxFailures = 2

// Run measures what the Plan says and adds it to report. A measurement that fails
// becomes a Result with an Error; Run's own error says why measurements are
// missing: ctx's cause, or the control connection's.
func (r *Runner) Run(ctx context.Context, report *Report) error {
	rows := r.Plan.Rows()
	r.links, r.failed, r.report = map[string]*Link{}, map[string]*failures{}, report
	report.Planned = len(rows) * len(r.Plan.Transports)
	defer r.closeLinks()
	for _, row := range rows {
		if r.Plan.Duration > 0 {
			r.calibrate(ctx, &row)
		}
		for _, name := range r.Plan.Transports {
			if err := r.ended(ctx); err != nil {
				return err
			}
			if r.Progress != nil {
				r.Progress(len(report.Measurements), row, name)
			}
			result := r.measure(ctx, name, row)
			if err := r.ended(ctx); err != nil {
				return err // the result is that of the interruption
			}
			report.Measurements = append(report.Measurements, result)
		}
	}
	return nil
}

func (r *Runner) ended(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return r.Client.Err()
}

// calibrate sets row's iterations so that the slowest transport takes about the
// Plan's duration. Transports that fail have no say.
func (r *Runner) calibrate(ctx context.Context, row *Task) {
	var slowest time.Duration
	trial := row.Warmup()
	for _, name := range r.Plan.Transports {
		link, err := r.link(ctx, name)
		if err != nil {
			continue
		}
		out, err := r.run(ctx, link, trial)
		if err == nil {
			slowest = max(slowest, out.Recorder.Elapsed())
		}
	}
	if slowest > 0 {
		row.Iters = r.Plan.itersFor(trial.Iters, slowest)
	}
}

// measure warms up and measures one Task on one transport.
func (r *Runner) measure(ctx context.Context, name string, t Task) Result {
	warmup := t.Warmup()
	result := Result{
		Transport: name, Op: t.Op, Mode: t.Mode, Kind: t.Kind, SizeBytes: t.Size,
		Iterations: t.Iters, Warmup: warmup.Iters, Depth: t.Depth,
	}
	link, err := r.link(ctx, name)
	if err != nil {
		result.Error = err.Error()
		return result
	}
	result.DepthGranted = t.Depth
	if d := link.Local.ReadDepth; t.Op == OpRead && d > 0 {
		result.DepthGranted = min(t.Depth, d)
	}
	if _, err := r.run(ctx, link, warmup); err != nil {
		result.Error = fmt.Sprintf("while warming up: %v", err)
		return result
	}
	out, err := r.run(ctx, link, t)
	if err == nil {
		err = result.fill(out)
	}
	if err != nil {
		result.Error = err.Error()
	}
	return result
}

func (res *Result) fill(out *Outcome) (err error) {
	res.Seconds = out.Recorder.Elapsed().Seconds()
	if res.Kind == KindLatency {
		res.Latency, err = out.Recorder.LatencySummary()
	} else {
		res.Throughput, err = out.Recorder.ThroughputSummary(res.SizeBytes)
	}
	res.ClientUsage, res.ServerUsage, res.Verified = &out.Client, &out.Server, &out.Verified
	return err
}

// run runs one Task and keeps count of failures; after one the link is gone.
func (r *Runner) run(ctx context.Context, link *Link, t Task) (*Outcome, error) {
	t.Seed = rand.Uint64()
	out, err := link.Run(ctx, t)
	if err != nil {
		delete(r.links, link.name)
		r.fail(link.name, err)
		return nil, err
	}
	delete(r.failed, link.name)
	return out, nil
}

func (r *Runner) fail(name string, err error) {
	if r.failed[name] == nil {
		r.failed[name] = &failures{}
	}
	r.failed[name].count++
	r.failed[name].last = err
}

// link returns the transport's data connection, which it makes if there is none.
func (r *Runner) link(ctx context.Context, name string) (*Link, error) {
	if link := r.links[name]; link != nil {
		return link, nil
	}
	if f := r.failed[name]; f != nil && f.count >= maxFailures {
		return nil, f.last // not tried again
	}
	link, err := r.Client.Open(ctx, name, r.Plan.params())
	if err != nil {
		// A transport that cannot connect is not going to.
		r.failed[name] = &failures{count: maxFailures, last: err}
		return nil, err
	}
	r.links[name] = link
	r.note(Connection{Transport: name, Client: link.Local, Server: link.Remote})
	return link, nil
}

// note reports a connection once, not again when it is made anew.
func (r *Runner) note(c Connection) {
	for _, known := range r.report.Connections {
		if known.Transport == c.Transport {
			return
		}
	}
	r.report.Connections = append(r.report.Connections, c)
}

// closeLinks ends what is open. What the results are does not depend on it, and a
// server that is gone has closed its ends.
func (r *Runner) closeLinks() {
	for name, link := range r.links {
		if err := link.Close(); err != nil && r.Client.Err() == nil {
			r.Client.peer.cancel(errors.New("close " + name + ": " + err.Error()))
		}
	}
	clear(r.links)
}
