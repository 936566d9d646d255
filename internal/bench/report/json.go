package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goverbs/goverbs/internal/bench"
)

// JSON writes r, indented. docs/rdmabench.md describes the form.
func JSON(w io.Writer, r *bench.Report) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// JSONFile writes r to a file, which is there whole or not at all: a file of that
// name is replaced only when the new one is complete.
func JSONFile(name string, r *bench.Report) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", name, err)
		}
	}()
	// CreateTemp's mode is for its owner alone.
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := JSON(f, r); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// ReadFile reads what JSONFile wrote.
func ReadFile(name string) (*bench.Report, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := &bench.Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: no results of rdmabench --json: %w", name, err)
	}
	if r.Schema != bench.Schema {
		return nil, fmt.Errorf("%s: schema %q, and this rdmabench reads %q: use the one that wrote it", name, r.Schema, bench.Schema)
	}
	for i, m := range r.Measurements {
		if !whole(m) {
			return nil, fmt.Errorf("%s: measurement %d has neither an error nor all of a result", name, i)
		}
	}
	return r, nil
}

// whole says whether m has all that is shown of it.
func whole(m bench.Result) bool {
	if m.Error != "" {
		return true
	}
	result := m.Latency != nil
	if bench.KindOf(m.SizeBytes) == bench.KindThroughput {
		result = m.Throughput != nil
	}
	return result && m.ClientUsage != nil && m.ServerUsage != nil
}
