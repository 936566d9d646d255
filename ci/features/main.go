// Command features makes the table of features in docs/coverage.md of what tests have seen: a test that sees a feature work on
// a device, or refused by it, notes that with verbstest.Works or verbstest.Refused. A cell is a kernel and an rdma-core that
// the tests ran with, such as 6.1-44; what was noted there is kept in docs/coverage/CELL.tsv.
//
//	usage: go run ./ci/features check LOG CELL    LOG, the output of go test -v, against what is kept of the cell
//	       go run ./ci/features record LOG CELL   keep it, and make the table
//	       go run ./ci/features table             see that the table is what is kept
//
// Run it in the repository's root. Exit status 1 where something is wrong.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	kept = "docs/coverage"
	doc  = "docs/coverage.md"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "features:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "check":
		return check(args[1], args[2])
	case len(args) == 3 && args[0] == "record":
		notes, err := readLog(args[1])
		if err != nil {
			return err
		}
		if err := os.WriteFile(file(args[2]), []byte(notes.String()), 0o644); err != nil {
			return err
		}
		return table(true)
	case len(args) == 1 && args[0] == "table":
		return table(false)
	}
	return errors.New("usage: features check LOG CELL | record LOG CELL | table")
}

func file(cell string) string { return filepath.Join(kept, cell+".tsv") }

// check compares a run with what is kept. A cell that nobody has recorded is
// no fault: users have other kernels and rdma-cores than we.
func check(log, cell string) error {
	notes, err := readLog(log)
	if err != nil {
		return err
	}
	want, err := os.ReadFile(file(cell))
	if errors.Is(err, os.ErrNotExist) {
		fmt.Printf("features: %d noted; nothing is kept of %s to compare them with\n", len(notes), cell)
		return nil
	}
	if err != nil {
		return err
	}
	if notes.String() != string(want) {
		return fmt.Errorf("the tests have seen what %s does not say; go run ./ci/features record %s %s, and commit it if it is right:\n%s",
			file(cell), log, cell, difference(string(want), notes.String()))
	}
	fmt.Printf("features: %d noted, as %s says\n", len(notes), file(cell))
	return nil
}

// table writes the table, or compares it.
func table(write bool) error {
	cells, err := readCells()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no lines %q and %q", doc, begin, end)
	}
	now := before + begin + "\n" + render(cells) + end + after
	if now == string(text) {
		return nil
	}
	if !write {
		return fmt.Errorf("the table in %s is not what %s holds: go run ./ci/features record", doc, kept)
	}
	return os.WriteFile(doc, []byte(now), 0o644)
}
