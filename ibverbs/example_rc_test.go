package ibverbs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
)

// peer is one end of an RC connection: a QP with memory of its own, on a CQ
// with a completion channel.
type peer struct {
	dev *ibverbs.Device
	ch  *ibverbs.CompChannel
	cq  *ibverbs.CQ
	pd  *ibverbs.PD
	mr  *ibverbs.MR
	qp  *ibverbs.QP
}

func newPeer(dev *ibverbs.Device) (p *peer, err error) {
	p = &peer{dev: dev}
	if p.ch, err = dev.CreateCompChannel(); err != nil {
		return nil, err
	}
	if p.cq, err = dev.CreateCQ(16, ibverbs.CQOptions{Channel: p.ch}); err != nil {
		return nil, err
	}
	if p.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	const access = ibverbs.AccessLocalWrite | ibverbs.AccessRemoteWrite | ibverbs.AccessRemoteRead | ibverbs.AccessRemoteAtomic
	if p.mr, err = p.pd.AllocMR(4096, access, ibverbs.BufferOptions{}); err != nil {
		return nil, err
	}
	p.qp, err = p.pd.CreateQP(ibverbs.QPInitAttr{
		Type: ibverbs.QPTypeRC, SendCQ: p.cq, RecvCQ: p.cq,
		Cap: ibverbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 64},
	})
	return p, err
}

// connect takes the QP to RTS. Two hosts tell each other their GID and QP
// number over TCP, say; package rdmacm does it all.
func (p *peer) connect(port int, gid ibverbs.GIDEntry, peerGID ibverbs.GID, peerQPN uint32) error {
	attr, err := p.dev.QueryPort(port)
	if err != nil {
		return err
	}
	const access = ibverbs.AccessRemoteWrite | ibverbs.AccessRemoteRead | ibverbs.AccessRemoteAtomic
	if err := p.qp.ToInit(ibverbs.QPAttr{Port: uint8(port), AccessFlags: access}); err != nil {
		return err
	}
	if err := p.qp.ToRTR(ibverbs.QPAttr{
		PathMTU: attr.ActiveMTU, DestQPN: peerQPN, MaxDestRDAtomic: 1,
		AH: ibverbs.AHAttr{IsGlobal: true, DGID: peerGID, SGIDIndex: uint8(gid.Index), HopLimit: 64, Port: uint8(port)},
	}); err != nil {
		return err
	}
	return p.qp.ToRTS(ibverbs.QPAttr{Timeout: 14, RetryCnt: 7, RNRRetry: 7, MaxQPRDAtomic: 1})
}

// receive posts the one receive that these examples have at a time.
func (p *peer) receive() error {
	_, err := p.qp.PostRecv([]ibverbs.RecvWR{{SGList: []ibverbs.SGE{p.mr.SGE(0, 64)}}})
	return err
}

func (p *peer) send(text string) error {
	_, err := p.qp.PostSend([]ibverbs.SendWR{{Opcode: ibverbs.WRSend, Inline: []byte(text), Flags: ibverbs.SendSignaled}})
	return err
}

// next waits for one completion.
func (p *peer) next(ctx context.Context) (ibverbs.WC, error) {
	var wcs [1]ibverbs.WC
	if _, err := p.cq.Wait(ctx, wcs[:]); err != nil {
		return wcs[0], err
	}
	return wcs[0], wcs[0].Err()
}

// Close closes children before their parents.
func (p *peer) Close() error {
	for _, object := range []interface{ Close() error }{p.qp, p.mr, p.pd, p.cq, p.ch} {
		if err := object.Close(); err != nil {
			return err
		}
	}
	return nil
}

// openRoCE opens the first device that can connect QPs by hand, with its RoCE
// v2 GID: InfiniBand has others, and iWARP connects through package rdmacm.
func openRoCE() (*ibverbs.Device, ibverbs.GIDEntry, error) {
	infos, err := ibverbs.Devices()
	if err != nil {
		return nil, ibverbs.GIDEntry{}, err
	}
	for _, info := range infos {
		if info.Transport != ibverbs.TransportIB {
			continue
		}
		dev, err := ibverbs.Open(info.Name)
		if err != nil {
			return nil, ibverbs.GIDEntry{}, err
		}
		table, err := dev.GIDTable()
		if err != nil {
			return nil, ibverbs.GIDEntry{}, err
		}
		for _, gid := range table {
			if gid.Type == ibverbs.GIDTypeRoCEv2 && gid.GID.Addr().Is4() {
				return dev, gid, nil
			}
		}
		dev.Close()
	}
	return nil, ibverbs.GIDEntry{}, fmt.Errorf("no RoCE device among %v", infos)
}

// newPair connects two peers on one device, and has a receive posted at each.
func newPair() (dev *ibverbs.Device, a, b *peer, err error) {
	dev, gid, err := openRoCE()
	if err != nil {
		return nil, nil, nil, err
	}
	if a, err = newPeer(dev); err != nil {
		return nil, nil, nil, err
	}
	if b, err = newPeer(dev); err != nil {
		return nil, nil, nil, err
	}
	if err := a.connect(gid.Port, gid, gid.GID, b.qp.QPN()); err != nil {
		return nil, nil, nil, err
	}
	if err := b.connect(gid.Port, gid, gid.GID, a.qp.QPN()); err != nil {
		return nil, nil, nil, err
	}
	for _, p := range []*peer{a, b} {
		if err := p.receive(); err != nil {
			return nil, nil, nil, err
		}
	}
	return dev, a, b, nil
}

// Two RC QPs say hello to each other.
func Example_pingPong() {
	if err := pingPong(); err != nil {
		fmt.Println(err)
	}
}

func pingPong() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev, a, b, err := newPair()
	if err != nil {
		return err
	}
	defer dev.Close()
	defer a.Close()
	defer b.Close()

	if err := a.send("ping"); err != nil {
		return err
	}
	if _, err := a.next(ctx); err != nil { // sent, and acknowledged
		return err
	}
	wc, err := b.next(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("b got %q\n", b.mr.Bytes()[:wc.ByteLen])

	if err := b.send("pong"); err != nil {
		return err
	}
	if _, err := b.next(ctx); err != nil {
		return err
	}
	if wc, err = a.next(ctx); err != nil {
		return err
	}
	fmt.Printf("a got %q\n", a.mr.Bytes()[:wc.ByteLen])
	return nil
}

// One peer counts up a number in the other's memory, which has nothing to do
// for it.
func Example_atomics() {
	if err := atomics(); err != nil {
		fmt.Println(err)
	}
}

func atomics() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev, a, b, err := newPair()
	if err != nil {
		return err
	}
	defer dev.Close()
	defer a.Close()
	defer b.Close()

	at := uint64(128) // a multiple of 8
	for _, wr := range []ibverbs.SendWR{
		{Opcode: ibverbs.WRAtomicFetchAdd, CompareAdd: 5},
		{Opcode: ibverbs.WRAtomicFetchAdd, CompareAdd: 2},
		{Opcode: ibverbs.WRAtomicCmpAndSwp, CompareAdd: 7, Swap: 100},
	} {
		wr.SGList = []ibverbs.SGE{a.mr.SGE(0, 8)} // what was there before
		wr.RemoteAddr, wr.RKey = b.mr.Addr()+at, b.mr.RKey()
		wr.Flags = ibverbs.SendSignaled
		if _, err := a.qp.PostSend([]ibverbs.SendWR{wr}); err != nil {
			return err
		}
		if _, err := a.next(ctx); err != nil {
			return err
		}
		fmt.Printf("%v: %d became %d\n", wr.Opcode, number(a.mr, 0), number(b.mr, int(at)))
	}
	return nil
}
