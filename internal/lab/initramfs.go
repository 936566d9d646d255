package lab

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cavaliergopher/cpio"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// writeInitramfs writes what a guest with kernel k starts from: init, which is this program, and the modules that it loads.
func writeInitramfs(w io.Writer, k Kernel, init string) error {
	table, err := readModules(k.ModulesDir())
	if err != nil {
		return incomplete(k, err)
	}
	loaded := make(map[string]bool)
	var list bytes.Buffer
	var files []string
	for _, stage := range []struct {
		name    string
		modules []module
	}{{"early", earlyModules}, {"late", lateModules}} {
		found, params, err := table.resolve(stage.modules, loaded)
		if err != nil {
			return incomplete(k, err)
		}
		for _, file := range found {
			fmt.Fprintln(&list, strings.TrimSpace(stage.name+" "+filepath.Base(file)+" "+params[file]))
		}
		files = append(files, found...)
	}
	// /dev/console is in the kernel's own initramfs, which comes first.
	a := &archive{w: cpio.NewWriter(w)}
	a.dir(strings.TrimPrefix(wire.ModulesDir, "/"))
	a.file("init", 0o755, init)
	for _, file := range files {
		a.file(strings.TrimPrefix(filepath.Join(wire.ModulesDir, filepath.Base(file)), "/"), 0o644, filepath.Join(table.dir, file))
	}
	a.add(cpio.Header{Name: strings.TrimPrefix(wire.ModuleList, "/"), Mode: cpio.TypeReg | 0o644, Size: int64(list.Len())}, &list)
	if a.err != nil {
		return incomplete(k, a.err)
	}
	return a.w.Close()
}

func incomplete(k Kernel, err error) error {
	return &Error{
		What: "the prepared kernel is incomplete", Err: err,
		Hint: fmt.Sprintf("remove %s and run `rdmalab prepare %s`", k.Dir, k.Version),
	}
}

// archive writes entries until one fails.
type archive struct {
	w   *cpio.Writer
	err error
}

func (a *archive) dir(name string) { a.add(cpio.Header{Name: name, Mode: cpio.TypeDir | 0o755}, nil) }

func (a *archive) file(name string, mode cpio.FileMode, path string) {
	if a.err != nil {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		a.err = err
		return
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		a.err = err
		return
	}
	a.add(cpio.Header{Name: name, Mode: cpio.TypeReg | mode, Size: st.Size()}, f)
}

func (a *archive) add(h cpio.Header, content io.Reader) {
	if a.err != nil {
		return
	}
	if a.err = a.w.WriteHeader(&h); a.err == nil && content != nil {
		_, a.err = io.Copy(a.w, content)
	}
}
