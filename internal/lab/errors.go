package lab

import "fmt"

// Exit statuses of a run that are not the command's own. They follow docker, env and timeout.
const (
	StatusKernel  = 1   // the command succeeded, but the guest's kernel reported a problem
	StatusTimeout = 124 // the time limit ended the run
	StatusLab     = 125 // the lab failed: the command did not run, or the guest died under it
)

// Error is a failure of the lab, not of the command: what is wrong and what to do about it.
type Error struct {
	What string
	Hint string // what to do, empty where there is nothing to say
	Err  error  // the cause, may be nil
}

func (e *Error) Error() string {
	s := e.What
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

func labErr(err error, format string, args ...any) *Error {
	return &Error{What: fmt.Sprintf(format, args...), Err: err}
}
