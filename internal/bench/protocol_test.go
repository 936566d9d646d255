package bench_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/goverbs/goverbs/internal/bench"
	"github.com/goverbs/goverbs/internal/bench/tcpnet"
)

// TestHello refuses what is not this version of rdmabench.
func TestHello(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hello bench.Hello
		want  string
	}{
		{"version", bench.Hello{Program: "rdmabench", Protocol: 99}, "speaks version 99 of the control protocol"},
		{"program", bench.Hello{Program: "iperf", Protocol: bench.ProtocolVersion}, `is "iperf"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, z := controlConn(t)
			srv := bench.Server{}
			served := make(chan error, 1)
			go func() { served <- srv.Serve(t.Context(), z) }()
			if err := bench.WriteMessage(a, bench.Message{Type: "hello", Hello: &tt.hello}); err != nil {
				t.Fatal(err)
			}
			if m, err := bench.ReadMessage(a); err != nil || m.Hello == nil {
				t.Errorf("answer: %+v, %v", m, err)
			}
			if err := <-served; err == nil || !strings.Contains(err.Error(), "the client "+tt.want) {
				t.Errorf("server: %v", err)
			}

			a, z = controlConn(t)
			go func() {
				defer z.Close()
				if _, err := bench.ReadMessage(z); err == nil {
					bench.WriteMessage(z, bench.Message{Type: "hello", Hello: &tt.hello})
				}
			}()
			if _, err := bench.Connect(t.Context(), a, nil, bench.Environment{}); err == nil || !strings.Contains(err.Error(), "the server "+tt.want) {
				t.Errorf("client: %v", err)
			}
		})
	}
}

func TestConnectToSomethingElse(t *testing.T) {
	a, z := controlConn(t)
	go func() {
		io.WriteString(z, "HTTP/1.1 400 Bad Request\r\n\r\n")
		z.Close()
	}()
	if _, err := bench.Connect(t.Context(), a, nil, bench.Environment{}); err == nil || !strings.Contains(err.Error(), "sent nonsense") {
		t.Error(err)
	}
}

// TestOutOfTurn: each of these is refused, and the session is over.
func TestOutOfTurn(t *testing.T) {
	hello := bench.Message{Type: "hello", Hello: &bench.Hello{Program: "rdmabench", Protocol: bench.ProtocolVersion}}
	ready := bench.Message{Type: "ready", Ready: &bench.Ready{ID: 1}}
	for name, messages := range map[string][]bench.Message{
		"no hello":  {ready},
		"two":       {hello, hello},
		"ready":     {hello, ready},
		"finish":    {hello, {Type: "finish", Finish: &bench.Finish{ID: 1}}},
		"no attach": {hello, {Type: "open", Open: &bench.Open{Transport: "tcp", Params: withToken(params(64))}}, ready},
	} {
		t.Run(name, func(t *testing.T) {
			a, z := controlConn(t)
			go io.Copy(io.Discard, a)
			srv := bench.Server{Transports: tcpOnly()}
			for _, m := range messages {
				if err := bench.WriteMessage(a, m); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			if err := srv.Serve(ctx, z); err == nil || !strings.Contains(err.Error(), "out of turn") || ctx.Err() != nil {
				t.Errorf("%v, %v", err, ctx.Err())
			}
		})
	}
}

func withToken(p bench.Params) bench.Params {
	p.Token = strings.Repeat("0", 32)
	return p
}

// TestServerRefuses: a client cannot ask for what a server must not do. The session
// goes on.
func TestServerRefuses(t *testing.T) {
	open := func(name string, p bench.Params) bench.Message {
		return bench.Message{Type: "open", Open: &bench.Open{Transport: name, Params: p}}
	}
	huge := withToken(params(bench.MaxRegion + 1))
	deep := withToken(params(64))
	deep.Depth = bench.MaxDepth + 1
	a, z := controlConn(t)
	srv := bench.Server{Transports: tcpOnly()}
	go srv.Serve(t.Context(), z)
	ask := func(m bench.Message) bench.Message {
		t.Helper()
		if err := bench.WriteMessage(a, m); err != nil {
			t.Fatal(err)
		}
		got, err := bench.ReadMessage(a)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	ask(bench.Message{Type: "hello", Hello: &bench.Hello{Program: "rdmabench", Protocol: bench.ProtocolVersion}})
	for name, m := range map[string]bench.Message{
		"transport": open("carrier-pigeon", withToken(params(64))),
		"memory":    open("tcp", huge),
		"depth":     open("tcp", deep),
		"token":     open("tcp", params(64)),
		"not open":  {Type: "run", Run: &bench.Run{Transport: "tcp"}},
	} {
		if got := ask(m); got.Failed == nil || got.Failed.Error == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	a.Close()
}

// TestToken: a stranger on the data port is not taken for the client.
func TestToken(t *testing.T) {
	p := withToken(params(64))
	ln, err := tcpnet.Transport{}.Listen(t.Context(), p, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		stranger := p
		stranger.Token = strings.Repeat("1", 32)
		for _, p := range []bench.Params{stranger, p} {
			conn, err := tcpnet.Transport{}.Dial(t.Context(), p, ln.Address())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	conn, err := ln.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// FuzzServe: whatever a client says, the server ends with it, and does not crash.
func FuzzServe(f *testing.F) {
	hello := bench.Message{Type: "hello", Hello: &bench.Hello{Program: "rdmabench", Protocol: bench.ProtocolVersion}}
	run := task(bench.OpSend, bench.ModeEvent, 64, 10)
	for _, messages := range [][]bench.Message{
		{hello},
		{hello, {Type: "open", Open: &bench.Open{Transport: "tcp", Params: withToken(params(64))}}, {Type: "close", Close: &bench.Close{Transport: "tcp"}}},
		{hello, {Type: "run", Run: &bench.Run{Transport: "tcp", Task: run}}},
		{hello, {Type: "attach", Attach: &bench.Attach{Transport: "tcp"}}},
	} {
		var w bytes.Buffer
		for _, m := range messages {
			if err := bench.WriteMessage(&w, m); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(w.Bytes())
	}
	f.Add(binary.BigEndian.AppendUint32(nil, 1<<31))
	f.Fuzz(func(t *testing.T, wire []byte) {
		a, z := net.Pipe()
		srv := bench.Server{Transports: tcpOnly()}
		served := make(chan error, 1)
		ctx, cancel := context.WithTimeoutCause(context.Background(), bound, fmt.Errorf("the server hangs"))
		defer cancel()
		go func() { served <- srv.Serve(ctx, z) }()
		go io.Copy(io.Discard, a)
		a.Write(wire)
		a.Close()
		<-served
		if ctx.Err() != nil {
			t.Error(context.Cause(ctx))
		}
	})
}
