package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/goverbs/goverbs/rnic"
)

func addCommand(h host) *cobra.Command {
	var l rnic.Link
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "add NAME --type rxe|siw --netdev DEV",
		Short: "Add a software RNIC on top of a network device",
		Long: `Add a software RNIC: rxe speaks RoCE v2, siw iWARP. It needs root. Where that very
link is there already, nothing changes and the exit status is 0.

Then wait until the link is usable: its port is ACTIVE and each address of the
netdev has its GID. If it is not in time, the link stays and the exit status is 1.`,
		Example: `  rnic add rxe0 --type rxe --netdev eth0
  rnic add siw0 --type siw --netdev eth0 --wait 0`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			l.Name = args[0]
			switch {
			case l.Type != "rxe" && l.Type != "siw":
				return usageError{fmt.Errorf("--type must be rxe or siw, not %q", l.Type)}
			case l.Netdev == "":
				return usageError{errors.New("--netdev is needed: the network device below the link")}
			case wait < 0:
				return usageError{fmt.Errorf("--wait must not be negative, as %v is", wait)}
			}
			if err := h.AddLink(cmd.Context(), l); err != nil {
				return err
			}
			if wait == 0 {
				return nil
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			err := h.WaitUsable(ctx, l.Name)
			var op *rnic.OpError
			if errors.Is(err, context.DeadlineExceeded) && errors.As(err, &op) {
				return fmt.Errorf("%s is added, but not usable after %v: %s", l.Name, wait, op.Hint)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&l.Type, "type", "", "rxe (RoCE v2) or siw (iWARP)")
	cmd.Flags().StringVar(&l.Netdev, "netdev", "", "network device that the link sends through")
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Second, "how long to wait until the link is usable; 0 does not wait")
	return cmd
}

func delCommand(h host) *cobra.Command {
	return &cobra.Command{
		Use:   "del NAME...",
		Short: "Delete software RNICs",
		Long: `Delete software RNICs (rxe, siw). It needs root. One that is not there is no
failure. Programs that use the RNIC lose it at once.`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var failed error
			for _, name := range args {
				if err := h.DelLink(cmd.Context(), name); err != nil {
					complain(cmd.ErrOrStderr(), err)
					failed = errReported
				}
			}
			return failed
		},
	}
}
