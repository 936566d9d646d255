package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DefaultKernel is what Run boots unless told otherwise.
const DefaultKernel = "6.1"

// KnownKernels are those that ci/kernel can prepare.
func KnownKernels() []string { return []string{"6.1", "6.12", "7.3"} }

// infoFormat is the layout of a prepared kernel's folder that this code reads, as ci/kernel writes it.
const infoFormat = "3"

// Kernel is a prepared kernel.
type Kernel struct {
	Version string `json:"version"`         // as the user names it: 6.1
	Release string `json:"release"`         // as uname names it: 6.1.0-57-amd64
	Package string `json:"package"`         // Debian's version: 6.1.192-3
	Built   string `json:"built,omitempty"` // when, in UTC
	Dir     string `json:"dir"`
}

// Image is the file to boot: the uncompressed kernel, which is faster, where ci/kernel could get it.
func (k Kernel) Image() string {
	image := filepath.Join(k.Dir, "vmlinux")
	if _, err := os.Stat(image); err != nil {
		image = filepath.Join(k.Dir, "vmlinuz")
	}
	return image
}

// ModulesDir holds the modules and modprobe's tables.
func (k Kernel) ModulesDir() string { return filepath.Join(k.Dir, "lib", "modules", k.Release) }

// CacheDir is where prepared kernels and what the lab remembers are kept: $XDG_CACHE_HOME/goverbs or ~/.cache/goverbs.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", &Error{What: "no cache folder: " + err.Error(), Hint: "set HOME or XDG_CACHE_HOME"}
	}
	return filepath.Join(dir, "goverbs"), nil
}

// Kernels lists the prepared kernels in cache, known versions first to last.
func Kernels(cache string) ([]Kernel, error) {
	var found []Kernel
	for _, version := range KnownKernels() {
		k, err := readKernel(filepath.Join(cache, "kernels", version))
		switch {
		case err == nil:
			found = append(found, k)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return found, nil
}

// FindKernel returns a prepared kernel. Its errors say how to get one.
func FindKernel(cache, version string) (Kernel, error) {
	known := false
	for _, v := range KnownKernels() {
		known = known || v == version
	}
	if !known {
		return Kernel{}, &Error{
			What: fmt.Sprintf("kernel %q is not known", version),
			Hint: "use one of " + strings.Join(KnownKernels(), ", "),
		}
	}
	k, err := readKernel(filepath.Join(cache, "kernels", version))
	if err != nil {
		what := fmt.Sprintf("kernel %s is not prepared", version)
		if !errors.Is(err, fs.ErrNotExist) {
			what = err.Error()
		}
		return Kernel{}, &Error{What: what, Hint: fmt.Sprintf("run `rdmalab prepare %s` (in a clone of goverbs also: ci/kernel %s)", version, version)}
	}
	return k, nil
}

// readKernel reads what ci/kernel wrote last, so that a kernel which has it is whole.
func readKernel(dir string) (Kernel, error) {
	f, err := os.Open(filepath.Join(dir, "info"))
	if err != nil {
		return Kernel{}, err
	}
	defer f.Close()
	k := Kernel{Dir: dir}
	format := ""
	for s := bufio.NewScanner(f); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), "=")
		switch key {
		case "format":
			format = value
		case "version":
			k.Version = value
		case "release":
			k.Release = value
		case "package":
			k.Package = value
		case "built":
			k.Built = value
		}
	}
	if format != infoFormat || k.Version == "" || k.Release == "" {
		return Kernel{}, fmt.Errorf("the kernel in %s was prepared by another version of goverbs", dir)
	}
	if _, err := os.Stat(k.Image()); err != nil {
		return Kernel{}, fmt.Errorf("the kernel in %s is incomplete, remove that folder", dir)
	}
	return k, nil
}
