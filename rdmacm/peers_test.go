package rdmacm_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// The C programs of rdmacm-utils as peers. rping is examples/rping's to test.

// freePort gives a port of addr that nobody listens on.
func freePort(t testing.TB, addr netip.Addr) string {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// peer is a C program that runs.
type peer struct {
	cmd *exec.Cmd
	out *strings.Builder
}

// startPeer starts a C program; the test's end kills it if it still runs.
func startPeer(t testing.TB, name string, args ...string) *peer {
	t.Helper()
	p := &peer{exec.CommandContext(verbstest.Context(t), name, args...), new(strings.Builder)}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%v (install rdmacm-utils)", err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
	})
	return p
}

// finish waits for the program, which must succeed.
func (p *peer) finish(t testing.TB) string {
	t.Helper()
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", p.cmd.Args, err, p.out)
	}
	return p.out.String()
}

// dialServer dials a program that may not listen yet.
func dialServer(ctx context.Context, d rdmacm.Dialer, address string) (*rdmacm.Conn, error) {
	for {
		c, err := d.DialContext(ctx, address)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return c, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

const (
	matoseConns    = 4
	matoseMessages = 10
	matoseSize     = 100
)

// matose is one connection's buffers in ucmatose's exchange.
type matose struct{ recv, send *ibverbs.MR }

// prepareMatose posts a receive for each of the peer's messages.
func prepareMatose(c *rdmacm.Conn) error {
	m := &matose{}
	for _, mr := range []**ibverbs.MR{&m.recv, &m.send} {
		var err error
		if *mr, err = c.PD().AllocMR(matoseMessages*matoseSize, ibverbs.AccessLocalWrite, ibverbs.BufferOptions{}); err != nil {
			return err
		}
		c.Own(*mr)
	}
	c.SetUserData(m)
	for i := range matoseMessages {
		if _, err := c.QP().PostRecv([]ibverbs.RecvWR{{SGList: []ibverbs.SGE{m.recv.SGE(i*matoseSize, matoseSize)}}}); err != nil {
			return err
		}
	}
	return nil
}

// matoseSend sends the messages, and sees them complete.
func matoseSend(ctx context.Context, c *rdmacm.Conn) error {
	m := c.UserData().(*matose)
	for i := range matoseMessages {
		wr := ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{m.send.SGE(i*matoseSize, matoseSize)}}
		if _, err := c.QP().PostSend([]ibverbs.SendWR{wr}); err != nil {
			return err
		}
	}
	return succeed(ctx, c.SendCQ(), matoseMessages, 0)
}

// matoseRecv takes the peer's messages.
func matoseRecv(ctx context.Context, c *rdmacm.Conn) error {
	return succeed(ctx, c.RecvCQ(), matoseMessages, matoseSize)
}

// succeed waits for n completions that must be successful; size is that of
// messages received, 0 for sends.
func succeed(ctx context.Context, cq *ibverbs.CQ, n, size int) error {
	for n > 0 {
		wcs := make([]ibverbs.WC, n)
		got, err := cq.Wait(ctx, wcs)
		if err != nil {
			return err
		}
		for _, wc := range wcs[:got] {
			if err := wc.Err(); err != nil {
				return err
			}
			if size > 0 && int(wc.ByteLen) != size {
				return fmt.Errorf("received %d bytes, want %d", wc.ByteLen, size)
			}
		}
		n -= got
	}
	return nil
}

var (
	matoseConfig = rdmacm.Config{SendDepth: matoseMessages, RecvDepth: matoseMessages, Prepare: prepareMatose}
	matoseArgs   = []string{"-c", strconv.Itoa(matoseConns), "-C", strconv.Itoa(matoseMessages), "-S", strconv.Itoa(matoseSize)}
)

// TestUcmatose exchanges messages with C ucmatose in both roles. Its server
// sends first, its client answers, and its server disconnects.
func TestUcmatose(t *testing.T) {
	each(t, func(t *testing.T, target *verbstest.Target) {
		t.Run("server", func(t *testing.T) {
			ctx := verbstest.Context(t)
			port := freePort(t, target.Addr)
			c := startPeer(t, "ucmatose", append(matoseArgs, "-b", target.Addr.String(), "-p", port)...)
			var conns [matoseConns]*rdmacm.Conn
			for i := range conns {
				conn, err := dialServer(ctx, rdmacm.Dialer{Config: matoseConfig}, net.JoinHostPort(target.Addr.String(), port))
				if err != nil {
					t.Fatal(err)
				}
				verbstest.Close(t, conn)
				conns[i] = conn
			}
			err := atOnce(matoseConns, func(i int) error {
				return errors.Join(matoseRecv(ctx, conns[i]), matoseSend(ctx, conns[i]))
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, conn := range conns {
				ended(t, conn)
				if !errors.Is(conn.Err(), rdmacm.ErrDisconnected) {
					t.Errorf("ended with %v, want ErrDisconnected", conn.Err())
				}
			}
			c.finish(t)
		})
		t.Run("client", func(t *testing.T) {
			ctx := verbstest.Context(t)
			l := listen(t, target, rdmacm.ListenConfig{Config: matoseConfig})
			port := strconv.Itoa(int(l.Addr().Port()))
			c := startPeer(t, "ucmatose", append(matoseArgs, "-s", target.Addr.String(), "-p", port)...)
			var conns [matoseConns]*rdmacm.Conn
			for i := range conns {
				conn, err := l.Accept(ctx)
				if err != nil {
					t.Fatal(err)
				}
				verbstest.Close(t, conn)
				conns[i] = conn
			}
			err := atOnce(matoseConns, func(i int) error {
				return errors.Join(matoseSend(ctx, conns[i]), matoseRecv(ctx, conns[i]), conns[i].Close())
			})
			if err != nil {
				t.Fatal(err)
			}
			c.finish(t)
		})
	})
}

// TestCmtime connects with C cmtime in both roles.
func TestCmtime(t *testing.T) {
	const n = 32
	each(t, func(t *testing.T, target *verbstest.Target) {
		t.Run("server", func(t *testing.T) {
			ctx := verbstest.Context(t)
			server, port := startCmtime(t, target)
			address := net.JoinHostPort(target.Addr.String(), port)
			if _, _, err := connectAll(ctx, rdmacm.Dialer{Config: smallConfig}, address, n); err != nil {
				t.Fatalf("%v\ncmtime: %s", err, server.out)
			}
		})
		t.Run("client", func(t *testing.T) {
			ctx := verbstest.Context(t)
			l := listen(t, target, rdmacm.ListenConfig{Config: smallConfig})
			port := strconv.Itoa(int(l.Addr().Port()))
			c := startPeer(t, "cmtime", "-s", target.Addr.String(), "-p", port, "-c", strconv.Itoa(n))
			for range n {
				conn, err := l.Accept(ctx)
				if err != nil {
					t.Fatal(err)
				}
				verbstest.Close(t, conn)
				defer func() {
					ended(t, conn)
					if !errors.Is(conn.Err(), rdmacm.ErrDisconnected) {
						t.Errorf("ended with %v, want ErrDisconnected", conn.Err())
					}
				}()
			}
			if out := c.finish(t); strings.Contains(out, "error") {
				t.Errorf("cmtime: %s", out)
			}
		})
	})
}
