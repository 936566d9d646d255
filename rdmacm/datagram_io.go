package rdmacm

import (
	"context"
	"io"

	"github.com/goverbs/goverbs/ibverbs"
)

// turn is a mutex that can be given up waiting for.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for its turn; the function that it returns ends it. A nil turn is
// always free.
func (t turn) take() (done func()) {
	if t == nil {
		return func() {}
	}
	t <- struct{}{}
	return t.done
}

func (t turn) done() { <-t }

// takeContext is take, but ends with ctx.
func (t turn) takeContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits for completions of cq until ctx or the Datagram ends.
func (d *Datagram) wait(ctx context.Context, cq *ibverbs.CQ, wcs []ibverbs.WC) (int, error) {
	if n, err := cq.Poll(wcs); n > 0 || err != nil {
		return n, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	return cq.Wait(ctx, wcs)
}

// explain is the error of a method that failed with err: what ended the
// Datagram, where it has ended.
func (d *Datagram) explain(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if d.ctx.Err() != nil {
		err = d.closedErr()
	} else {
		err = waitErr(ctx, err)
	}
	if opErr, ok := err.(*ibverbs.OpError); ok {
		return opErr
	}
	return wrap(op, d.String(), err)
}

// outbox holds the messages that are on their way.
type outbox struct {
	lock  turn
	mr    *ibverbs.MR
	size  int
	free  []int       // slots of mr
	using []*cachedAH // by slot
	err   error       // of a send that failed: the QP sends no more
}

func (o *outbox) open(d *Datagram) (err error) {
	n := d.cfg.SendDepth
	o.lock, o.size = newTurn(), d.cfg.Size
	o.using = make([]*cachedAH, n)
	for i := range n {
		o.free = append(o.free, n-1-i)
	}
	o.mr, err = d.pd.AllocMR(n*o.size, ibverbs.AccessLocalWrite, ibverbs.BufferOptions{})
	return err
}

// close runs when the QP has gone: nothing is on its way any more.
func (o *outbox) close() error { return closing(o.mr)() }

// reap takes back the slots of sends that have completed. Where none is free it
// waits for one.
func (d *Datagram) reap(ctx context.Context) error {
	o := &d.out
	for {
		var wcs [datagramBatch]ibverbs.WC
		n, err := d.cqs[0].Poll(wcs[:])
		if n == 0 && err == nil && len(o.free) == 0 {
			n, err = d.wait(ctx, d.cqs[0], wcs[:])
		}
		for i := range wcs[:n] {
			slot := int(wcs[i].WRID)
			d.paths.put(o.using[slot])
			o.using[slot] = nil
			o.free = append(o.free, slot)
			if err := wcs[i].Err(); err != nil && o.err == nil {
				o.err = err
			}
		}
		switch {
		case err != nil:
			return err
		case o.err != nil:
			return o.err
		case n < len(wcs) && len(o.free) > 0:
			return nil
		}
	}
}

// Send sends a message to a peer, or to a group: ibv_post_send(3). It copies b,
// and returns when the message is queued; it waits only while SendDepth
// messages are on their way, until ctx ends. The path's first message makes an
// address handle, which on RoCE may take as long as the kernel asks for the
// peer's Ethernet address.
//
// EMSGSIZE means that b is longer than Size.
func (d *Datagram) Send(ctx context.Context, b []byte, to Peer) error {
	return d.explain(ctx, "ibv_post_send", d.send(ctx, b, to, ibverbs.SendWR{Opcode: ibverbs.WRSend}))
}

// SendImm is Send with immediate data, which comes as Received.Imm.
func (d *Datagram) SendImm(ctx context.Context, b []byte, imm uint32, to Peer) error {
	return d.explain(ctx, "ibv_post_send", d.send(ctx, b, to, ibverbs.SendWR{Opcode: ibverbs.WRSendWithImm, ImmData: imm}))
}

// send fills in the rest of wr.
func (d *Datagram) send(ctx context.Context, b []byte, to Peer, wr ibverbs.SendWR) error {
	if d.ctx.Err() != nil {
		return d.closedErr()
	}
	if len(b) > d.cfg.Size {
		return tooLong(len(b), d.cfg.Size)
	}
	path, err := d.paths.get(to.Path)
	if err != nil {
		return err
	}
	if err := d.out.lock.takeContext(ctx); err != nil {
		d.paths.put(path)
		return err
	}
	defer d.out.lock.done()
	err = d.ctx.Err()
	if err == nil {
		err = d.reap(ctx)
	}
	if err != nil {
		d.paths.put(path)
		return err
	}
	o := &d.out
	slot := o.free[len(o.free)-1]
	copy(o.mr.Bytes()[slot*o.size:], b)
	wr.WRID, wr.Flags = uint64(slot), ibverbs.SendSignaled
	wr.AH, wr.RemoteQPN, wr.RemoteQKey = path.ah, to.QPN, to.QKey
	if len(b) > 0 {
		wr.SGList = []ibverbs.SGE{o.mr.SGE(slot*o.size, len(b))}
	}
	if _, err := d.qp.PostSend([]ibverbs.SendWR{wr}); err != nil {
		d.paths.put(path)
		return err
	}
	o.using[slot] = path
	o.free = o.free[:len(o.free)-1]
	return nil
}

// inbox holds the messages that have come.
type inbox struct {
	lock  turn
	ring  *ibverbs.RecvRing
	own   ibverbs.GID
	table []ibverbs.GIDEntry // the port's GIDs that are RoCE's of own, or InfiniBand's
	wcs   [datagramBatch]ibverbs.WC
	have  []ibverbs.WC // of wcs, not received yet
}

func (in *inbox) open(d *Datagram) (err error) {
	in.lock = newTurn()
	if in.own = d.id.LocalGID(); in.own.IsZero() {
		in.own = ibverbs.GIDFromAddr(d.Addr().Addr())
	}
	table, err := d.shared.dev.GIDTable()
	if err != nil {
		return err
	}
	for _, e := range table {
		if e.Port == d.id.PortNum() && (e.GID == in.own && e.Type != ibverbs.GIDTypeRoCEv1 || e.Type == ibverbs.GIDTypeIB) {
			in.table = append(in.table, e)
		}
	}
	in.ring, err = ibverbs.NewRecvRing(d.qp, ibverbs.RecvRingOptions{Buffers: d.cfg.RecvDepth, Size: d.cfg.Size})
	return err
}

func (in *inbox) close() error { return closing(in.ring)() }

// Receive takes the next message, and waits for one until ctx ends. n is the
// message's length. Of a message that is longer than b the rest is lost, and the
// error is io.ErrShortBuffer.
//
// A message to a group comes to its sender too, if the sender has joined it:
// From.QPN is Datagram.QPN then.
func (d *Datagram) Receive(ctx context.Context, b []byte) (n int, r Received, err error) {
	n, r, err = d.receive(ctx, b)
	if err == io.ErrShortBuffer {
		return n, r, err
	}
	return n, r, d.explain(ctx, "ibv_poll_cq", err)
}

func (d *Datagram) receive(ctx context.Context, b []byte) (n int, r Received, err error) {
	if d.ctx.Err() != nil {
		return 0, r, d.closedErr()
	}
	if err := d.in.lock.takeContext(ctx); err != nil {
		return 0, r, err
	}
	defer d.in.lock.done()
	in := &d.in
	if d.ctx.Err() != nil {
		return 0, r, d.closedErr()
	}
	if len(in.have) == 0 {
		got, err := d.wait(ctx, d.cqs[1], in.wcs[:])
		if err != nil {
			return 0, r, err
		}
		in.have = in.wcs[:got]
	}
	wc := in.have[0]
	in.have = in.have[1:]
	message, err := in.ring.Bytes(&wc)
	if err != nil {
		return 0, r, err
	}
	n = copy(b, message)
	r, err = in.describe(d.id.PortNum(), &wc)
	if n < len(message) && err == nil {
		err = io.ErrShortBuffer
	}
	if postErr := in.ring.Repost(&wc); postErr != nil {
		return 0, r, postErr
	}
	return n, r, err
}

// describe tells what a message's completion and header say.
func (in *inbox) describe(port int, wc *ibverbs.WC) (Received, error) {
	r := Received{From: Peer{QPN: wc.SrcQP, QKey: UDPQKey}}
	if wc.Flags&ibverbs.WCWithImm != 0 {
		r.Imm, r.HasImm = wc.ImmData(), true
	}
	if wc.Flags&ibverbs.WCGRH == 0 {
		r.From.Path = ibverbs.AHAttr{DLID: wc.SLID, SL: wc.SL, SrcPathBits: wc.DLIDPathBits, Port: uint8(port)}
		return r, nil
	}
	b, err := in.ring.GRH(wc)
	if err != nil {
		return r, err
	}
	header, err := ibverbs.ParseGRH(b)
	if err != nil {
		return r, err
	}
	r.To = header.DGID.Addr()
	if header.DGID.IsMulticast() {
		// Answer a message to a group from the own address.
		header.DGID = in.own
	}
	r.From.Path, err = header.ReversePath(in.table, port, wc)
	return r, err
}
