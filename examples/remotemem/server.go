package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/rdmacm"
)

// region says where the memory is: it goes to each client as private data,
// with the acceptance.
type region struct {
	addr uint64
	size uint64
	rkey uint32
}

const regionSize = 20

func (r region) bytes() []byte {
	b := binary.BigEndian.AppendUint64(nil, r.addr)
	b = binary.BigEndian.AppendUint64(b, r.size)
	return binary.BigEndian.AppendUint32(b, r.rkey)
}

func parseRegion(b []byte) (region, error) {
	if len(b) < regionSize { // RoCE pads private data with zeros
		return region{}, fmt.Errorf("%d bytes of private data: is that a remotemem server?", len(b))
	}
	return region{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint32(b[16:])}, nil
}

// Server owns the memory. It is registered once, on the device that the first
// client comes in on, and all connections' QPs are on its PD.
type Server struct {
	size     int
	listener *rdmacm.Listener
	cancel   context.CancelFunc
	done     sync.WaitGroup

	mu  sync.Mutex
	dev *ibverbs.Device
	pd  *ibverbs.PD
	mr  *ibverbs.MR
}

// Serve offers size bytes at an address until Close.
func Serve(ctx context.Context, address string, size int) (*Server, error) {
	s := &Server{size: size}
	// InitiatorDepth -1: the server itself reads nothing.
	config := rdmacm.ListenConfig{OnRequest: s.onRequest, Config: rdmacm.Config{Polling: true, InitiatorDepth: -1}}
	var err error
	if s.listener, err = config.Listen(ctx, address); err != nil {
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.done.Go(func() { s.accept(ctx) })
	return s, nil
}

// Addr is where to dial.
func (s *Server) Addr() netip.AddrPort { return s.listener.Addr() }

// onRequest puts a connection on the memory's PD, and tells the client where
// the memory is.
func (s *Server) onRequest(r *rdmacm.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.register(r.DeviceName()); err != nil {
		return err
	}
	r.Config.PD = s.pd
	r.Reply = region{s.mr.Addr(), uint64(s.size), s.mr.RKey()}.bytes()
	return nil
}

func (s *Server) register(device string) (err error) {
	switch {
	case s.mr != nil && s.dev.Name() == device:
		return nil
	case s.mr != nil:
		return fmt.Errorf("the memory is on %s, and the request comes over %s", s.dev.Name(), device)
	}
	if s.dev == nil {
		if s.dev, err = ibverbs.Open(device); err != nil {
			return err
		}
	}
	if s.pd == nil {
		if s.pd, err = s.dev.AllocPD(); err != nil {
			return err
		}
	}
	access := ibverbs.AccessLocalWrite | ibverbs.AccessRemoteRead | ibverbs.AccessRemoteWrite
	s.mr, err = s.pd.AllocMR(s.size, access, ibverbs.BufferOptions{})
	return err
}

// accept keeps each connection until its client has gone.
func (s *Server) accept(ctx context.Context) {
	for {
		conn, err := s.listener.Accept(ctx)
		if err != nil {
			return
		}
		s.done.Go(func() {
			select {
			case <-conn.Done():
			case <-ctx.Done():
			}
			conn.Close()
		})
	}
}

// Close ends all connections and frees the memory.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	// Children go before their parents.
	if s.mr != nil {
		err = errors.Join(err, s.mr.Close())
	}
	if s.pd != nil {
		err = errors.Join(err, s.pd.Close())
	}
	if s.dev != nil {
		err = errors.Join(err, s.dev.Close())
	}
	return err
}
