package main

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/rdmacm"
)

// infoSize is the length of every message: the address, key and size of a
// buffer, all big-endian. The server's go-aheads have the same length.
const infoSize = 16

type info struct {
	addr uint64
	rkey uint32
	size uint32
}

func (i info) put(b []byte) {
	binary.BigEndian.PutUint64(b, i.addr)
	binary.BigEndian.PutUint32(b[8:], i.rkey)
	binary.BigEndian.PutUint32(b[12:], i.size)
}

func (i *info) get(b []byte) {
	i.addr = binary.BigEndian.Uint64(b)
	i.rkey = binary.BigEndian.Uint32(b[8:])
	i.size = binary.BigEndian.Uint32(b[12:])
}

// peer is one end of a connection with its buffers.
type peer struct {
	*options
	conn *rdmacm.Conn
	recv *ibverbs.MR // takes one message; the protocol is strictly by turns
	send *ibverbs.MR
	data *ibverbs.MR // what READ and WRITE move
	text *ibverbs.MR // the client's source, which the server READs
}

// prepare registers memory and posts the first receive, before the connection
// is made. The connection owns the memory, and closes it in time.
func (o *options) prepare(c *rdmacm.Conn) error {
	p := &peer{options: o, conn: c}
	c.SetUserData(p)
	// The server's buffer is also the sink of its READ.
	remote := c.Transport().ReadSinkAccess() | ibverbs.AccessRemoteWrite | ibverbs.AccessRemoteRead
	for _, b := range []struct {
		mr     **ibverbs.MR
		size   int
		access ibverbs.Access
	}{
		{&p.recv, infoSize, ibverbs.AccessLocalWrite},
		{&p.send, infoSize, 0},
		{&p.data, maxSize + 1, remote},
		{&p.text, maxSize + 1, remote},
	} {
		mr, err := c.PD().AllocMR(b.size, b.access, ibverbs.BufferOptions{})
		if err != nil {
			return err
		}
		c.Own(mr)
		*b.mr = mr
	}
	return p.postRecv()
}

func (p *peer) postRecv() error {
	_, err := p.conn.QP().PostRecv([]ibverbs.RecvWR{{SGList: []ibverbs.SGE{p.recv.SGE(0, infoSize)}}})
	return err
}

// receive waits for the peer's next message.
func (p *peer) receive(ctx context.Context) (info, error) {
	wc, err := wait(ctx, p.conn.RecvCQ())
	if err != nil {
		return info{}, err
	}
	if wc.ByteLen != infoSize {
		return info{}, fmt.Errorf("received a message of %d bytes, not %d", wc.ByteLen, infoSize)
	}
	var i info
	i.get(p.recv.Bytes())
	p.debugf("received rkey %#x addr %#x len %d", i.rkey, i.addr, i.size)
	return i, p.postRecv()
}

// tell sends a message and waits until its buffer is free again.
func (p *peer) tell(ctx context.Context, i info) error {
	i.put(p.send.Bytes())
	return p.do(ctx, ibverbs.SendWR{
		Opcode: ibverbs.WRSend,
		SGList: []ibverbs.SGE{p.send.SGE(0, infoSize)},
	})
}

// do posts one work request and waits for its completion.
func (p *peer) do(ctx context.Context, wr ibverbs.SendWR) error {
	wr.Flags |= ibverbs.SendSignaled
	if _, err := p.conn.QP().PostSend([]ibverbs.SendWR{wr}); err != nil {
		return err
	}
	_, err := wait(ctx, p.conn.SendCQ())
	return err
}

func wait(ctx context.Context, cq *ibverbs.CQ) (ibverbs.WC, error) {
	var wcs [1]ibverbs.WC
	if _, err := cq.Wait(ctx, wcs[:]); err != nil {
		return wcs[0], err
	}
	return wcs[0], wcs[0].Err()
}
