// Package report shows a bench.Report: as tables for people, as JSON and as figure
// lines for programs.
package report
