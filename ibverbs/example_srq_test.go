package ibverbs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
)

// Many connections share their receives: memory grows with the traffic rather
// than with the number of connections. When receives run low the device says
// so by an asynchronous event, and more are posted.
func Example_sharedReceives() {
	if err := sharedReceives(); err != nil {
		fmt.Println(err)
	}
}

// hall is a server's side of many connections.
type hall struct {
	*peer // without a QP: it has one for each guest
	srq   *ibverbs.SRQ
	qps   []*ibverbs.QP
}

const hallReceives, hallLow, hallRoom = 8, 2, 64

func sharedReceives() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev, gid, err := openRoCE()
	if err != nil {
		return err
	}
	defer dev.Close()
	h, err := newHall(dev)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.post(0, hallReceives/2); err != nil {
		return err
	}

	// Three guests say who they are.
	for _, name := range []string{"Ada", "Grace", "Edith"} {
		guest, err := h.admit(gid)
		if err != nil {
			return err
		}
		defer guest.Close()
		if err := guest.send(name); err != nil {
			return err
		}
		if err := h.greet(ctx); err != nil {
			return err
		}
	}

	// Four receives less three are fewer than two: the event has come, once.
	event, err := dev.ReadAsyncEvent(ctx)
	if err != nil {
		return err
	}
	fmt.Println(event.Type, event.SRQ == h.srq)
	if err := h.post(hallReceives/2, hallReceives); err != nil {
		return err
	}
	return h.srq.Arm(hallLow) // asks for it once more
}

func newHall(dev *ibverbs.Device) (*hall, error) {
	p, err := newPeer(dev)
	if err != nil {
		return nil, err
	}
	h := &hall{peer: p}
	h.srq, err = p.pd.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: hallReceives, MaxSGE: 1, Limit: hallLow})
	return h, err
}

// post posts receives: number i is in part i of the memory, and its WRID says
// so.
func (h *hall) post(from, to uint64) error {
	var wrs []ibverbs.RecvWR
	for i := from; i < to; i++ {
		wrs = append(wrs, ibverbs.RecvWR{WRID: i, SGList: []ibverbs.SGE{h.mr.SGE(int(i)*hallRoom, hallRoom)}})
	}
	_, err := h.srq.PostRecv(wrs)
	return err
}

// admit makes a connection, whose QP takes its receives from the SRQ. QPs that
// rdmacm connects do so likewise.
func (h *hall) admit(gid ibverbs.GIDEntry) (*peer, error) {
	qp, err := h.pd.CreateQP(ibverbs.QPInitAttr{
		Type: ibverbs.QPTypeRC, SendCQ: h.cq, RecvCQ: h.cq, SRQ: h.srq,
		Cap: ibverbs.QPCap{MaxSendWR: 4, MaxSendSGE: 1},
	})
	if err != nil {
		return nil, err
	}
	h.qps = append(h.qps, qp)
	guest, err := newPeer(h.dev)
	if err != nil {
		return nil, err
	}
	end := peer{dev: h.dev, qp: qp}
	if err := end.connect(gid.Port, gid, gid.GID, guest.qp.QPN()); err != nil {
		return nil, err
	}
	return guest, guest.connect(gid.Port, gid, gid.GID, qp.QPN())
}

// greet takes one message, whichever connection it came by.
func (h *hall) greet(ctx context.Context) error {
	wc, err := h.next(ctx)
	if err != nil {
		return err
	}
	for i, qp := range h.qps {
		if qp.QPN() == wc.QPN {
			fmt.Printf("guest %d is %s\n", i, h.mr.Bytes()[wc.WRID*hallRoom:][:wc.ByteLen])
		}
	}
	return nil
}

func (h *hall) Close() error {
	for _, qp := range h.qps {
		if err := qp.Close(); err != nil {
			return err
		}
	}
	if err := h.srq.Close(); err != nil {
		return err
	}
	return h.peer.Close()
}
