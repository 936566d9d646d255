// Command hello sends one message over RDMA, from one end of a connection to
// the other, both in this process.
//
//	hello 10.77.1.1    # an address of a netdev that has an RDMA device
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/rdmacm"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: hello ADDRESS, which has an RDMA device (see: rnic list)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := hello(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func hello(ctx context.Context, host string) error {
	// The receiver has a buffer posted before a connection can bring anything.
	var inbox *ibverbs.MR
	config := rdmacm.ListenConfig{Config: rdmacm.Config{Prepare: func(c *rdmacm.Conn) (err error) {
		if inbox, err = c.PD().AllocMR(4096, ibverbs.AccessLocalWrite, ibverbs.BufferOptions{}); err != nil {
			return err
		}
		c.Own(inbox) // closed with the connection
		_, err = c.QP().PostRecv([]ibverbs.RecvWR{{SGList: []ibverbs.SGE{inbox.SGE(0, 4096)}}})
		return err
	}}}
	listener, err := config.Listen(ctx, host+":0")
	if err != nil {
		return err
	}
	defer listener.Close()

	sent := make(chan error, 1)
	go func() { sent <- send(ctx, listener.Addr().String(), "hello, RDMA") }()

	conn, err := listener.Accept(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var wcs [1]ibverbs.WC
	if _, err := conn.RecvCQ().Wait(ctx, wcs[:]); err != nil {
		return err
	}
	if err := wcs[0].Err(); err != nil {
		return err
	}
	fmt.Printf("%s received %q over %v\n", conn.DeviceName(), inbox.Bytes()[:wcs[0].ByteLen], conn.Transport())
	return <-sent
}

func send(ctx context.Context, address, text string) error {
	var d rdmacm.Dialer
	conn, err := d.DialContext(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	// Short messages go inline: the bytes are copied, and need no registration.
	_, err = conn.QP().PostSend([]ibverbs.SendWR{{
		Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, Inline: []byte(text),
	}})
	if err != nil {
		return err
	}
	var wcs [1]ibverbs.WC
	if _, err := conn.SendCQ().Wait(ctx, wcs[:]); err != nil {
		return err
	}
	return wcs[0].Err()
}
