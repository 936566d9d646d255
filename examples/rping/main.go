// Rping is the RDMA ping of rdma-core, in Go: it speaks the same protocol, so
// that either side may be the C program.
//
// The client advertises memory that holds a text; the server READs it, the
// client advertises a sink, and the server WRITEs the text back there. Each
// step waits for completion events.
//
//	rping -s -a 192.0.2.1 -v             # serve one client
//	rping -c -a 192.0.2.1 -C 10 -v -V    # ping ten times, validate the data
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// The buffer must hold "rdma-ping-2147483647: " with a margin, as in C.
const (
	minSize = 26
	maxSize = 64<<10 - 1
)

type options struct {
	server, client, persistent bool
	addr, source               string
	port, size, count          int
	verbose, validate, debug   bool

	out, errOut io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	o := options{out: out, errOut: errOut}
	if err := o.parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(errOut, "rping:", err)
		}
		return 2
	}
	work := o.ping
	if o.server {
		work = o.serve
	}
	if err := work(ctx); err != nil {
		fmt.Fprintln(errOut, "rping:", err)
		return 1
	}
	return 0
}

// parse reads the command line. Letters may be joined, as in C: -vV.
func (o *options) parse(args []string) error {
	fs := flag.NewFlagSet("rping", flag.ContinueOnError)
	fs.SetOutput(o.errOut)
	fs.BoolVar(&o.server, "s", false, "server side")
	fs.BoolVar(&o.client, "c", false, "client side")
	fs.BoolVar(&o.persistent, "P", false, "persistent server: serve many clients, until interrupted")
	fs.StringVar(&o.addr, "a", "", "`address` to listen on or to connect to")
	fs.StringVar(&o.source, "I", "", "source `address` of the client")
	fs.IntVar(&o.port, "p", 7174, "`port`")
	fs.IntVar(&o.size, "S", 64, "`size` of the ping data in bytes")
	fs.IntVar(&o.count, "C", 0, "number of pings; 0 is for ever")
	fs.BoolVar(&o.verbose, "v", false, "display ping data")
	fs.BoolVar(&o.validate, "V", false, "validate ping data")
	fs.BoolVar(&o.debug, "d", false, "tell each step")
	fs.Bool("q", false, "accepted for compatibility: the QP is always self-created")
	if err := fs.Parse(split(args)); err != nil {
		return err
	}
	switch {
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.server == o.client:
		return errors.New("say -s for the server side or -c for the client side")
	case o.client && o.addr == "":
		return errors.New("the client needs -a address")
	case o.size < minSize || o.size > maxSize:
		return fmt.Errorf("size %d is not from %d to %d", o.size, minSize, maxSize)
	case o.port < 1 || o.port > 65535:
		return fmt.Errorf("port %d is not from 1 to 65535", o.port)
	case o.count < 0:
		return fmt.Errorf("count %d is negative", o.count)
	}
	return nil
}

// split takes joined letters without arguments apart.
func split(args []string) []string {
	var out []string
	for _, a := range args {
		letters, ok := strings.CutPrefix(a, "-")
		if !ok || len(letters) < 2 || strings.Trim(letters, "scPvVdq") != "" {
			out = append(out, a)
			continue
		}
		for _, l := range letters {
			out = append(out, "-"+string(l))
		}
	}
	return out
}

func (o *options) address() string {
	return net.JoinHostPort(o.addr, strconv.Itoa(o.port))
}

func (o *options) debugf(format string, args ...any) {
	if o.debug {
		fmt.Fprintf(o.out, format+"\n", args...)
	}
}
