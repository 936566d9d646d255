package ibverbs_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goverbs/goverbs/ibverbs"
)

// Many connections share their receives: memory grows with the traffic rather
// than with the number of connections. When receives run low the device says
// so, and more are posted.
func ExampleSRQ() {
	const receives, low, size = 256, 64, 4096
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	dev, err := ibverbs.Open("rxe0")
	check(err)
	pd, err := dev.AllocPD()
	check(err)
	srq, err := pd.CreateSRQ(ibverbs.SRQInitAttr{MaxWR: receives, MaxSGE: 1, Limit: low})
	check(err)
	mr, err := pd.AllocMR(receives*size, ibverbs.AccessLocalWrite, ibverbs.BufferOptions{})
	check(err)
	channel, err := dev.CreateCompChannel()
	check(err)
	cq, err := dev.CreateCQ(receives, ibverbs.CQOptions{Channel: channel})
	check(err)

	// Receive i is in part i of the memory, and its WRID says so.
	recv := func(i uint64) ibverbs.RecvWR {
		return ibverbs.RecvWR{WRID: i, SGList: []ibverbs.SGE{mr.SGE(int(i)*size, size)}}
	}
	post := func(from, to uint64) {
		var wrs []ibverbs.RecvWR
		for i := from; i < to; i++ {
			wrs = append(wrs, recv(i))
		}
		_, err := srq.PostRecv(wrs)
		check(err)
	}

	// Each connection's QP takes its receives from the SRQ. Connect them like
	// any others, or let rdmacm do it: rdmacm.Config has an SRQ too.
	for range 3 {
		qp, err := pd.CreateQP(ibverbs.QPInitAttr{
			Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, SRQ: srq,
			Cap: ibverbs.QPCap{MaxSendWR: 16, MaxSendSGE: 1},
		})
		check(err)
		fmt.Println("to be connected:", qp.QPN())
	}

	// Half of the receives must do until the traffic needs the others.
	post(0, receives/2)
	go func() {
		for {
			event, err := dev.ReadAsyncEvent(ctx)
			check(err)
			if event.Type == ibverbs.EventSRQLimitReached {
				post(receives/2, receives)
				return // the event comes once; SRQ.Arm asks for another
			}
		}
	}()
	for wcs := make([]ibverbs.WC, 16); ; {
		n, err := cq.Wait(ctx, wcs)
		check(err)
		for _, wc := range wcs[:n] {
			check(wc.Err())
			message := mr.Bytes()[wc.WRID*size:][:wc.ByteLen]
			fmt.Printf("QP %d has received %q\n", wc.QPN, message)
			post(wc.WRID, wc.WRID+1)
		}
	}
}
