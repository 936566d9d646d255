package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOutputDirs(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"build/b001", "pkg", "out", "cov"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		args string
		env  []string
		want []string
	}{
		{"plain command", "ls -l", nil, nil},
		{"go test", "ROOT/build/b001/x.test -test.testlogfile=ROOT/build/b001/testlog.txt -test.paniconexit0 -test.timeout=10m0s", nil, []string{"build/b001"}},
		{"cover", "x.test -test.coverprofile=ROOT/build/b001/_cover_.out", nil, []string{"build/b001"}},
		{"profiles", "x.test -test.cpuprofile=cpu.out -test.outputdir=ROOT/out", nil, []string{"out", "out"}},
		{"by hand", "x.test --test.trace trace.out", nil, []string{"pkg"}},
		{"gocoverdir flag", "x.test -test.gocoverdir=../cov", nil, []string{"cov"}},
		{"gocoverdir variable", "server", []string{"A=b", "GOCOVERDIR=ROOT/cov"}, []string{"cov"}},
		{"not there", "x.test -test.gocoverdir=/nowhere/at/all", nil, nil},
		{"empty", "x.test -test.cpuprofile= -test.outputdir", []string{"GOCOVERDIR="}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var env, want []string
			for _, e := range tt.env {
				env = append(env, strings.ReplaceAll(e, "ROOT", root))
			}
			for _, w := range tt.want {
				want = append(want, filepath.Join(root, w))
			}
			got := OutputDirs(strings.Fields(strings.ReplaceAll(tt.args, "ROOT", root)), env, filepath.Join(root, "pkg"))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("folders (-want +got):\n%s", diff)
			}
		})
	}
}
