package rdmacm_test

import (
	"testing"

	"github.com/goverbs/goverbs/internal/verbstest"
)

// BenchmarkThousand has a thousand connections in one process, in event mode:
// all are established, echo and close. ci/figures-cm makes figures of it.
func BenchmarkThousand(b *testing.B) {
	verbstest.EachB(b, func(b *testing.B, target *verbstest.Target) {
		for b.Loop() {
			threads, kib := runCrowd(b, target, 1000)
			b.ReportMetric(float64(threads), "threads")
			b.ReportMetric(float64(kib), "KiB/conn")
		}
	})
}
