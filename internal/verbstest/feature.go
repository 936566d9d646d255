package verbstest

import (
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/rnic"
)

// Works notes that the test has seen the feature work on the device: data has
// moved or a state has changed. It is the last thing a test does: ci/features
// makes the table of docs/coverage.md of what passing tests have noted. The
// test that sees a feature refused names it likewise.
func Works(t *testing.T, dev *ibverbs.Device, feature string) {
	t.Helper()
	note(t, dev, feature, "works")
}

// Refused notes that the test has seen the feature refused by the device, in
// the way that its documentation says. See [Works].
func Refused(t *testing.T, dev *ibverbs.Device, feature string) {
	t.Helper()
	note(t, dev, feature, "refused")
}

func note(t *testing.T, dev *ibverbs.Device, feature, verdict string) {
	t.Helper()
	rnics, err := rnic.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rnics {
		if r.Name == dev.Name() && !t.Failed() {
			t.Logf("feature\t%s\t%s\t%s\t%s", feature, r.Driver, verdict, t.Name())
		}
	}
}
