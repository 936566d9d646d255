package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// module is one that the guest loads before the host's files are there to load it from.
type module struct {
	name   string
	params string
}

// What the guest needs to talk to the host and to mount its root, and then for its links. rxe on 6.1 and libcrc32c (for siw)
// ask the crypto layer for their checksums by name, and fail with ENOENT where no module has them.
var (
	earlyModules = []module{{name: "virtio_pci"}, {name: "virtio_console"}, {name: "9pnet_virtio"}, {name: "9p"}, {name: "overlay"}}
	lateModules  = []module{
		{name: "dummy", params: "numdummies=0"}, {name: "crc32_generic"}, {name: "crc32c_generic"}, {name: "rdma_rxe"}, {name: "siw"}, {name: "rdma_ucm"},
	}
)

// moduleTable is what depmod knows of one kernel's modules.
type moduleTable struct {
	dir     string
	files   map[string]string   // by name, relative to dir
	deps    map[string][]string // by name: files, in the order that modules.dep has (nearest first)
	builtin map[string]bool
}

// readModules reads modules.dep and modules.builtin in dir.
func readModules(dir string) (*moduleTable, error) {
	dep, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return nil, err
	}
	t := &moduleTable{dir: dir, files: map[string]string{}, deps: map[string][]string{}, builtin: map[string]bool{}}
	for line := range strings.Lines(string(dep)) {
		file, deps, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		t.files[moduleName(file)] = file
		t.deps[moduleName(file)] = strings.Fields(deps)
	}
	// A kernel without the list has nothing to say about what is built in.
	builtin, _ := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	for file := range bytes.Lines(builtin) {
		t.builtin[moduleName(string(bytes.TrimSpace(file)))] = true
	}
	return t, nil
}

// moduleName is a module's name as the kernel has it: no folder, no suffix, underscores.
func moduleName(file string) string {
	name := filepath.Base(file)
	name, _, _ = strings.Cut(name, ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// resolve returns the files to load for the modules, dependencies first, each once; those in loaded are left out and
// what is returned is added to it. Module parameters are returned by file.
func (t *moduleTable) resolve(modules []module, loaded map[string]bool) (files []string, params map[string]string, err error) {
	params = make(map[string]string)
	add := func(file string) {
		if !loaded[file] {
			loaded[file] = true
			files = append(files, file)
		}
	}
	for _, m := range modules {
		name := moduleName(m.name)
		file, ok := t.files[name]
		if !ok {
			if t.builtin[name] {
				continue
			}
			return nil, nil, fmt.Errorf("module %s is missing in %s", m.name, t.dir)
		}
		// modules.dep lists dependencies so that the last has to be loaded first.
		for i := len(t.deps[name]) - 1; i >= 0; i-- {
			add(t.deps[name][i])
		}
		add(file)
		params[file] = m.params
	}
	return files, params, nil
}
