package rdmacm_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/rdmacm"
)

// register runs before the connection is made: the first message finds a
// receive.
func register(c *rdmacm.Conn) error {
	mr, err := c.PD().AllocMR(4096, ibverbs.AccessLocalWrite, ibverbs.BufferOptions{})
	if err != nil {
		return err
	}
	c.Own(mr)         // closed with the connection, in time
	c.SetUserData(mr) // found again with c.UserData
	_, err = c.QP().PostRecv([]ibverbs.RecvWR{{SGList: []ibverbs.SGE{mr.SGE(0, 4096)}}})
	return err
}

func ExampleDialer() {
	d := rdmacm.Dialer{Config: rdmacm.Config{Prepare: register}, Timeout: 5 * time.Second}
	conn, err := d.DialContext(context.Background(), "192.0.2.1:7471")
	if errors.Is(err, syscall.ECONNREFUSED) {
		fmt.Println("nobody is there:", err)
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	var wcs [1]ibverbs.WC
	if _, err := conn.RecvCQ().Wait(conn.Context(), wcs[:]); err != nil {
		fmt.Println("the connection ended:", conn.Err())
		return
	}
	received := conn.UserData().(*ibverbs.MR).Bytes()[:wcs[0].ByteLen]
	fmt.Printf("%s over %v\n", received, conn.Transport())
}

func ExampleListenConfig() {
	lc := rdmacm.ListenConfig{
		Config: rdmacm.Config{Prepare: register},
		OnRequest: func(r *rdmacm.Request) error {
			if r.RemoteAddr().Addr().IsLinkLocalUnicast() {
				return &rdmacm.RefuseError{PrivateData: []byte("come in through the front door")}
			}
			return nil
		},
		OnError: func(peer netip.AddrPort, err error) { fmt.Println(peer, err) },
	}
	ctx := context.Background()
	l, err := lc.Listen(ctx, ":7471")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	for {
		conn, err := l.Accept(ctx)
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			<-conn.Done() // serve until the peer leaves
		}()
	}
}

func ExampleEventChannel() {
	resolve := func(ctx context.Context, dst netip.AddrPort) (device string, err error) {
		ch, err := rdmacm.CreateEventChannel()
		if err != nil {
			return "", err
		}
		defer ch.Close()
		id, err := ch.CreateID(rdmacm.PortSpaceTCP)
		if err != nil {
			return "", err
		}
		defer id.Close()
		if err := id.ResolveAddr(netip.AddrPort{}, dst, 2*time.Second); err != nil {
			return "", err
		}
		ev, err := ch.GetEvent(ctx)
		if err != nil {
			return "", err
		}
		return id.DeviceName(), ev.Err()
	}
	fmt.Println(resolve(context.Background(), netip.MustParseAddrPort("192.0.2.1:7471")))
}
