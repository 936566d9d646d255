package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRun(t *testing.T) {
	for name, want := range map[string][]string{
		"good": {
			"figure verbs_constants_covered 9/10 90.0 %",
		},
		"bad": {
			"constants: IBV_ADVICE_WAIT is not bound, and docs/coverage.md does not say why",
			"constants: IBV_COLOR_RED is bound, and docs/coverage.md says that it is not",
			"constants: IBV_LAYER_A is not bound, and docs/coverage.md does not say why",
			"constants: IBV_LAYER_B is not bound, and docs/coverage.md does not say why",
			"constants: IBV_WISH_GOOD is not bound, and docs/coverage.md does not say why",
			`constants: testdata/bad/enums.go:10:2: ColorGreen: it is IBV_COLOR_RED, and its name is more like IBV_COLOR_GREEN`,
			`constants: testdata/bad/enums.go:10:2: ColorGreen: it is IBV_COLOR_RED, and prints as "GREEN", which is more like IBV_COLOR_GREEN`,
			"constants: testdata/bad/enums.go:11:2: ColorBlue: 7, and IBV_COLOR_BLUE is 6",
			"constants: testdata/bad/enums.go:12:2: ColorFast: IBV_WISH_FAST is of enum ibv_wish, and type Color is for enum ibv_color",
			"constants: testdata/bad/enums.go:20:2: WishCheap: 4, and IBV_WISH_CHEAP is 2",
			"constants: testdata/bad/enums.go:23:17: wishNames has no WishCheap",
			"constants: testdata/bad/enums.go:9:2: ColorRed: it is IBV_COLOR_GREEN, and its name is more like IBV_COLOR_RED",
			"constants: testdata/bad/shim.h: GV_WISH_ALL: 3, and IBV_WISH_ALL is 1099511627779",
			"figure verbs_constants_covered 6/10 60.0 %",
		},
	} {
		var out strings.Builder
		wrong, err := run(&out, "testdata/include", "testdata/"+name, "testdata/"+name+".md")
		if err != nil {
			t.Fatal(err)
		}
		if wrong != (len(want) > 1) {
			t.Errorf("%s: wrong is %v", name, wrong)
		}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What cannot be read is an error, not a clean bill.
func TestRunErrors(t *testing.T) {
	for _, args := range [][3]string{
		{"testdata", "testdata/good", "testdata/good.md"},
		{"testdata/include", "testdata/include", "testdata/good.md"},
		{"testdata/include", "testdata/good", "testdata/none.md"},
	} {
		var out strings.Builder
		if wrong, err := run(&out, args[0], args[1], args[2]); err == nil || out.Len() > 0 {
			t.Errorf("%v: %v, printed %q", args, wrong, &out)
		}
	}
}
