package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goverbs/goverbs/internal/lab"
)

// invoke runs a command line with an empty cache and no QEMU, which is as far as a test without a guest gets.
func invoke(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var out, errs bytes.Buffer
	status = run(args, null, &out, &errs)
	return status, out.String(), errs.String()
}

func TestCommandLine(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, tt := range []struct {
		args   string
		status int
		stderr string
	}{
		{"exec", 2, "what shall run? Name a command: see `rdmalab exec --help`"},
		{"exec --nosuch -- true", 2, "unknown flag: --nosuch"},
		{"exec --cpus 0 -- true", 2, "--cpus 0: use 1 to 64"},
		{"exec --cpus many -- true", 2, "invalid argument"},
		{"exec --mem 100M -- true", 2, "--mem 100M: use 512M or more"},
		{"exec --mem 2 -- true", 2, "use an amount such as 2G or 512M"},
		{"exec --timeout -1s -- true", 2, "--timeout -1s: use a positive duration"},
		{"exec --accel hvf -- true", 2, `--accel "hvf": use auto, kvm or tcg`},
		{"exec -t -- true", 2, "a terminal is needed"},
		{"shell", 2, "a terminal is needed"},
		{"shell extra", 2, "unknown command"},
		{"nosuch", 2, "unknown command"},
		{"exec --kernel 5.4 -- true", lab.StatusLab, `kernel "5.4" is not known`},
		{"exec -- true", lab.StatusLab, "kernel 6.1 is not prepared: run `rdmalab prepare 6.1`"},
		{"exec true --help", lab.StatusLab, "kernel 6.1 is not prepared"}, // the command's own flags are its own
		{"exec --share /nowhere/at/all -- true", lab.StatusLab, "make the folder first"},
		{"kernels", 1, "no kernel is prepared"},
		{"prepare 1 2", 2, "accepts at most 1 arg"},
		{"prepare 5.4", 1, "ci/kernel failed"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			status, stdout, stderr := invoke(t, strings.Fields(tt.args)...)
			if tt.status == lab.StatusLab && strings.Contains(stderr, "linked dynamically") {
				return // the race detector's test binary is refused before all that
			}
			if status != tt.status || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("status %d, stderr %q; want %d and %q", status, stderr, tt.status, tt.stderr)
			}
			if stdout != "" {
				t.Errorf("stdout %q, want nothing", stdout)
			}
			if !strings.HasPrefix(tt.args, "prepare 5") && strings.Count(stderr, "\n") != 1 {
				t.Errorf("stderr is not one line: %q", stderr)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"exec", "--help"}, {"help", "shell"}} {
		status, stdout, stderr := invoke(t, args...)
		if status != 0 || stderr != "" || !strings.Contains(stdout, "rdmalab") {
			t.Errorf("%q: status %d, stdout %q, stderr %q", args, status, stdout, stderr)
		}
	}
}

func TestKernels(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	if status, stdout, _ := invoke(t, "kernels", "--json"); status != 0 || strings.TrimSpace(stdout) != "[]" {
		t.Errorf("none, as JSON: status %d, %q", status, stdout)
	}
	dir := filepath.Join(cache, "goverbs", "kernels", "6.1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"info":    "format=3\nversion=6.1\nrelease=6.1.0-57-amd64\npackage=6.1.192-3\nbuilt=2026-12-01T04:39:14Z\n",
		"vmlinuz": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	status, stdout, stderr := invoke(t, "kernels")
	if status != 0 || stderr != "" || !strings.Contains(stdout, "6.1     6.1.0-57-amd64  6.1.192-3  2026-12-01T04:39:14Z  "+dir) {
		t.Errorf("status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	var got []lab.Kernel
	if _, stdout, _ = invoke(t, "kernels", "--json"); json.Unmarshal([]byte(stdout), &got) != nil || len(got) != 1 || got[0].Dir != dir {
		t.Errorf("JSON: %s", stdout)
	}
}

func TestGuestEnv(t *testing.T) {
	for _, tt := range []struct {
		name      string
		env, want []string
	}{
		{"defaults", []string{"HOME=/h", "PATH=/usr/bin"}, []string{
			"HOME=/h", "PATH=/usr/bin:/usr/local/sbin:/usr/sbin:/sbin", "GOVERBS_REQUIRE=rxe,siw", "GOVERBS_LAB=6.1",
		}},
		{"caller's choice", []string{"GOVERBS_REQUIRE=rxe", "GOVERBS_LAB=old", "GOVERBS_LAB_SHARE=/x", "PATH=/sbin:/usr/sbin:/usr/local/sbin"}, []string{
			"PATH=/sbin:/usr/sbin:/usr/local/sbin", "GOVERBS_REQUIRE=rxe", "GOVERBS_LAB=6.1",
		}},
		{"empty", []string{"GOVERBS_REQUIRE="}, []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "GOVERBS_REQUIRE=", "GOVERBS_LAB=6.1",
		}},
	} {
		if diff := cmp.Diff(tt.want, guestEnv(tt.env, "6.1")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestConfig checks that shares come from the flag, the environment and go test's flags alike, as absolute paths.
func TestConfig(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv(envShare, "from-env:/abs:")
	o := options{kernel: "6.1", cpus: 3, memory: 1024, shares: []string{"out"}}
	cfg, err := o.config([]string{"x.test", "-test.coverprofile=" + dir + "/cover.out"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "out"), filepath.Join(dir, "from-env"), "/abs", dir}
	if diff := cmp.Diff(want, cfg.Shares); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if cfg.Dir != dir || cfg.CPUs != 3 || cfg.MemoryMiB != 1024 {
		t.Errorf("config %+v", cfg)
	}
}

func TestMemory(t *testing.T) {
	for text, want := range map[string]memory{"2G": 2048, "512M": 512, "1GiB": 1024, "1536MiB": 1536} {
		var m memory
		if err := m.Set(text); err != nil || m != want {
			t.Errorf("%q is %d, %v; want %d", text, m, err, want)
		}
	}
	for _, text := range []string{"", "G", "2", "-1G", "1.5G", "2K", "9999999G", "2GG", "2GM"} {
		var m memory
		if err := m.Set(text); err == nil {
			t.Errorf("%q is %v, want an error", text, m)
		}
	}
}

func TestIsInit(t *testing.T) {
	for name, want := range map[string]bool{"/init": true, "rdmalab": false, "/usr/bin/rdmalab": false} {
		if isInit([]string{name}) != want {
			t.Errorf("isInit(%q) = %v", name, !want)
		}
	}
	if isInit(nil) {
		t.Error("isInit without arguments")
	}
}
