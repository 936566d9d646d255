// Command remotemem serves a piece of memory, which others write and read by
// RDMA: the server's processor takes no part in that.
//
//	remotemem serve 10.77.1.1:7500 1048576       # an address of a netdev with an RDMA device, bytes
//	remotemem write 10.77.1.1:7500 100 "hello"   # at offset 100
//	remotemem read  10.77.1.1:7500 100 5
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strconv"
)

const usage = `usage: remotemem serve ADDRESS:PORT BYTES
       remotemem write ADDRESS:PORT OFFSET TEXT
       remotemem read ADDRESS:PORT OFFSET BYTES`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) < 3 {
		return errors.New(usage)
	}
	number, err := strconv.ParseUint(args[2], 10, 62)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, usage)
	}
	switch command := args[0]; {
	case command == "serve" && len(args) == 3:
		s, err := Serve(ctx, args[1], int(number))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "serving %d bytes at %v\n", number, s.Addr())
		<-ctx.Done()
		return s.Close()
	case command == "write" && len(args) == 4:
		m, err := Dial(ctx, args[1])
		if err != nil {
			return err
		}
		_, err = m.WriteAt(ctx, []byte(args[3]), number)
		return errors.Join(err, m.Close())
	case command == "read" && len(args) == 4:
		n, err := strconv.Atoi(args[3])
		if err != nil || n < 0 {
			return errors.New(usage)
		}
		m, err := Dial(ctx, args[1])
		if err != nil {
			return err
		}
		b := make([]byte, n)
		n, err = m.ReadAt(ctx, b, number)
		fmt.Fprintf(out, "%q\n", b[:n])
		return errors.Join(err, m.Close())
	}
	return errors.New(usage)
}
