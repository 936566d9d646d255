package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/goverbs/goverbs/ci"
	"github.com/goverbs/goverbs/internal/lab"
)

func (a *app) kernelsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "kernels",
		Short: "List the prepared kernels, and where they are",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			cache, err := lab.CacheDir()
			if err != nil {
				return err
			}
			kernels, err := lab.Kernels(cache)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(a.stdout)
				e.SetIndent("", "  ")
				return e.Encode(append([]lab.Kernel{}, kernels...))
			}
			if len(kernels) == 0 {
				return fmt.Errorf("no kernel is prepared in %s: run `rdmalab prepare`", cache)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "KERNEL\tRELEASE\tPACKAGE\tPREPARED\tFOLDER")
			for _, k := range kernels {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.Version, k.Release, k.Package, k.Built, k.Dir)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) prepareCommand() *cobra.Command {
	var setup bool
	cmd := &cobra.Command{
		Use:   "prepare [VERSION]",
		Short: "Prepare a kernel: download it from Debian, and build siw",
		Long: `Downloads a Debian kernel and unpacks it into the cache ($XDG_CACHE_HOME/goverbs or
~/.cache/goverbs), and builds siw.ko, which Debian leaves out. Nothing is installed and no privilege
is needed. With --setup it first installs the packages that this and the lab need, as root or through
sudo, after saying which. These are ci/kernel and ci/setup of the goverbs repository.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if setup {
				if err := a.script("ci/setup", ci.Setup, "lab"); err != nil {
					return err
				}
			}
			return a.script("ci/kernel", ci.Kernel, args...)
		},
	}
	cmd.Flags().BoolVar(&setup, "setup", false, "install the packages that the lab needs first")
	return cmd
}

// script runs one of the embedded shell scripts.
func (a *app) script(name, text string, args ...string) error {
	cmd := exec.Command("sh", append([]string{"-c", text, name}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout, a.stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		a.status = 1
		return fmt.Errorf("%s failed (above)", name)
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("sh is missing: %w", err)
	}
	return err
}
