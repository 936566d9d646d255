package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What --json wrote prints the same tables and figures as the run itself.
func TestShow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	status, tables, errOut := runApp(t, &app{}, append([]string{"compare", "--transports=tcp", "--ops=send", "--mode=poll", "--json", file}, quick...)...)
	if status != 0 {
		t.Fatalf("status %d, stderr %q", status, errOut)
	}
	status, again, errOut := runApp(t, &app{}, "show", file)
	if status != 0 || again != tables {
		t.Errorf("status %d, stderr %q, tables:\n%s\nwant:\n%s", status, errOut, again, tables)
	}
	status, figures, errOut := runApp(t, &app{}, "show", file, "--figures")
	if status != 0 || strings.Count(figures, "figure bench_tcp_send_") != 2 {
		t.Errorf("status %d, stderr %q, figures:\n%s", status, errOut, figures)
	}
}

func TestShowBadFile(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"text": "hello", "other.json": "{}", "later.json": `{"schema": "rdmabench/999"}`} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		status, out, errOut := runApp(t, &app{}, "show", file)
		if status != 2 || out != "" || !strings.Contains(errOut, file) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want 2 and a word on the file", name, status, out, errOut)
		}
	}
	if status, _, errOut := runApp(t, &app{}, "show", filepath.Join(dir, "none")); status != 2 || !strings.Contains(errOut, "no such file") {
		t.Errorf("no file: status %d, stderr %q", status, errOut)
	}
}
