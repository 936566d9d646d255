package main

import (
	"context"
	"net/netip"
	"sync"

	"github.com/goverbs/goverbs/rdmacm"
)

// Server keeps the values.
type Server struct {
	listener *rdmacm.Listener
	cancel   context.CancelFunc
	done     sync.WaitGroup

	mu     sync.RWMutex
	values map[string][]byte
}

// Serve takes requests at an address until Close.
func Serve(ctx context.Context, address string) (*Server, error) {
	s := &Server{values: make(map[string][]byte)}
	lc := rdmacm.ListenConfig{Config: config()}
	var err error
	if s.listener, err = lc.Listen(ctx, address); err != nil {
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.done.Go(func() { s.accept(ctx) })
	return s, nil
}

// Addr is where to dial.
func (s *Server) Addr() netip.AddrPort { return s.listener.Addr() }

// Close ends all connections.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.done.Wait()
	return err
}

func (s *Server) accept(ctx context.Context) {
	for {
		conn, err := s.listener.Accept(ctx)
		if err != nil {
			return
		}
		s.done.Go(func() {
			defer conn.Close()
			s.serve(ctx, conn.UserData().(*messages))
		})
	}
}

// serve answers a client until it has gone.
func (s *Server) serve(ctx context.Context, m *messages) {
	for {
		var answer []byte
		err := m.receive(ctx, func(b []byte) error {
			answer = s.answer(b)
			return nil
		})
		if err == nil {
			err = m.send(ctx, func(b []byte) ([]byte, error) { return append(b, answer...), nil })
		}
		if err != nil {
			return // flushed: the client has disconnected, or ctx has ended
		}
	}
}

func (s *Server) answer(b []byte) []byte {
	r, err := parseRequest(b)
	if err != nil {
		return append([]byte{statusBadRequest}, err.Error()...)
	}
	if r.op == opGet {
		s.mu.RLock()
		defer s.mu.RUnlock()
	} else {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	value, ok := s.values[r.key]
	switch {
	case r.op == opPut:
		s.values[r.key] = r.value
		return []byte{statusOK}
	case !ok:
		return []byte{statusNotFound}
	case r.op == opDelete:
		delete(s.values, r.key)
		return []byte{statusOK}
	}
	return append([]byte{statusOK}, value...)
}
