package lab

import (
	"fmt"
	"os"
	"syscall"
)

// interrupted is a run that a signal to rdmalab ended.
type interrupted struct{ signal os.Signal }

func (e *interrupted) Error() string { return fmt.Sprintf("ended by %v", e.signal) }

func (e *interrupted) status() int {
	if s, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return StatusLab
}

// Signals are those that Config.Signals is for.
func Signals() []os.Signal {
	return []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2,
	}
}

// endsRun tells the signals that ask a program to end from those that only tell it something.
func endsRun(sig os.Signal) bool {
	switch sig {
	case syscall.SIGUSR1, syscall.SIGUSR2:
		return false
	}
	return true
}
