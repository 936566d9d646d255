package main

import (
	"context"
	"fmt"
	"io"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/rdmacm"
)

// chunk is how much one work request carries.
const chunk = 64 << 10

// Memory is a server's memory, as a client reaches it. It is for one goroutine
// at a time.
type Memory struct {
	conn   *rdmacm.Conn
	remote region
	buf    *ibverbs.MR // what is written or was read
}

// Dial reaches the memory of the server at an address.
func Dial(ctx context.Context, address string) (*Memory, error) {
	m := &Memory{}
	// ResponderResources -1: nobody reads here.
	d := rdmacm.Dialer{Config: rdmacm.Config{ResponderResources: -1, Prepare: m.prepare}}
	conn, err := d.DialContext(ctx, address)
	if err != nil {
		return nil, err
	}
	m.conn = conn
	if m.remote, err = parseRegion(conn.PrivateData()); err != nil {
		conn.Close()
		return nil, err
	}
	return m, nil
}

// prepare registers a buffer. What the transport asks of memory that a READ
// fills differs.
func (m *Memory) prepare(c *rdmacm.Conn) (err error) {
	if m.buf, err = c.PD().AllocMR(chunk, c.Transport().ReadSinkAccess(), ibverbs.BufferOptions{}); err == nil {
		c.Own(m.buf) // closed with the connection
	}
	return err
}

// Size is how much memory there is.
func (m *Memory) Size() uint64 { return m.remote.size }

// Close ends the connection.
func (m *Memory) Close() error { return m.conn.Close() }

// WriteAt writes b at an offset (RDMA WRITE). The write is in the server's memory
// when a later ReadAt returns: the WRITE's own completion does not promise that.
func (m *Memory) WriteAt(ctx context.Context, b []byte, offset uint64) (n int, err error) {
	return m.each(b, offset, func(part []byte, addr uint64) error {
		copy(m.buf.Bytes(), part)
		return m.do(ctx, ibverbs.WRRDMAWrite, len(part), addr)
	})
}

// ReadAt reads into b from an offset (RDMA READ).
func (m *Memory) ReadAt(ctx context.Context, b []byte, offset uint64) (n int, err error) {
	return m.each(b, offset, func(part []byte, addr uint64) error {
		err := m.do(ctx, ibverbs.WRRDMARead, len(part), addr)
		if err == nil {
			copy(part, m.buf.Bytes())
		}
		return err
	})
}

// each goes through b in chunks. Beyond the memory's end it is io.EOF.
func (m *Memory) each(b []byte, offset uint64, fn func(part []byte, addr uint64) error) (n int, err error) {
	if offset > m.remote.size || uint64(len(b)) > m.remote.size-offset {
		return 0, fmt.Errorf("%d bytes at %d of %d: %w", len(b), offset, m.remote.size, io.EOF)
	}
	for n < len(b) {
		part := b[n:min(n+chunk, len(b))]
		if err := fn(part, m.remote.addr+offset+uint64(n)); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// do runs one operation to its end.
func (m *Memory) do(ctx context.Context, op ibverbs.WROpcode, n int, addr uint64) error {
	_, err := m.conn.QP().PostSend([]ibverbs.SendWR{{
		Opcode: op, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{m.buf.SGE(0, n)},
		RemoteAddr: addr, RKey: m.remote.rkey,
	}})
	if err != nil {
		return err
	}
	var wcs [1]ibverbs.WC
	if _, err := m.conn.SendCQ().Wait(ctx, wcs[:]); err != nil {
		// The operation may still come to an end, and use the buffer: it must
		// not be used again.
		m.conn.Disconnect()
		return err
	}
	return wcs[0].Err()
}
