package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// dialTimeout bounds the control connection's start.
const dialTimeout = 10 * time.Second

func (a *app) clientCommand() *cobra.Command {
	var m measureFlags
	cmd := &cobra.Command{
		Use:   "client HOST[:PORT]",
		Short: "Compare the transports against a server on another host",
		Example: `  rdmabench client 192.0.2.7
  rdmabench client storage1:18520 --transports roce,tcp --duration 2s`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := m.plan()
			if err != nil {
				return err
			}
			if err := checkJSON(m.json); err != nil {
				return err
			}
			conn, err := dialControl(cmd.Context(), withPort(args[0]))
			if err != nil {
				return err
			}
			return a.measure(cmd.Context(), conn, plan, m, func(err error) error { return err })
		},
	}
	m.register(cmd)
	return cmd
}

// withPort adds the default port to a host that has none.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(defaultPort))
}

func dialControl(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		return conn, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return nil, fmt.Errorf("no rdmabench server at %s: %w (start \"rdmabench server\" there)", address, err)
}
