package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

const (
	// graceSignal is how long the command has to end after it was asked to.
	graceSignal = 5 * time.Second
	// graceFatal is how long it has after a kernel problem from which the guest does not recover.
	graceFatal = 10 * time.Second
	// idleOutput is how long to wait for output that the guest says it has sent.
	idleOutput = 10 * time.Second
)

// session is the conversation with a guest that reached init.
type session struct {
	cfg     Config
	m       *machine
	conn    *wire.Conn
	began   time.Time
	klog    *kernelLog
	fatal   chan struct{}
	streams map[string]*stream
	started bool
}

func newSession(cfg Config, m *machine, conn *wire.Conn, began time.Time) *session {
	s := &session{cfg: cfg, m: m, conn: conn, began: began, fatal: make(chan struct{}), streams: make(map[string]*stream)}
	s.klog = &kernelLog{onFatal: func() { close(s.fatal) }}
	return s
}

// run has the command run and waits for its end.
func (s *session) run(ctx context.Context, k Kernel, res Result) (Result, error) {
	nonce := "rdmalab: end of run " + rand.Text()
	if err := s.conn.Send(wire.Message{Type: wire.Run, Spec: s.spec(k, nonce)}); err != nil {
		return s.died(res)
	}
	s.copyStreams()
	messages := make(chan wire.Message)
	stop := make(chan struct{})
	defer close(stop)
	go s.receive(messages, stop)
	exit, err := s.converse(ctx, messages, &res)
	switch {
	case errors.Is(err, errDied):
		return s.died(res)
	case err != nil:
		res.Problems, res.OutOfMemory = s.klog.Problems(), s.klog.OutOfMemory()
		return res, err
	}
	return s.finish(res, exit)
}

func (s *session) spec(k Kernel, nonce string) *wire.Spec {
	spec := &wire.Spec{
		Args: s.cfg.Args, Env: s.cfg.Env, Dir: s.cfg.Dir, Hostname: "rdmalab", Modules: k.ModulesDir(),
		Shares: shareList(s.cfg.Shares), Links: wire.Links(), Nonce: nonce,
	}
	if t := s.cfg.TTY; t != nil {
		spec.TTY, spec.Rows, spec.Cols = true, t.Rows, t.Cols
	}
	return spec
}

// copyStreams starts to carry the command's input and outputs, and the kernel's log.
func (s *session) copyStreams() {
	log := &lineSplitter{line: func(line string) {
		s.klog.Add(line)
		if r, ok := parseRecord(line); ok && s.cfg.KernelLog != nil {
			fmt.Fprintln(s.cfg.KernelLog, r)
		}
	}}
	for name, w := range map[string]io.Writer{wire.PortStdout: s.cfg.Stdout, wire.PortStderr: s.cfg.Stderr, wire.PortKernel: log} {
		s.streams[name] = newStream()
		go s.streams[name].copy(w, s.m.ports[name])
	}
	go sendInput(s.conn, s.m.ports[wire.PortStdin], s.cfg.Stdin)
}

// receive passes messages on until the guest is gone.
func (s *session) receive(messages chan<- wire.Message, stop <-chan struct{}) {
	defer close(messages)
	for {
		m, err := s.conn.Receive()
		if err != nil {
			return
		}
		select {
		case messages <- m:
		case <-stop:
			return
		}
	}
}

var errDied = errors.New("the guest died")

// converse goes on until the command ended (the guest's message then says how) or something else ended the run.
func (s *session) converse(ctx context.Context, messages <-chan wire.Message, res *Result) (wire.Message, error) {
	var (
		asked  os.Signal        // the signal that asked the command to end
		grace  <-chan time.Time // when to stop waiting for that
		giveUp error            // why, then
		resize <-chan [2]uint16
		fatal  = (<-chan struct{})(s.fatal)
	)
	if s.cfg.TTY != nil {
		resize = s.cfg.TTY.Resize
	}
	for {
		select {
		case m, ok := <-messages:
			switch {
			case !ok:
				return m, errDied
			case m.Type == wire.Started:
				s.started = true
				res.Boot = time.Since(s.began)
			case m.Type == wire.Exit || m.Type == wire.Fail:
				return m, nil
			}
		case sig := <-s.cfg.Signals:
			if endsRun(sig) && (asked != nil || !s.started) {
				res.Status = (&interrupted{sig}).status()
				return wire.Message{}, &interrupted{sig}
			}
			s.signal(sig)
			if endsRun(sig) {
				asked, giveUp, grace = sig, &interrupted{sig}, time.After(graceSignal)
			}
		case size := <-resize:
			_ = s.conn.Send(wire.Message{Type: wire.Winsize, Rows: size[0], Cols: size[1]})
		case <-fatal:
			fatal = nil
			if grace == nil {
				giveUp = labErr(nil, "the command did not end within %v of the kernel problem", graceFatal)
				grace = time.After(graceFatal)
			}
		case <-grace:
			res.Status, res.Tail = s.giveUpStatus(giveUp), s.tail()
			return wire.Message{}, giveUp
		case <-ctx.Done():
			return wire.Message{}, s.timedOut(ctx, res)
		}
	}
}

func (s *session) giveUpStatus(why error) int {
	var stop *interrupted
	if errors.As(why, &stop) {
		return stop.status()
	}
	return StatusKernel
}

func (s *session) timedOut(ctx context.Context, res *Result) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, errTimeout) {
		return cause
	}
	res.Status, res.Tail = StatusTimeout, s.tail()
	if !s.started {
		return labErr(nil, "the guest was not ready within --timeout %v", s.cfg.Timeout)
	}
	return labErr(nil, "the command did not end within --timeout %v", s.cfg.Timeout)
}

// signal passes a signal on to the command.
func (s *session) signal(sig os.Signal) {
	if n, ok := sig.(syscall.Signal); ok {
		_ = s.conn.Send(wire.Message{Type: wire.Signal, Signal: int(n)}) // a guest that is gone shows elsewhere
	}
}

// finish collects what the guest sent before it said that the command ended.
func (s *session) finish(res Result, exit wire.Message) (Result, error) {
	var lost error
	for name, st := range s.streams {
		if !st.wait(exit.Sent[name], idleOutput) {
			lost = labErr(nil, "some of the guest's %s is lost", name)
		} else if err := st.err(); err != nil {
			lost = labErr(err, "write the command's output")
		}
	}
	res.Problems, res.OutOfMemory = s.klog.Problems(), s.klog.OutOfMemory()
	res.Status = exit.Code
	switch {
	case exit.Type == wire.Fail:
		res.Status, res.Tail = StatusLab, s.tail()
		return res, labErr(nil, "the guest: %s", exit.Text)
	case exit.Text != "":
		return res, labErr(nil, "%s", exit.Text)
	case lost != nil && res.Status == 0:
		res.Status = StatusLab
		return res, lost
	case len(res.Problems) > 0 && res.Status == 0:
		res.Status = StatusKernel
	}
	return res, nil
}

// died tells of a guest that went without a word. What killed it may be on the console only.
func (s *session) died(res Result) (Result, error) {
	<-s.m.done
	console := &kernelLog{}
	for _, line := range s.m.Console() {
		console.AddConsole(line)
	}
	res.Tail, res.OutOfMemory = s.tail(), s.klog.OutOfMemory()
	res.Problems = s.klog.Problems()
	if len(res.Problems) == 0 {
		res.Problems = console.Problems()
	}
	if len(res.Problems) > 0 {
		res.Status, res.Tail = StatusKernel, without(res.Tail, res.Problems)
		return res, labErr(nil, "the guest's kernel died")
	}
	res.Status = StatusLab
	if said := s.m.Stderr(); said != "" {
		return res, explainQEMU(said)
	}
	return res, &Error{What: "the guest went down while the command ran", Hint: "did the command power it off?"}
}

// tail is the end of the guest's log: what it sent, and after that what only reached the console.
func (s *session) tail() []string {
	return lastLines(mergeTails(s.klog.Tail(), s.m.Console()))
}

// mergeTails appends to log those console lines that it does not have.
func mergeTails(log, console []string) []string {
	seen := make(map[string]bool)
	for _, line := range log {
		seen[textOf(line)] = true
	}
	all := append([]string(nil), log...)
	if len(log) == 0 {
		return append(all, console...)
	}
	for _, line := range console {
		if !seen[textOf(line)] {
			all = append(all, line)
		}
	}
	return all
}

// without leaves out of a tail what the problems show already.
func without(tail []string, problems []Problem) []string {
	shown := make(map[string]bool)
	for _, p := range problems {
		for _, line := range p.Lines {
			shown[line] = true
		}
	}
	return slices.DeleteFunc(tail, func(line string) bool { return shown[line] })
}

// textOf is a log line without its time stamp.
func textOf(line string) string {
	if m := consoleStamp.FindStringSubmatch(line); m != nil {
		return m[2]
	}
	return line
}
