package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const log = `=== RUN   TestFlush
    a_test.go:7: feature	FLUSH	rxe	works	TestFlush/rxe0
    a_test.go:7: feature	FLUSH	rxe	works	TestFlushAgain/rxe0/IPv6
    a_test.go:9: feature	FLUSH	siw	refused	TestNoFlush/siw0
`

func logFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadLog(t *testing.T) {
	all, err := readLog(logFile(t, log))
	if err != nil {
		t.Fatal(err)
	}
	const want = "FLUSH\trxe\tworks\tTestFlush TestFlushAgain\nFLUSH\tsiw\trefused\tTestNoFlush\n"
	if all.String() != want {
		t.Errorf("%q, want %q", all, want)
	}
	again, err := parse(want)
	if err != nil || again.String() != want {
		t.Errorf("read again: %q, %v", again, err)
	}
}

func TestReadLogErrors(t *testing.T) {
	for name, tc := range map[string]struct{ text, word string }{
		"nothing":           {"ok\n", "no test has noted"},
		"both":              {log + "    a_test.go:1: feature\tFLUSH\tsiw\tworks\tTestX/siw0\n", `"FLUSH" on siw`},
		"not on one driver": {log + "    a_test.go:1: feature\tFLSH\tsiw\trefused\tTestX/siw0\n", `no test saw it work on rxe`},
	} {
		if _, err := readLog(logFile(t, tc.text)); err == nil || !strings.Contains(err.Error(), tc.word) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parse("a\tb\n"); err == nil {
		t.Error("half a line was read")
	}
}

func TestRender(t *testing.T) {
	all, err := readLog(logFile(t, log))
	if err != nil {
		t.Fatal(err)
	}
	later := notes{key{"ECE", "rxe"}: {"refused", []string{"TestECE"}}, key{"ECE", "siw"}: {"refused", []string{"TestECE"}}}
	const want = `
| feature | rxe 6.1, 44 | rxe 6.12, 56 | siw 6.1, 44 | siw 6.12, 56 | needs | tests |
|---|---|---|---|---|---|---|
| ECE | not run | refused | not run | refused | other hardware or newer software | ` + "`TestECE`" + ` |
| FLUSH | works | not run | refused | not run |  | ` + "`TestFlush`, `TestFlushAgain`, `TestNoFlush`" + ` |

`
	if got := render([]cell{{"6.1-44", all}, {"6.12-56", later}}); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestCompareVersions(t *testing.T) {
	for _, pair := range [][2]string{{"6.1-44", "6.12-44"}, {"6.12-44", "6.12-56"}, {"6.12-56", "7.3-56"}} {
		if compareVersions(pair[0], pair[1]) >= 0 || compareVersions(pair[1], pair[0]) <= 0 {
			t.Errorf("%v", pair)
		}
	}
}
