package lab

import (
	"os"
	"path/filepath"
	"strings"
)

// Flags of a go test binary that name a file or a folder that it writes.
var (
	testFileFlags = []string{
		"test.coverprofile", "test.cpuprofile", "test.memprofile", "test.blockprofile", "test.mutexprofile", "test.trace", "test.testlogfile",
	}
	testDirFlags = []string{"test.outputdir", "test.gocoverdir", "test.fuzzcachedir"}
)

// OutputDirs finds the host folders that a command must be able to write to, for `go test -exec` with -coverprofile and the
// like to work as without a lab: those that go test names in the flags of its test binaries, and GOCOVERDIR. Folders that
// do not exist are left out.
func OutputDirs(args, env []string, dir string) []string {
	flags := testFlags(args)
	outputDir := dir
	if d := flags["test.outputdir"]; d != "" {
		outputDir = absolute(dir, d)
	}
	var dirs []string
	add := func(path string) {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			dirs = append(dirs, path)
		}
	}
	for _, name := range testDirFlags {
		if value := flags[name]; value != "" {
			add(absolute(dir, value))
		}
	}
	for _, name := range testFileFlags {
		if value := flags[name]; value != "" {
			add(filepath.Dir(absolute(outputDir, value)))
		}
	}
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "GOCOVERDIR="); ok && value != "" {
			add(absolute(dir, value))
		}
	}
	return dirs
}

// testFlags reads -test.NAME=VALUE and -test.NAME VALUE, with one dash or two.
func testFlags(args []string) map[string]string {
	flags := make(map[string]string)
	for i, arg := range args {
		name, value, ok := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-test.") && !strings.HasPrefix(arg, "--test.") {
			continue
		}
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		flags[name] = value
	}
	return flags
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
