package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The table stands between these lines.
const (
	begin = "<!-- features: written by ci/features of docs/coverage/*.tsv -->"
	end   = "<!-- end of features -->"
)

// render has a row for each feature, and a column for each driver and cell.
func render(cells []cell) string {
	var drivers, features []string
	tests := map[string][]string{}
	for _, c := range cells {
		for k, n := range c.notes {
			drivers, features = append(drivers, k.driver), append(features, k.feature)
			tests[k.feature] = append(tests[k.feature], n.tests...)
		}
	}
	drivers, features = unique(drivers), unique(features)
	var b strings.Builder
	b.WriteString("\n| feature |")
	for _, d := range drivers {
		for _, c := range cells {
			kernel, core, _ := strings.Cut(c.name, "-")
			fmt.Fprintf(&b, " %s %s, %s |", d, kernel, core)
		}
	}
	b.WriteString(" needs | tests |\n|---|" + strings.Repeat("---|", len(drivers)*len(cells)+2) + "\n")
	for _, f := range features {
		fmt.Fprintf(&b, "| %s |", f)
		seen := map[string]int{}
		for _, d := range drivers {
			for _, c := range cells {
				n, ok := c.notes[key{f, d}]
				if !ok {
					n.verdict = "not run"
				}
				seen[n.verdict]++
				fmt.Fprintf(&b, " %s |", n.verdict)
			}
		}
		needs := ""
		if seen["works"] == 0 {
			needs = "other hardware or newer software"
		}
		fmt.Fprintf(&b, " %s | %s |\n", needs, "`"+strings.Join(unique(tests[f]), "`, `")+"`")
	}
	b.WriteString("\n")
	return b.String()
}

func unique(s []string) []string {
	set := map[string]bool{}
	for _, v := range s {
		set[v] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// difference shows the lines that only one of two texts has.
func difference(before, now string) string {
	var b strings.Builder
	was, is := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(now))
	for _, l := range was {
		if !slices.Contains(is, l) {
			b.WriteString("- " + l)
		}
	}
	for _, l := range is {
		if !slices.Contains(was, l) {
			b.WriteString("+ " + l)
		}
	}
	return b.String()
}
