package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/goverbs/goverbs/internal/bench"
)

// defaultPort is where a server listens and a client looks for it.
const defaultPort = 18520

func (a *app) serverCommand() *cobra.Command {
	var addr addresses
	var listen string
	var once, quiet bool
	var controlFD int
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Serve a client on another host",
		Long: `Serve clients on other hosts, one at a time, until Ctrl-C.

A server does what any client asks, and uses up to 512 MiB of memory per transport: run it
where only your own hosts reach it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			transports, err := a.transports(addr)
			if err != nil {
				return err
			}
			s := &bench.Server{Transports: transports, Environment: bench.ReadEnvironment()}
			if controlFD >= 0 {
				return serveFD(cmd.Context(), s, controlFD)
			}
			if !quiet {
				s.Log = func(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }
			}
			return a.serve(cmd.Context(), s, listen, once)
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", ":"+strconv.Itoa(defaultPort), "address and port for clients")
	f.BoolVar(&once, "once", false, "end after the first client")
	f.BoolVar(&quiet, "quiet", false, "say nothing about what clients do")
	f.IntVar(&controlFD, "control-fd", -1, "serve the one client at this descriptor (used by compare)")
	_ = f.MarkHidden("control-fd") // it exists
	addr.register(cmd, "that which the client connected to")
	return cmd
}

// serveFD serves the client that started this process. It ends in silence when that
// client goes: it is the client that has something to say.
func serveFD(ctx context.Context, s *bench.Server, fd int) error {
	file := os.NewFile(uintptr(fd), "control")
	if file == nil {
		return usageError{fmt.Errorf("--control-fd %d is not a descriptor", fd)}
	}
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return usageError{fmt.Errorf("--control-fd %d: %w", fd, err)}
	}
	s.Serve(ctx, conn)
	return nil
}

// serve accepts clients until ctx ends.
func (a *app) serve(ctx context.Context, s *bench.Server, listen string, once bool) error {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "listen" && op.Addr == nil {
			return usageError{fmt.Errorf("--listen %q: %w", listen, op.Err)}
		}
		return err
	}
	defer ln.Close()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	fmt.Fprintf(a.out, "rdmabench server listening on %s\n", ln.Addr())

	clients := &clients{server: s, turn: make(chan struct{}, 1)}
	defer clients.all.Wait()
	served := make(chan error, 1)
	if once {
		clients.ended = func(err error) {
			served <- err
			ln.Close()
		}
	}
	for {
		conn, err := ln.Accept()
		if err != nil {
			select {
			case err = <-served: // and that is why
			default:
			}
			if ctx.Err() != nil {
				return nil // Ctrl-C is how a server ends
			}
			return err
		}
		clients.all.Go(func() { clients.serve(ctx, conn) })
	}
}

// clients are served one at a time: two would measure each other.
type clients struct {
	server *bench.Server
	turn   chan struct{} // holds a token while one is served
	all    sync.WaitGroup
	ended  func(error) // called once, if not nil, when the first client has been served
	first  sync.Once
}

// patience is how long a client waits for the one before it, which may just be
// leaving.
const patience = 2 * time.Second

// serve serves one client, or turns it away.
func (c *clients) serve(ctx context.Context, conn net.Conn) {
	who := conn.RemoteAddr()
	select {
	case c.turn <- struct{}{}:
	case <-time.After(patience):
		c.log("client %s turned away: busy with another", who)
		turnAway(conn)
		return
	}
	c.log("client %s", who)
	err := c.server.Serve(ctx, conn)
	if err != nil {
		c.log("client %s: %v", who, err)
	} else {
		c.log("client %s has left", who)
	}
	<-c.turn
	if c.ended != nil {
		c.first.Do(func() { c.ended(err) })
	}
}

func (c *clients) log(format string, args ...any) {
	if c.server.Log != nil {
		c.server.Log(format, args...)
	}
}

// turnAway tells a client to come again.
func turnAway(conn net.Conn) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	// The client's hello is read, so that closing does not reset the connection
	// before it has the answer.
	if _, err := bench.ReadMessage(conn); err != nil {
		return
	}
	busy := &bench.Failed{Error: "busy with another client: try again later"}
	_ = bench.WriteMessage(conn, bench.Message{Type: "failed", Failed: busy}) // it need not listen
}
