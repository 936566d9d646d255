package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// what a note is about.
type key struct{ feature, driver string }

// a note is what tests have seen of a feature on a driver.
type note struct {
	verdict string   // works, or refused
	tests   []string // sorted
}

type notes map[key]note

var line = regexp.MustCompile(`feature\t([^\t]+)\t([a-z0-9_]+)\t(works|refused)\t(Test[^/\s]+)`)

// readLog reads the output of go test -v.
func readLog(path string) (notes, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := notes{}
	for s := bufio.NewScanner(f); s.Scan(); {
		m := line.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		if err := all.add(key{m[1], m[2]}, m[3], m[4]); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no test has noted a feature; is it the output of go test -v in the lab?", path)
	}
	return all, all.complete()
}

func (all notes) add(k key, verdict string, tests ...string) error {
	n := all[k]
	if n.verdict != "" && n.verdict != verdict {
		return fmt.Errorf("%q on %s: %v saw %s, %v %s", k.feature, k.driver, n.tests, n.verdict, tests, verdict)
	}
	n.verdict = verdict
	n.tests = append(n.tests, tests...)
	slices.Sort(n.tests)
	n.tests = slices.Compact(n.tests)
	all[k] = n
	return nil
}

// complete sees that each feature was seen on each driver.
func (all notes) complete() error {
	for k := range all {
		for other := range all {
			if _, ok := all[key{k.feature, other.driver}]; !ok {
				return fmt.Errorf("%q: no test saw it work on %s, or refused", k.feature, other.driver)
			}
		}
	}
	return nil
}

// keys are sorted.
func (all notes) keys() []key {
	return slices.SortedFunc(maps.Keys(all), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.feature, b.feature), cmp.Compare(a.driver, b.driver))
	})
}

// String has a line for each note; parse reads it.
func (all notes) String() string {
	var b strings.Builder
	for _, k := range all.keys() {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", k.feature, k.driver, all[k].verdict, strings.Join(all[k].tests, " "))
	}
	return b.String()
}

func parse(text string) (notes, error) {
	all := notes{}
	for l := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(l, "\n"), "\t")
		if len(f) != 4 {
			return nil, fmt.Errorf("no note: %q", l)
		}
		if err := all.add(key{f[0], f[1]}, f[2], strings.Fields(f[3])...); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// a cell is a kernel and an rdma-core, with what was noted there.
type cell struct {
	name  string
	notes notes
}

func readCells() ([]cell, error) {
	paths, err := filepath.Glob(file("*"))
	if err != nil {
		return nil, err
	}
	var cells []cell
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		cells = append(cells, cell{strings.TrimSuffix(filepath.Base(path), ".tsv"), all})
	}
	slices.SortFunc(cells, func(a, b cell) int { return compareVersions(a.name, b.name) })
	return cells, nil
}

// compareVersions puts 6.1-44 before 6.12-44.
func compareVersions(a, b string) int {
	numbers := func(s string) (n []int) {
		for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '-' }) {
			var v int
			fmt.Sscan(f, &v)
			n = append(n, v)
		}
		return n
	}
	return slices.Compare(numbers(a), numbers(b))
}
