package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxMessage is the size of every buffer, and so the longest message.
const maxMessage = 8 << 10

// What a request asks for.
const (
	opGet = iota + 1
	opPut
	opDelete
)

// How an answer begins.
const (
	statusOK = iota
	statusNotFound
	statusBadRequest
)

// ErrNotFound is what a key that is not there gives.
var ErrNotFound = errors.New("no such key")

// request is an operation, the key's length in two bytes, the key and the value.
type request struct {
	op    byte
	key   string
	value []byte
}

func (r request) append(b []byte) ([]byte, error) {
	if 3+len(r.key)+len(r.value) > maxMessage {
		return nil, fmt.Errorf("a key of %d bytes and a value of %d: together they have at most %d", len(r.key), len(r.value), maxMessage-3)
	}
	b = binary.BigEndian.AppendUint16(append(b, r.op), uint16(len(r.key)))
	return append(append(b, r.key...), r.value...), nil
}

// parseRequest copies what it gives out of b.
func parseRequest(b []byte) (request, error) {
	if len(b) < 3 || len(b) > maxMessage {
		return request{}, fmt.Errorf("a request of %d bytes", len(b))
	}
	n := int(binary.BigEndian.Uint16(b[1:]))
	rest := b[3:]
	switch {
	case b[0] < opGet || b[0] > opDelete:
		return request{}, fmt.Errorf("a request to do %d", b[0])
	case n > len(rest):
		return request{}, fmt.Errorf("a key of %d bytes in a message of %d", n, len(b))
	}
	return request{b[0], string(rest[:n]), append([]byte(nil), rest[n:]...)}, nil
}

// parseAnswer reads a status and a value.
func parseAnswer(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, errors.New("an empty answer")
	}
	switch b[0] {
	case statusOK:
		return append([]byte(nil), b[1:]...), nil
	case statusNotFound:
		return nil, ErrNotFound
	}
	return nil, fmt.Errorf("the server refuses: %s", b[1:])
}
