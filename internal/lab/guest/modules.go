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

// moduleLine is a line of /modules.list: "STAGE FILE [PARAMETERS]".
type moduleLine struct{ stage, file, params string }

// moduleList is all of them, in the order to load.
type moduleList []moduleLine

func readModuleList() (moduleList, error) {
	text, err := os.ReadFile(wire.ModuleList)
	if err != nil {
		return nil, err
	}
	return parseModuleList(string(text)), nil
}

func parseModuleList(text string) []moduleLine {
	var list []moduleLine
	for line := range strings.Lines(text) {
		f := append(strings.SplitN(strings.TrimSpace(line), " ", 3), "")
		if len(f) > 2 {
			list = append(list, moduleLine{stage: f[0], file: f[1], params: f[2]})
		}
	}
	return list
}

// load loads the modules of one stage. One that is loaded already is fine.
func (l moduleList) load(stage string) error {
	for _, m := range l {
		if m.stage != stage {
			continue
		}
		if err := loadModule(filepath.Join(wire.ModulesDir, m.file), m.params); err != nil {
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
