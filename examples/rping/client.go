package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/goverbs/goverbs/rdmacm"
)

// ping connects and pings o.count times.
func (o *options) ping(ctx context.Context) (err error) {
	d := rdmacm.Dialer{Config: rdmacm.Config{Prepare: o.prepare}}
	if o.source != "" {
		addr, err := netip.ParseAddr(o.source)
		if err != nil {
			return err
		}
		d.LocalAddr = netip.AddrPortFrom(addr, 0)
	}
	conn, err := d.DialContext(ctx, o.address())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	defer context.AfterFunc(ctx, func() { conn.Disconnect() })()
	o.debugf("connected over %v (%v)", conn.DeviceName(), conn.Transport())

	p := conn.UserData().(*peer)
	for i := 0; o.count == 0 || i < o.count; i++ {
		if err := p.pingOnce(conn.Context(), i); err != nil {
			if ctx.Err() != nil {
				return nil // interrupted: that is how -C 0 ends
			}
			return err
		}
	}
	return nil
}

// pingOnce offers a text to be READ, then a sink that it is written back to.
func (p *peer) pingOnce(ctx context.Context, i int) error {
	text, back := p.text.Bytes()[:p.size], p.data.Bytes()[:p.size]
	fill(text, i)
	clear(back)
	size := uint32(p.size)
	if err := p.tell(ctx, info{p.text.Addr(), p.text.RKey(), size}); err != nil {
		return err
	}
	if _, err := p.receive(ctx); err != nil { // go ahead: the text was read
		return err
	}
	if err := p.tell(ctx, info{p.data.Addr(), p.data.RKey(), size}); err != nil {
		return err
	}
	if _, err := p.receive(ctx); err != nil { // go ahead: it was written back
		return err
	}
	if p.validate && !bytes.Equal(text, back) {
		return errors.New("data mismatch")
	}
	if p.verbose {
		fmt.Fprintf(p.out, "ping data: %s\n", back[:len(back)-1])
	}
	return nil
}

// fill writes the text of ping i: its number, then letters that start one
// later each time, then a NUL.
func fill(text []byte, i int) {
	const first, last = 'A', 'z'
	n := copy(text, fmt.Sprintf("rdma-ping-%d: ", i))
	for j := n; j < len(text); j++ {
		text[j] = byte(first + (i+j-n)%(last-first+1))
	}
	text[len(text)-1] = 0
}
