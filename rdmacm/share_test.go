package rdmacm

import (
	"testing"
	"time"
)

// TestShareOf: the attempts of a dial with several addresses share its time.
func TestShareOf(t *testing.T) {
	for _, tc := range []struct {
		left time.Duration
		n    int
		want time.Duration
	}{
		{time.Hour, 1, time.Hour},
		{time.Hour, 4, 15 * time.Minute},
		{6 * time.Second, 10, minShare},
		{time.Second, 10, time.Second},
		{-time.Second, 2, -500 * time.Millisecond},
	} {
		if got := shareOf(tc.left, tc.n); got != tc.want {
			t.Errorf("one of %d attempts in %v gets %v, want %v", tc.n, tc.left, got, tc.want)
		}
	}
}
