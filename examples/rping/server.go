package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/rdmacm"
)

// serve answers one client, or with -P all that come.
func (o *options) serve(ctx context.Context) error {
	lc := rdmacm.ListenConfig{
		Config: rdmacm.Config{Prepare: o.prepare},
		OnError: func(peer netip.AddrPort, err error) {
			fmt.Fprintf(o.errOut, "rping: %v: %v\n", peer, err)
		},
	}
	l, err := lc.Listen(ctx, o.address())
	if err != nil {
		return err
	}
	defer l.Close()
	o.debugf("listening on %v", l.Addr())

	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		conn, err := l.Accept(ctx)
		if err != nil {
			if o.persistent && ctx.Err() != nil {
				return nil // interrupted: that is how it ends
			}
			return err
		}
		if !o.persistent {
			return o.answer(ctx, conn)
		}
		clients.Go(func() {
			if err := o.answer(ctx, conn); err != nil {
				fmt.Fprintf(o.errOut, "rping: %v: %v\n", conn.RemoteAddr(), err)
			}
		})
	}
}

// answer serves one client until it disconnects.
func (o *options) answer(ctx context.Context, conn *rdmacm.Conn) (err error) {
	defer func() { err = errors.Join(err, conn.Close()) }()
	defer context.AfterFunc(ctx, func() { conn.Disconnect() })()
	p := conn.UserData().(*peer)
	o.debugf("%v connected over %v (%v)", conn.RemoteAddr(), conn.DeviceName(), conn.Transport())
	for {
		err := p.pong(conn.Context())
		if err != nil && disconnected(conn) {
			fmt.Fprintln(o.errOut, "server DISCONNECT EVENT...")
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// disconnected tells whether a failure is just the client's leaving. What was
// posted is flushed a moment before the event comes.
func disconnected(conn *rdmacm.Conn) bool {
	select {
	case <-conn.Done():
	case <-time.After(time.Second):
	}
	return errors.Is(conn.Err(), rdmacm.ErrDisconnected)
}

// pong READs the client's text and WRITEs it back.
func (p *peer) pong(ctx context.Context) error {
	source, err := p.receive(ctx)
	if err != nil {
		return err
	}
	if source.size > maxSize {
		return fmt.Errorf("the client's buffer has %d bytes, more than %d", source.size, maxSize)
	}
	if err := p.move(ctx, ibverbs.WRRDMARead, source, source.size); err != nil {
		return err
	}
	text := p.data.Bytes()[:source.size]
	if n := bytes.IndexByte(text, 0); n >= 0 {
		text = text[:n]
	}
	if p.verbose {
		fmt.Fprintf(p.out, "server ping data: %s\n", text)
	}
	if err := p.tell(ctx, info{}); err != nil { // go ahead
		return err
	}
	sink, err := p.receive(ctx)
	if err != nil {
		return err
	}
	size := min(uint32(len(text)+1), sink.size)
	if err := p.move(ctx, ibverbs.WRRDMAWrite, sink, size); err != nil {
		return err
	}
	return p.tell(ctx, info{})
}

// move READs into, or WRITEs from, the data buffer.
func (p *peer) move(ctx context.Context, op ibverbs.WROpcode, remote info, size uint32) error {
	p.debugf("%v of %d bytes", op, size)
	return p.do(ctx, ibverbs.SendWR{
		Opcode:     op,
		SGList:     []ibverbs.SGE{p.data.SGE(0, int(size))},
		RemoteAddr: remote.addr,
		RKey:       remote.rkey,
	})
}
