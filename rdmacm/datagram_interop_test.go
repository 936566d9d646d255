package rdmacm_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// What udaddy and mckey are told to send.
const (
	peerMessages = 10
	peerSize     = 100
)

// udaddyPort is udaddy's, which cannot be changed.
const udaddyPort = 7174

// run starts a C program; wait gives what became of it.
func runPeer(ctx context.Context, name string, args ...string) (wait func() error) {
	args = append(args, "-C", fmt.Sprint(peerMessages), "-S", fmt.Sprint(peerSize))
	result := make(chan error, 1)
	go func() {
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
		}
		result <- err
	}()
	return func() error { return <-result }
}

// takeAll receives a peer's messages, and gives the last one's sender.
func takeAll(t *testing.T, d *rdmacm.Datagram, to netip.Addr) rdmacm.Peer {
	t.Helper()
	var from rdmacm.Peer
	for i := range peerMessages {
		text, r := receive(t, d)
		if len(text) != peerSize || !r.HasImm || r.Imm != r.From.QPN || r.To != to {
			t.Fatalf("message %d: %d bytes, %+v", i, len(text), r)
		}
		from = r.From
	}
	return from
}

// sendAll sends a peer what it waits for: it takes the sender's QP number from
// the immediate data.
func sendAll(t *testing.T, d *rdmacm.Datagram, to rdmacm.Peer) {
	t.Helper()
	for range peerMessages {
		if err := d.SendImm(verbstest.Context(t), bytes.Repeat([]byte("x"), peerSize), d.QPN(), to); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUdaddy is both sides of rdma-core's datagram test program.
func TestUdaddy(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		for _, addr := range []netip.Addr{target.Addr, target.Addr6} {
			address := netip.AddrPortFrom(addr, udaddyPort).String()
			t.Run(fmt.Sprint("our server/", addr), func(t *testing.T) {
				ctx := verbstest.Context(t)
				d, err := (rdmacm.DatagramConfig{}).Listen(ctx, address)
				if err != nil {
					t.Fatal(err)
				}
				verbstest.Close(t, d)
				wait := runPeer(ctx, "udaddy", "-s", addr.String())
				sendAll(t, d, takeAll(t, d, addr))
				if err := wait(); err != nil {
					t.Error(err)
				}
			})
			t.Run(fmt.Sprint("our client/", addr), func(t *testing.T) {
				ctx := verbstest.Context(t)
				d := newDatagram(t, addr, rdmacm.DatagramConfig{})
				wait := runPeer(ctx, "udaddy", "-b", addr.String())
				to, err := d.Lookup(ctx, address, nil)
				for errors.Is(err, syscall.ECONNREFUSED) {
					time.Sleep(20 * time.Millisecond) // it does not listen yet
					to, err = d.Lookup(ctx, address, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				sendAll(t, d, to)
				if from := takeAll(t, d, addr); from.QPN != to.QPN {
					t.Errorf("QP %d answered for QP %d", from.QPN, to.QPN)
				}
				if err := wait(); err != nil {
					t.Error(err)
				}
			})
		}
	}, verbstest.Datagrams)
}

// TestMckey is both sides of rdma-core's multicast test program.
func TestMckey(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		group := netip.MustParseAddr("239.77.1.10")
		args := []string{"-m", group.String(), "-b", target.Addr.String()}
		t.Run("our receiver", func(t *testing.T) {
			ctx := verbstest.Context(t)
			d := newDatagram(t, target.Addr, rdmacm.DatagramConfig{})
			if _, err := d.Join(ctx, group, rdmacm.JoinFullMember); err != nil {
				t.Fatal(err)
			}
			wait := runPeer(ctx, "mckey", append(args, "-s")...)
			takeAll(t, d, group)
			if err := wait(); err != nil {
				t.Error(err)
			}
		})
		t.Run("our sender", func(t *testing.T) {
			ctx := verbstest.Context(t)
			d := newDatagram(t, target.Addr, rdmacm.DatagramConfig{})
			to, err := d.Join(ctx, group, rdmacm.JoinSendOnly)
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"-oL", "mckey", "-C", fmt.Sprint(peerMessages), "-S", fmt.Sprint(peerSize)}, args...)
			cmd := exec.CommandContext(ctx, "stdbuf", args...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			for lines := bufio.NewScanner(out); lines.Scan(); {
				fmt.Fprintln(&said, lines.Text())
				if strings.Contains(lines.Text(), "joined dgid") {
					sendAll(t, d, to)
				}
			}
			if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "data transfers complete") {
				t.Errorf("mckey: %v\n%s", err, said.String())
			}
		})
	}, verbstest.Datagrams)
}
