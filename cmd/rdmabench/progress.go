package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/bench"
)

// progress shows how far a run is, on a terminal only.
type progress struct {
	w   io.Writer
	bar *progressbar.ProgressBar
}

func newProgress(w io.Writer) *progress {
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		return &progress{w: w}
	}
	return &progress{}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// at is called before each measurement.
func (p *progress) at(done, planned int, t bench.Task, transport string) {
	if p.w == nil {
		return
	}
	// Within 80 columns with all that the bar adds.
	what := fmt.Sprintf("%-26s", fmt.Sprintf("%s %s %s %s", strings.ToUpper(string(t.Op)), bench.FormatSize(t.Size), bench.TransportTitle(transport), t.Mode))
	if p.bar == nil {
		p.bar = progressbar.NewOptions(planned,
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetDescription(what),
			progressbar.OptionSetWidth(16),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(50*time.Millisecond),
			progressbar.OptionSetRenderBlankState(true),
		)
	}
	p.bar.Describe(what)
	_ = p.bar.Set(done) // fails only past the end
}

// close removes the bar from the screen.
func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
