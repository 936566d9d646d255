// Command constants compares the constants that rdma-core's verbs.h offers with those of package ibverbs, and prints what is
// wrong, a line each: a constant of C's that the bindings neither have nor need, and docs/coverage.md does not explain; a number
// that is written out in Go and not what the header says; a constant that stands for another's C constant, or prints as another;
// a flag that String does not know.
//
//	usage: go run ./ci/constants            the installed headers
//	  INCLUDE=DIR go run ./ci/constants     those in DIR/infiniband
//
// Run it in the repository's root. Exit status 1 where something is wrong. Numbers are compared where the header has the
// constant, so newer headers check more.
package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

func main() {
	include := cmp.Or(os.Getenv("INCLUDE"), "/usr/include")
	wrong, err := run(os.Stdout, include, "ibverbs", filepath.Join("docs", "coverage.md"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "constants:", err)
		os.Exit(1)
	}
	if wrong {
		os.Exit(1)
	}
}

// run prints what is wrong, and then the figure.
func run(w io.Writer, include, dir, doc string) (wrong bool, err error) {
	header, err := readHeader(include)
	if err != nil {
		return false, err
	}
	src, err := readSource(dir)
	if err != nil {
		return false, err
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		return false, err
	}
	src.label(header)
	complaints, covered := checkCoverage(header, src, excuses(string(text)))
	complaints = append(complaints, checkConsts(header, src)...)
	complaints = append(complaints, checkFlags(header, src)...)
	slices.Sort(complaints)
	for _, c := range slices.Compact(complaints) {
		fmt.Fprintln(w, "constants:", c)
	}
	fmt.Fprintf(w, "figure verbs_constants_covered %d/%d %d.%d %%\n", covered, len(header),
		100*covered/len(header), 1000*covered/len(header)%10)
	return len(complaints) > 0, nil
}

var excuse = regexp.MustCompile("(?m)^- `(IBV_\\w+)`: .+")

// excuses are the constants that docs/coverage.md explains. Some may be newer
// than the header.
func excuses(doc string) map[string]bool {
	found := map[string]bool{}
	for _, m := range excuse.FindAllStringSubmatch(doc, -1) {
		found[m[1]] = true
	}
	return found
}

// checkCoverage looks for constants that nothing uses, and for excuses for
// those that something does.
func checkCoverage(header []enumerator, src *source, excused map[string]bool) (complaints []string, covered int) {
	bound := map[string]bool{}
	for _, c := range src.consts {
		bound[c.c] = true
	}
	for _, e := range header {
		switch has := src.used[e.name] || bound[e.name]; {
		case has && excused[e.name]:
			complaints = append(complaints, e.name+" is bound, and docs/coverage.md says that it is not")
			covered++
		case has:
			covered++
		case !excused[e.name]:
			complaints = append(complaints, e.name+" is not bound, and docs/coverage.md does not say why")
		}
	}
	return complaints, covered
}
