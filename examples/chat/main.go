// Command chat talks to all who take part in a multicast group, by RDMA
// datagrams. What is typed goes to everybody, each line one message.
//
//	chat 10.77.1.1 239.1.2.3 ann    # an address of a netdev with an RDMA device, a group, a name
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"os/signal"

	"github.com/goverbs/goverbs/rdmacm"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: chat ADDRESS GROUP NAME (for addresses see: rnic list)")
	}
	group, err := netip.ParseAddr(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := chat(ctx, os.Args[1], group, os.Args[3], os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// chat takes part until in ends or ctx does.
func chat(ctx context.Context, host string, group netip.Addr, name string, in io.Reader, out io.Writer) (err error) {
	d, err := rdmacm.DatagramConfig{}.Listen(ctx, net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	// Closing leaves the group, and ends hear.
	heard := make(chan error, 1)
	defer func() {
		err = errors.Join(err, d.Close(), <-heard)
	}()
	everybody, err := d.Join(ctx, group, rdmacm.JoinFullMember)
	if err != nil {
		heard <- nil
		return err
	}
	go func() { heard <- hear(ctx, d, out) }()
	fmt.Fprintf(out, "* in %v over %s\n", group, d.DeviceName())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		// A line that is longer than a packet gives EMSGSIZE.
		if err := d.Send(ctx, []byte(name+": "+lines.Text()), everybody); err != nil {
			return err
		}
	}
	return nil
}

// hear prints what the others say.
func hear(ctx context.Context, d *rdmacm.Datagram, out io.Writer) error {
	b := make([]byte, d.Size())
	for {
		n, r, err := d.Receive(ctx, b)
		switch {
		case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case r.From.QPN == d.QPN() && r.From.Addr() == d.Addr().Addr():
			continue // our own words come back
		}
		fmt.Fprintf(out, "[%v] %s\n", r.From.Addr(), b[:n])
	}
}
