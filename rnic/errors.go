package rnic

import (
	"errors"
	"io/fs"
	"strings"
)

// ErrNoModule says that the running kernel has no module for a link type, or
// could not load it. The error that wraps it says how to get the module.
var ErrNoModule = errors.New("no kernel module for this link type")

// ErrNotFound says that no RNIC has the name. It satisfies
// errors.Is(err, fs.ErrNotExist).
var ErrNotFound error = notFoundError{}

type notFoundError struct{}

func (notFoundError) Error() string        { return "no such RNIC" }
func (notFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// OpError is the error of every function in this package: what was tried, on
// what, why it failed and what to do about it. It prints as one line.
//
// Err is a syscall.Errno where the kernel gave one, so errors.Is works with
// fs.ErrPermission (not root), fs.ErrExist (another link has the name or the
// netdev), fs.ErrNotExist (ENOENT, ErrNotFound), unix.ENODEV (no such netdev);
// else ErrNoModule, ErrNotFound, ctx.Err() or an error of package os.
type OpError struct {
	Op     string // "add", "del", "wait", "list", "counters"
	Object string // the RNIC's name; empty where the whole host is meant
	Err    error
	Hint   string // what it means and what to do next, one line; may be empty
}

func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString("rnic: ")
	b.WriteString(e.Op)
	if e.Object != "" {
		b.WriteString(" " + printable(e.Object))
	}
	b.WriteString(": " + e.Err.Error())
	if e.Hint != "" {
		b.WriteString(": " + e.Hint)
	}
	return b.String()
}

func (e *OpError) Unwrap() error { return e.Err }

// Problem is something about an RNIC that could not be read: the value that
// depends on it is left at its zero, which then means unknown and not empty.
type Problem struct {
	Source string // a path, or "netlink" with the request's name
	Err    error
}

func (p Problem) String() string { return printable(p.Source) + ": " + p.Err.Error() }

// MarshalText makes a Problem one line of text in JSON.
func (p Problem) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText writes, as a Problem that prints alike.
func (p *Problem) UnmarshalText(b []byte) error {
	source, text, _ := strings.Cut(string(b), ": ")
	*p = Problem{Source: source, Err: errors.New(text)}
	return nil
}
