package bench

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// everyMessage has one message of each type.
func everyMessage() []Message {
	t := Task{ID: 1, Op: OpRead, Mode: ModeEvent, Kind: KindLatency, Size: 64, Iters: 10, Depth: 1, Seed: 1 << 63, Limit: time.Minute}
	return []Message{
		{Type: "hello", Hello: &Hello{Program: "rdmabench", Protocol: 1, Environment: Environment{Host: "a", CPUs: 2}}},
		{Type: "open", Open: &Open{Transport: "tcp", Params: Params{Depth: 8, Region: 4096, Token: strings.Repeat("a", 32)}}},
		{Type: "listening", Listening: &Listening{Address: "192.0.2.1:1234"}},
		{Type: "attach", Attach: &Attach{Transport: "roce", Info: ConnInfo{Device: "rxe0", ReadDepth: 16}, Memory: json.RawMessage(`{"x":1}`)}},
		{Type: "run", Run: &Run{Transport: "roce", Task: t}},
		{Type: "ready", Ready: &Ready{ID: 1}},
		{Type: "finish", Finish: &Finish{ID: 1, Error: "x"}},
		{Type: "report", Report: &RunReport{ID: 1, Usage: Usage{UserPercent: 99.5}, Verified: Verified{Messages: 1, Bytes: 64}}},
		{Type: "close", Close: &Close{Transport: "tcp"}},
		{Type: "closed", Closed: &Close{Transport: "tcp"}},
		{Type: "failed", Failed: &Failed{Error: "no device"}},
	}
}

func TestMessagesGoThrough(t *testing.T) {
	var wire bytes.Buffer
	for _, m := range everyMessage() {
		if err := WriteMessage(&wire, m); err != nil {
			t.Fatal(err)
		}
	}
	r := iotest.OneByteReader(&wire)
	for _, want := range everyMessage() {
		got, err := ReadMessage(r)
		if err != nil {
			t.Fatalf("%s: %v", want.Type, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", want.Type, diff)
		}
	}
	if _, err := ReadMessage(r); err != io.EOF {
		t.Errorf("at the end: %v, want EOF", err)
	}
}

func frame(body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
}

func TestReadMessageRefuses(t *testing.T) {
	for name, wire := range map[string]string{
		"another protocol": "GET / HTTP/1.1\r\n\r\n",
		"too long":         "\x00\x01\x00\x01" + strings.Repeat("x", 1<<16+1),
		"empty":            frame(""),
		"no JSON":          frame("hello"),
		"no object":        frame("[]"),
		"no type":          frame(`{}`),
		"no part":          frame(`{"type":"hello"}`),
		"another's part":   frame(`{"type":"hello","ready":{"id":1}}`),
		"two parts":        frame(`{"type":"ready","ready":{"id":1},"close":{"transport":"tcp"}}`),
		"unknown type":     frame(`{"type":"shutdown","shutdown":{}}`),
		"unknown field":    frame(`{"type":"ready","ready":{"id":1,"x":2}}`),
		"two values":       frame(`{"type":"ready","ready":{"id":1}}{}`),
		"wrong number":     frame(`{"type":"ready","ready":{"id":-1}}`),
	} {
		if m, err := ReadMessage(strings.NewReader(wire)); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	for name, wire := range map[string]string{"cut head": "\x00\x00", "cut body": "\x00\x00\x00\x09{"} {
		if _, err := ReadMessage(strings.NewReader(wire)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWriteMessageRefuses(t *testing.T) {
	for name, m := range map[string]Message{
		"no part": {Type: "hello"},
		"wrong":   {Type: "hello", Ready: &Ready{}},
		"large":   {Type: "failed", Failed: &Failed{Error: strings.Repeat("x", maxMessage)}},
	} {
		var w bytes.Buffer
		if err := WriteMessage(&w, m); err == nil || w.Len() > 0 {
			t.Errorf("%s: %v, wrote %d bytes", name, err, w.Len())
		}
	}
}

// FuzzReadMessage: whatever comes, there is a message that can be sent again, or an
// error, and no more memory than a message may have.
func FuzzReadMessage(f *testing.F) {
	for _, m := range everyMessage() {
		var w bytes.Buffer
		if err := WriteMessage(&w, m); err != nil {
			f.Fatal(err)
		}
		f.Add(w.Bytes())
	}
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte(frame(`{"type":"run","run":{"task":{"iters":1e99}}}`)))
	f.Fuzz(func(t *testing.T, wire []byte) {
		m, err := ReadMessage(bytes.NewReader(wire))
		if err != nil {
			return
		}
		first := mustWrite(t, m)
		again, err := ReadMessage(bytes.NewReader(first))
		if err != nil {
			t.Fatalf("%q was written and cannot be read: %v", first, err)
		}
		if second := mustWrite(t, again); !bytes.Equal(first, second) {
			t.Errorf("%q became %q", first, second)
		}
	})
}

func mustWrite(t *testing.T, m Message) []byte {
	t.Helper()
	var w bytes.Buffer
	if err := WriteMessage(&w, m); err != nil {
		t.Fatalf("%+v was read and cannot be written: %v", m, err)
	}
	return w.Bytes()
}
