package rdmacm_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
	"github.com/goverbs/goverbs/rdmacm"
)

// smallConfig is what C cmtime asks for: a QP for one work request of one SGE
// each way, one READ each way.
var smallConfig = rdmacm.Config{
	SendDepth: 1, RecvDepth: 1, SendSGE: 1, RecvSGE: 1, Inline: -1,
	InitiatorDepth: 1, ResponderResources: 1,
}

// onOneCQ is smallConfig with one PD and one CQ for all connections, as cmtime
// has them: its first QP's.
func onOneCQ(pd *ibverbs.PD, cq *ibverbs.CQ) rdmacm.Config {
	cfg := smallConfig
	cfg.PD, cfg.SendCQ, cfg.RecvCQ = pd, cq, cq
	return cfg
}

// connectAll makes n connections at once, and when all are there it closes them
// at once, as cmtime does. It tells how long either took.
func connectAll(ctx context.Context, d rdmacm.Dialer, address string, n int) (connect, disconnect time.Duration, err error) {
	conns := make([]*rdmacm.Conn, n)
	start := time.Now()
	err = atOnce(n, func(i int) (err error) {
		conns[i], err = d.DialContext(ctx, address)
		return err
	})
	connect = time.Since(start)
	start = time.Now()
	closeErr := atOnce(n, func(i int) error {
		if conns[i] == nil {
			return nil
		}
		return conns[i].Close()
	})
	return connect, time.Since(start), errors.Join(err, closeErr)
}

// rateServer is a child that accepts on an address and a device of its parent's
// choice, until the parent kills it.
func rateServer(ctx context.Context, args []string) error {
	dev, err := ibverbs.Open(args[1])
	if err != nil {
		return err
	}
	pd, err := dev.AllocPD()
	if err != nil {
		return err
	}
	cq, err := dev.CreateCQ(64, ibverbs.CQOptions{})
	if err != nil {
		return err
	}
	l, err := (&rdmacm.ListenConfig{Config: onOneCQ(pd, cq), HandshakeTimeout: verbstest.Limit}).Listen(ctx, args[0])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		c, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			<-c.Done()
			c.Close()
		}()
	}
}

// cmtimeSteps finds the totals of cmtime's steps: "connect      :      123.45 …".
var cmtimeSteps = regexp.MustCompile(`(?m)^([a-z ]+?) *: +([0-9.]+)`)

// startCmtime starts cmtime's server and waits until it listens. It serves one
// client, and then until it is killed: a second one finds that the first QP's CQ,
// which all share, is gone.
func startCmtime(t testing.TB, target *verbstest.Target) (server *peer, port string) {
	t.Helper()
	port = freePort(t, target.Addr)
	server = startPeer(t, "cmtime", "-b", target.Addr.String(), "-p", port)
	ctx := verbstest.Context(t)
	for {
		out, err := exec.CommandContext(ctx, "rdma", "-j", "resource", "show", "cm_id").Output()
		if err != nil {
			t.Fatalf("rdma resource show cm_id: %v (install iproute2)", err)
		}
		for _, id := range strings.Split(string(out), "}") {
			if strings.Contains(id, `"LISTEN"`) && strings.Contains(id, `"comm":"cmtime"`) {
				return server, port
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// cmtimeTotal runs cmtime, server and client, and adds the client's steps up: they
// follow each other.
func cmtimeTotal(t testing.TB, target *verbstest.Target, n int) (connect, disconnect time.Duration) {
	t.Helper()
	server, port := startCmtime(t, target)
	out := startPeer(t, "cmtime", "-s", target.Addr.String(), "-p", port, "-c", strconv.Itoa(n)).finish(t)
	server.cmd.Process.Kill()
	server.cmd.Wait()
	steps := cmtimeSteps.FindAllStringSubmatch(out, -1)
	if len(steps) < 6 || strings.Contains(out, "error") {
		t.Fatalf("cmtime printed\n%s\nits server\n%s", out, server.out)
	}
	for _, s := range steps {
		ms, err := strconv.ParseFloat(s[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Duration(ms * float64(time.Millisecond))
		if s[1] == "disconnect" || s[1] == "destroy" {
			disconnect += took
		} else {
			connect += took
		}
	}
	return connect, disconnect
}

// BenchmarkConnectionRate makes and ends connections against C cmtime: the same
// number, the same queues, a client and a server process each, in turns.
func BenchmarkConnectionRate(b *testing.B) {
	const n, rounds = 200, 5
	verbstest.EachB(b, func(b *testing.B, target *verbstest.Target) {
		ctx := b.Context()
		allowFiles(b, 8*n+200)
		address := net.JoinHostPort(target.Addr.String(), freePort(b, target.Addr))
		startChild(b, "rate", address, target.Dev.Name())
		d := rdmacm.Dialer{
			Config:  onOneCQ(verbstest.PD(b, target.Dev), verbstest.CQ(b, target.Dev, 64)),
			Timeout: verbstest.Limit, ResolveTimeout: verbstest.Limit,
		}
		for b.Loop() {
			var theirs, ours []float64
			for range rounds {
				connect, disconnect := cmtimeTotal(b, target, n)
				b.Logf("cmtime: connect %v, disconnect %v", connect, disconnect)
				theirs = append(theirs, (connect + disconnect).Seconds())
				connect, disconnect, err := connectAll(ctx, d, address, n)
				if err != nil {
					b.Fatal(err)
				}
				b.Logf("goverbs: connect %v, disconnect %v", connect, disconnect)
				ours = append(ours, (connect + disconnect).Seconds())
			}
			slices.Sort(theirs)
			slices.Sort(ours)
			b.ReportMetric(n/ours[rounds/2], "conns/s")
			b.ReportMetric(n/theirs[rounds/2], "cmtime-conns/s")
			b.ReportMetric(theirs[rounds/2]/ours[rounds/2], "rate-vs-cmtime")
		}
	})
}
