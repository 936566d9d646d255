package rdmacm

import "net/netip"

// Request is a peer's request for a connection, as ListenConfig.OnRequest sees
// it before anything has been set up for it.
type Request struct {
	// Config says how the connection will be set up; OnRequest may change it,
	// to choose a PD by device, for example.
	Config Config
	// Reply is the private data to accept with: ListenConfig.PrivateData, or
	// what OnRequest puts in its place. RoCE carries 196 bytes.
	Reply []byte

	id    *ID
	param ConnParam
}

// PrivateData is what the peer sent along. RoCE and InfiniBand pad it with
// zeros to 56 bytes.
func (r *Request) PrivateData() []byte { return r.param.PrivateData }

// Param are the parameters that the peer asks for; see Event.Param.
func (r *Request) Param() ConnParam { return r.param }

// LocalAddr is the address that the peer asked for.
func (r *Request) LocalAddr() netip.AddrPort { return r.id.LocalAddr() }

// RemoteAddr is the peer's address.
func (r *Request) RemoteAddr() netip.AddrPort { return r.id.PeerAddr() }

// DeviceName is the RDMA device that the request came in on.
func (r *Request) DeviceName() string { return r.id.DeviceName() }
