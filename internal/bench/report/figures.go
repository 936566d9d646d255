package report

import (
	"fmt"
	"io"

	"github.com/goverbs/goverbs/internal/bench"
)

// Figures writes one line for each measurement that succeeded:
//
//	figure bench_roce_send_64_lat_p50_us 41.2 us
//	figure bench_roce_send_65536_event_bw_mibps 870.1 MiB/s
func Figures(w io.Writer, r *bench.Report) error {
	for _, m := range r.Measurements {
		if m.Error != "" {
			continue
		}
		name := fmt.Sprintf("bench_%s_%s_%d", m.Transport, m.Op, m.SizeBytes)
		if m.Mode == bench.ModeEvent {
			name += "_event"
		}
		var err error
		if m.Latency != nil {
			_, err = fmt.Fprintf(w, "figure %s_lat_p50_us %.4g us\n", name, m.Latency.P50US)
		} else if m.Throughput != nil {
			_, err = fmt.Fprintf(w, "figure %s_bw_mibps %.4g MiB/s\n", name, m.Throughput.MiBPerSecond)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
