package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/lab/wire"
)

// Stages in which the initramfs' modules are loaded: what reaches the host first, the rest while the root is mounted.
const (
	stageEarly = "early"
	stageLate  = "late"
)

// moduleList is /modules.list: lines "STAGE FILE [PARAMETERS]", in the order to load.
type moduleList struct{ lines [][]string }

func readModuleList() (*moduleList, error) {
	text, err := os.ReadFile(wire.ModuleList)
	if err != nil {
		return nil, err
	}
	l := new(moduleList)
	for line := range strings.Lines(string(text)) {
		if f := strings.SplitN(strings.TrimSpace(line), " ", 3); len(f) >= 2 {
			l.lines = append(l.lines, f)
		}
	}
	return l, nil
}

// load loads the modules of one stage. One that is loaded already is fine.
func (l *moduleList) load(stage string) error {
	for _, f := range l.lines {
		if f[0] != stage {
			continue
		}
		params := ""
		if len(f) > 2 {
			params = f[2]
		}
		if err := loadModule(filepath.Join(wire.ModulesDir, f[1]), params); err != nil {
			return err
		}
	}
	return nil
}

func loadModule(file, params string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), params, 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load %s: %w", filepath.Base(file), err)
	}
	return nil
}
