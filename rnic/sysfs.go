package rnic

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// attrLimit bounds one sysfs attribute; the kernel's own bound is a page.
const attrLimit = 4096

// sysfs reads attributes below root and collects what could not be read.
// It is not safe for concurrent use.
type sysfs struct {
	root     string
	problems []Problem
}

func (s *sysfs) path(elem ...string) string {
	return filepath.Join(append([]string{s.root}, elem...)...)
}

func (s *sysfs) problem(source string, err error) {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	s.problems = append(s.problems, Problem{Source: source, Err: err})
}

var errEmpty = errors.New("empty")

// must reads an attribute that every device has: if it is not there or has no
// value, that is a problem too.
func (s *sysfs) must(elem ...string) string {
	path := s.path(elem...)
	v, err := readAttr(path)
	if err == nil && v == "" {
		err = errEmpty
	}
	if err != nil {
		s.problem(path, err)
	}
	return v
}

// may reads an attribute that a device can lack.
func (s *sysfs) may(elem ...string) string {
	path := s.path(elem...)
	v, err := readAttr(path)
	if err != nil && !absent(err) {
		s.problem(path, err)
	}
	return v
}

// list names a directory's entries, in order; a directory that is not there
// has none.
func (s *sysfs) list(elem ...string) []string {
	path := s.path(elem...)
	entries, err := os.ReadDir(path)
	if err != nil && !absent(err) {
		s.problem(path, err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// numbers is list for a directory whose entries are numbers, in their order.
func (s *sysfs) numbers(elem ...string) []int {
	var out []int
	for _, name := range s.list(elem...) {
		n, err := parseIndex(name)
		if err != nil {
			s.problem(s.path(append(elem, name)...), err)
			continue
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// parsed runs parse on a non-empty attribute value and records its error.
func parsed[T any](s *sysfs, value string, parse func(string) (T, error), elem ...string) (out T) {
	if value == "" {
		return out
	}
	out, err := parse(value)
	if err != nil {
		s.problem(s.path(elem...), err)
	}
	return out
}

func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

// readAttr reads one attribute without its trailing newline. It uses the
// system calls directly: a GID table is a thousand files, and package os tries
// to put each into the poller. O_NONBLOCK keeps a FIFO in a forged tree from
// blocking.
func readAttr(path string) (string, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	})
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var buf [attrLimit]byte
	n := 0
	for n < len(buf) {
		m, err := retry(func() (int, error) { return unix.Read(fd, buf[n:]) })
		if err != nil {
			return "", err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return strings.TrimRight(string(buf[:n]), "\n"), nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
