package rnic

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// tree builds the sysfs tree of a named situation and returns a Host that
// reads it alone.
func tree(t testing.TB, situation string) Host {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "sysfs", situation+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return treeOf(t, string(text))
}

// treeOf builds a tree from the text form that testdata/sysfs/README.md
// describes.
func treeOf(t testing.TB, text string) Host {
	t.Helper()
	root := t.TempDir()
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := plant(root, line); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
	}
	return Host{Sysfs: root, Dev: t.TempDir(), NoNetlink: true}
}

var lineForm = regexp.MustCompile(`^("(?:[^"\\]|\\.)*"|\S+) (=|->|!|/)(?: (.*))?$`)

func plant(root, line string) error {
	m := lineForm.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("not understood: %q", line)
	}
	path, verb, value := unquote(m[1]), m[2], unquote(m[3])
	for _, path := range expand(path) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		var err error
		switch verb {
		case "=":
			err = os.WriteFile(path, []byte(value+"\n"), 0o644)
		case "->":
			err = os.Symlink(value, path)
		case "/":
			err = os.MkdirAll(path, 0o755)
		case "!":
			err = os.Symlink(filepath.Base(path), path) // ELOOP, which root gets as well
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func unquote(s string) string {
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return s
}

var rangeForm = regexp.MustCompile(`\[(\d+)-(\d+)\]`)

func expand(path string) []string {
	m := rangeForm.FindStringSubmatchIndex(path)
	if m == nil {
		return []string{path}
	}
	first, _ := strconv.Atoi(path[m[2]:m[3]])
	last, _ := strconv.Atoi(path[m[4]:m[5]])
	var out []string
	for i := first; i <= last; i++ {
		out = append(out, path[:m[0]]+strconv.Itoa(i)+path[m[1]:])
	}
	return out
}

// brief is an RNIC on one line, and each of its ports on one.
func brief(r RNIC) []string {
	out := []string{fmt.Sprintf("%s %s %v %v guid=%v fw=%q desc=%q pci=%s numa=%d %s", r.Name, r.Driver, r.Protocol,
		r.NodeType, r.NodeGUID, r.Firmware, r.NodeDescription, r.PCI, r.NUMANode, charNames(r))}
	for _, p := range r.Ports {
		out = append(out, fmt.Sprintf("  %d %v %v/%v %v %s/%d %v mtu=%d/%d %q=%v lid=%#x gids=%d/%d", p.Number, p.Protocol, p.State,
			p.PhysState, p.LinkLayer, p.Netdev, p.NetdevIndex, p.Netdevs, p.NetdevMTU, p.ActiveMTU, p.Rate, p.RateGbps, p.LID,
			len(p.GIDs), p.GIDTableLen))
	}
	return out
}

func charNames(r RNIC) string {
	var names []string
	for _, c := range r.CharDevices {
		names = append(names, fmt.Sprintf("%s=%v", filepath.Base(c.Path), c.Dev))
	}
	return strings.Join(names, ",")
}

// problemLines are an RNIC's problems without the tree's own root.
func problemLines(h Host, r RNIC) []string {
	var out []string
	for _, p := range r.Problems {
		out = append(out, trimRoot(h, p.String()))
	}
	return out
}

func trimRoot(h Host, s string) string { return strings.ReplaceAll(s, h.Sysfs+"/", "") }
