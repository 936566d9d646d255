// Command kv is a key-value store over RDMA messages (SEND and RECV): each
// request is one message, and so is its answer.
//
//	kv serve 10.77.1.1:7400              # an address of a netdev with an RDMA device
//	kv put 10.77.1.1:7400 colour blue
//	kv get 10.77.1.1:7400 colour
//	kv delete 10.77.1.1:7400 colour
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
)

const usage = "usage: kv serve ADDRESS:PORT | get ADDRESS:PORT KEY | put ADDRESS:PORT KEY VALUE | delete ADDRESS:PORT KEY"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	arguments := map[string]int{"serve": 2, "get": 3, "put": 4, "delete": 3}
	if len(args) == 0 || arguments[args[0]] != len(args) {
		return errors.New(usage)
	}
	if args[0] == "serve" {
		s, err := Serve(ctx, args[1])
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "serving at", s.Addr())
		<-ctx.Done()
		return s.Close()
	}
	c, err := Dial(ctx, args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "get":
		var value []byte
		if value, err = c.Get(ctx, args[2]); err == nil {
			fmt.Fprintf(out, "%s\n", value)
		}
	case "put":
		err = c.Put(ctx, args[2], []byte(args[3]))
	case "delete":
		err = c.Delete(ctx, args[2])
	}
	return errors.Join(err, c.Close())
}
