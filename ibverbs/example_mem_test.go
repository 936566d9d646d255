package ibverbs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
)

// One peer lets the other write to a part of its memory, by a key that it takes
// back afterwards.
func Example_memoryWindow() {
	if err := memoryWindow(); err != nil {
		fmt.Println(err)
	}
}

func memoryWindow() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev, a, b, err := newPair()
	if err != nil {
		return err
	}
	defer dev.Close()
	defer a.Close()
	defer b.Close()

	const access = ibverbs.AccessLocalWrite | ibverbs.AccessMWBind
	board, err := b.pd.AllocMR(4096, access, ibverbs.BufferOptions{})
	if err != nil {
		return err
	}
	defer board.Close()
	mw, err := b.pd.AllocMW(ibverbs.MWType2)
	if err != nil {
		return err
	}
	defer mw.Close() // before its region, and the QP that it is bound to

	// b binds the window, and sends its address and key in the same batch.
	window := ibverbs.MWBind{MW: mw, MR: board, Addr: board.Addr() + 100, Length: 64, Access: ibverbs.AccessRemoteWrite, RKey: ibverbs.IncRKey(mw.RKey())}
	message := binary.BigEndian.AppendUint64(nil, window.Addr)
	message = binary.BigEndian.AppendUint32(message, window.RKey)
	if err := b.post(ctx,
		ibverbs.SendWR{Opcode: ibverbs.WRBindMW, Bind: &window},
		ibverbs.SendWR{Opcode: ibverbs.WRSend, Inline: message},
	); err != nil {
		return err
	}

	// a writes through it.
	if _, err := a.next(ctx); err != nil {
		return err
	}
	write := ibverbs.SendWR{
		Opcode: ibverbs.WRRDMAWrite, Inline: []byte("a was here"),
		RemoteAddr: binary.BigEndian.Uint64(a.mr.Bytes()), RKey: binary.BigEndian.Uint32(a.mr.Bytes()[8:]),
	}
	if err := a.post(ctx, write); err != nil {
		return err
	}
	fmt.Printf("b reads %q\n", board.Bytes()[100:110])

	// b takes the key back.
	if err := b.post(ctx, ibverbs.SendWR{Opcode: ibverbs.WRLocalInv, InvalidateRKey: mw.RKey()}); err != nil {
		return err
	}
	err = a.post(ctx, write)
	fmt.Println("once more:", errors.Is(err, &ibverbs.WCError{Status: ibverbs.WCStatusRemAccessErr}))
	return nil
}

// post posts work requests, and waits until they are done.
func (p *peer) post(ctx context.Context, wrs ...ibverbs.SendWR) error {
	for i := range wrs {
		wrs[i].Flags |= ibverbs.SendSignaled
	}
	if _, err := p.qp.PostSend(wrs); err != nil {
		return err
	}
	for range wrs {
		if _, err := p.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Memory in huge pages, on the NUMA node that the device is on.
func ExamplePD_AllocMR() {
	dev, err := ibverbs.Open("mlx5_0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	pd, err := dev.AllocPD()
	if err != nil {
		log.Fatal(err)
	}
	defer pd.Close()
	mr, err := pd.AllocMR(64<<20, ibverbs.AccessLocalWrite|ibverbs.AccessRemoteRead, ibverbs.BufferOptions{
		HugePageSize: 2 << 20,
		NUMANodes:    []int{0}, // /sys/class/infiniband/mlx5_0/device/numa_node
	})
	if err != nil {
		log.Fatal(err)
	}
	defer mr.Close()
	copy(mr.Bytes(), "for peers to read")
	fmt.Printf("a peer needs address %#x and key %#x\n", mr.Addr(), mr.RKey())
}
