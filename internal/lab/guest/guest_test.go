package guest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, mode := range map[string]os.FileMode{"a/tool": 0o755, "b/tool": 0o755, "a/data": 0o644, "b/data": 0o755, "here": 0o755, "a/sub/x": 0o755} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	path := "PATH=" + filepath.Join(dir, "a") + ":" + filepath.Join(dir, "b")
	for _, tt := range []struct {
		name, path, want string
	}{
		{"tool", path, filepath.Join(dir, "a/tool")},
		{"data", path, filepath.Join(dir, "b/data")}, // the first is not executable
		{"sub", path, ""}, // a folder
		{"here", path, ""},
		{"here", path + ":", "./here"},
		{"./here", path, "./here"},
		{"a/data", path, "a/data"}, // what the kernel says about it is clearer
		{"./nosuch", path, ""},
		{"sh", "", "/bin/sh"},
	} {
		got, err := lookPath(tt.name, []string{"X=y", tt.path})
		if tt.name == "sh" && err == nil {
			got = "/bin/sh" // or /usr/bin/sh
		}
		if got != tt.want && !(tt.want == "" && err != nil) {
			t.Errorf("lookPath(%q, %q) = %q, %v; want %q", tt.name, tt.path, got, err, tt.want)
		}
	}
	if _, err := lookPath("nosuch", []string{"PATH=/one:/two"}); err == nil || !strings.Contains(err.Error(), "nosuch: not found in PATH /one:/two") {
		t.Errorf("error %v, want the path that was searched", err)
	}
}

// TestInput closes the command's input at the count that the host named, whether the count or the bytes come first.
func TestInput(t *testing.T) {
	for _, tt := range []struct {
		name  string
		total int64
		early bool
		want  string
	}{{"bytes first", 5, false, "hello"}, {"count first", 5, true, "hello"}, {"empty", 0, true, ""}} {
		t.Run(tt.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			in := newInput(w)
			from, to := io.Pipe()
			if tt.early {
				in.endAfter(tt.total)
			}
			go in.copy(from)
			for _, part := range []string{"he", "llo"} {
				if tt.total > 0 {
					to.Write([]byte(part))
				}
			}
			if !tt.early {
				in.endAfter(tt.total)
			}
			got, err := io.ReadAll(r)
			if err != nil || string(got) != tt.want {
				t.Errorf("the command read %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// TestInputNobodyReads goes on taking what the host sends when the command has closed its input.
func TestInputNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	in := newInput(w)
	in.copy(strings.NewReader(strings.Repeat("x", 1<<20)))
	if in.got != 1<<20 {
		t.Errorf("took %d bytes, want all", in.got)
	}
}

func TestParseModuleList(t *testing.T) {
	got := parseModuleList("early virtio.ko\nlate dummy.ko numdummies=0 x=1\n\nbroken\n")
	want := []moduleLine{{"early", "virtio.ko", ""}, {"late", "dummy.ko", "numdummies=0 x=1"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(moduleLine{})); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
}

// TestTTY makes a terminal and finds its size on the other side.
func TestTTY(t *testing.T) {
	master, slave, err := openTTY(30, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	if err := setWinsize(master, 40, 120); err != nil {
		t.Fatal(err)
	}
	if ws, err := unix.IoctlGetWinsize(int(slave.Fd()), unix.TIOCGWINSZ); err != nil || ws.Row != 40 || ws.Col != 120 {
		t.Errorf("size %+v, %v; want 40 by 120", ws, err)
	}
	if _, err := slave.WriteString("line\n"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	n, err := master.Read(b)
	if err != nil || string(b[:n]) != "line\r\n" {
		t.Errorf("read %q, %v", b[:n], err)
	}
}
