package ibverbs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"

	"github.com/goverbs/goverbs/ibverbs"
)

// A question by UD, and the answer to whoever has asked. Both ends are one
// process here; the one that asks needs the other's address, QP number and Q_Key,
// the one that answers needs nothing but the message.
func Example_datagrams() {
	dev, err := ibverbs.Open("rxe0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	answer, err := ask(context.Background(), dev, netip.MustParseAddr("192.0.2.1"), "who are you?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
}

const (
	port = 1
	qkey = 0x1234
)

// end is a UD QP with all that it needs.
type end struct {
	pd   *ibverbs.PD
	ch   *ibverbs.CompChannel
	cq   *ibverbs.CQ
	qp   *ibverbs.QP
	ring *ibverbs.RecvRing
}

func newEnd(dev *ibverbs.Device) (e *end, err error) {
	e = &end{}
	if e.pd, err = dev.AllocPD(); err != nil {
		return e, err
	}
	if e.ch, err = dev.CreateCompChannel(); err != nil {
		return e, err
	}
	if e.cq, err = dev.CreateCQ(32, ibverbs.CQOptions{Channel: e.ch}); err != nil {
		return e, err
	}
	if e.qp, err = e.pd.CreateQP(ibverbs.QPInitAttr{
		Type: ibverbs.QPTypeUD, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: ibverbs.QPCap{MaxSendWR: 8, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 64},
	}); err != nil {
		return e, err
	}
	if err = e.qp.ToInit(ibverbs.QPAttr{Port: port, QKey: qkey}); err != nil {
		return e, err
	}
	if e.ring, err = ibverbs.NewRecvRing(e.qp, ibverbs.RecvRingOptions{Buffers: 16, Size: 1024}); err != nil {
		return e, err
	}
	return e, errors.Join(e.qp.ToRTR(ibverbs.QPAttr{}), e.qp.ToRTS(ibverbs.QPAttr{}))
}

// close closes children before their parents.
func (e *end) close() error {
	var errs []error
	if e.qp != nil {
		errs = append(errs, e.qp.Close())
	}
	if e.ring != nil {
		errs = append(errs, e.ring.Close())
	}
	if e.cq != nil {
		errs = append(errs, e.cq.Close())
	}
	if e.ch != nil {
		errs = append(errs, e.ch.Close())
	}
	if e.pd != nil {
		errs = append(errs, e.pd.Close())
	}
	return errors.Join(errs...)
}

// send sends a text, and waits until it has gone: the AH must stay open so long.
func (e *end) send(ctx context.Context, ah *ibverbs.AH, qpn uint32, text string) error {
	_, err := e.qp.PostSend([]ibverbs.SendWR{{
		Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, Inline: []byte(text), AH: ah, RemoteQPN: qpn, RemoteQKey: qkey,
	}})
	if err != nil {
		return err
	}
	wcs := make([]ibverbs.WC, 1)
	_, err = e.cq.Wait(ctx, wcs)
	return errors.Join(err, wcs[0].Err())
}

func ask(ctx context.Context, dev *ibverbs.Device, addr netip.Addr, question string) (answer string, err error) {
	client, err := newEnd(dev)
	defer func() { err = errors.Join(err, client.close()) }()
	if err != nil {
		return "", err
	}
	server, err := newEnd(dev)
	defer func() { err = errors.Join(err, server.close()) }()
	if err != nil {
		return "", err
	}

	// The client needs the GID to send from, and the one to send to.
	table, err := dev.GIDTable()
	if err != nil {
		return "", err
	}
	own, err := ibverbs.ChooseGID(table, port, ibverbs.GIDTypeRoCEv2, addr, 0)
	if err != nil {
		return "", err
	}
	ah, err := client.pd.CreateAH(ibverbs.AHAttr{
		DGID: ibverbs.GIDFromAddr(addr), SGIDIndex: uint8(own.Index), IsGlobal: true, Port: port,
	})
	if err != nil {
		return "", err
	}
	defer ah.Close()
	if err := client.send(ctx, ah, server.qp.QPN(), question); err != nil {
		return "", err
	}
	if err := server.reply(ctx); err != nil {
		return "", err
	}

	wcs := make([]ibverbs.WC, 1)
	if _, err := client.cq.Wait(ctx, wcs); err != nil {
		return "", err
	}
	message, err := client.ring.Bytes(&wcs[0])
	if err != nil {
		return "", err
	}
	answer = string(message)
	return answer, client.ring.Repost(&wcs[0])
}

// reply answers one message.
func (e *end) reply(ctx context.Context) error {
	wcs := make([]ibverbs.WC, 1)
	if _, err := e.cq.Wait(ctx, wcs); err != nil {
		return err
	}
	wc := &wcs[0]
	question, err := e.ring.Bytes(wc)
	if err != nil {
		return err
	}
	grh, err := e.ring.GRH(wc)
	if err != nil {
		return err
	}
	back, err := e.pd.CreateAHFromWC(port, wc, grh)
	if err != nil {
		return err
	}
	defer back.Close()
	text := fmt.Sprintf("you asked %q", question)
	return errors.Join(e.send(ctx, back, wc.SrcQP, text), e.ring.Repost(wc))
}
