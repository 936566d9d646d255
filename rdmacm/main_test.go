package rdmacm_test

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

func TestMain(m *testing.M) {
	if child := os.Getenv(childEnv); child != "" {
		os.Exit(runChild(child))
	}
	os.Exit(verbstest.Main(m))
}

// each runs a test on every device, and waits for what it left to the
// background, so that the next leak check sees the truth.
func each(t *testing.T, fn func(*testing.T, *verbstest.Target)) {
	t.Helper()
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		t.Cleanup(rdmacm.WaitBackground)
		fn(t, target)
	})
}

// anyPort is target's address with a port of the kernel's choice.
func anyPort(target *verbstest.Target) string {
	return netip.AddrPortFrom(target.Addr, 0).String()
}

// listen listens on target's address until the test ends.
func listen(t testing.TB, target *verbstest.Target, lc rdmacm.ListenConfig) *rdmacm.Listener {
	t.Helper()
	return listenOn(t, anyPort(target), lc)
}

func listenOn(t testing.TB, address string, lc rdmacm.ListenConfig) *rdmacm.Listener {
	t.Helper()
	l, err := lc.Listen(verbstest.Context(t), address)
	if err != nil {
		t.Fatal(err)
	}
	verbstest.Close(t, l)
	return l
}

// accepted is what a goroutine that accepts comes back with.
type accepted struct {
	conn *rdmacm.Conn
	err  error
}

func acceptOne(ctx context.Context, l *rdmacm.Listener) <-chan accepted {
	result := make(chan accepted, 1)
	go func() {
		conn, err := l.Accept(ctx)
		result <- accepted{conn, err}
	}()
	return result
}

// connect dials l and returns both ends, which the test's end closes.
func connect(t testing.TB, l *rdmacm.Listener, d rdmacm.Dialer) (client, server *rdmacm.Conn) {
	t.Helper()
	ctx := verbstest.Context(t)
	result := acceptOne(ctx, l)
	client, err := d.DialContext(ctx, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	verbstest.Close(t, client)
	a := <-result
	if a.err != nil {
		t.Fatal(a.err)
	}
	verbstest.Close(t, a.conn)
	return client, a.conn
}

// bufSize is the size of an end's buffers.
const bufSize = 4096

// end is what prepare keeps with a connection.
type end struct {
	recv, send *ibverbs.MR
}

// prepare gives a connection buffers and posts a receive.
func prepare(c *rdmacm.Conn) error {
	e := &end{}
	for _, mr := range []**ibverbs.MR{&e.recv, &e.send} {
		var err error
		if *mr, err = c.PD().AllocMR(bufSize, verbstest.AllAccess, ibverbs.BufferOptions{}); err != nil {
			return err
		}
		c.Own(*mr)
	}
	c.SetUserData(e)
	return postRecv(c)
}

func postRecv(c *rdmacm.Conn) error {
	e := c.UserData().(*end)
	_, err := c.QP().PostRecv([]ibverbs.RecvWR{{SGList: []ibverbs.SGE{e.recv.SGE(0, bufSize)}}})
	return err
}

var prepared = rdmacm.Config{Prepare: prepare}

// say sends msg from one end; the other must receive it.
func say(ctx context.Context, from, to *rdmacm.Conn, msg []byte) error {
	out := from.UserData().(*end).send
	copy(out.Bytes(), msg)
	wr := ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{out.SGE(0, len(msg))}}
	if _, err := from.QP().PostSend([]ibverbs.SendWR{wr}); err != nil {
		return err
	}
	for _, cq := range []*ibverbs.CQ{from.SendCQ(), to.RecvCQ()} {
		var wcs [1]ibverbs.WC
		if _, err := cq.Wait(ctx, wcs[:]); err != nil {
			return err
		}
		if err := wcs[0].Err(); err != nil {
			return err
		}
	}
	if got := to.UserData().(*end).recv.Bytes()[:len(msg)]; !slices.Equal(got, msg) {
		return errMismatch
	}
	return postRecv(to)
}

// echo sends a message from the dialing end and another one back.
func echo(ctx context.Context, client, server *rdmacm.Conn, seed int) error {
	msg := make([]byte, 1000)
	verbstest.Pattern(msg, seed)
	if err := say(ctx, client, server, msg); err != nil {
		return err
	}
	verbstest.Pattern(msg, seed+1)
	return say(ctx, server, client, msg)
}

func mustEcho(t testing.TB, client, server *rdmacm.Conn) {
	t.Helper()
	if err := echo(verbstest.Context(t), client, server, 1); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the end of a connection.
func ended(t testing.TB, c *rdmacm.Conn) {
	t.Helper()
	select {
	case <-c.Done():
	case <-verbstest.Context(t).Done():
		t.Fatal("the connection did not end")
	}
}
