// Package rdmacm makes and ends RDMA connections: librdmacm for Go.
//
// There are two layers. Dialer, ListenConfig, Listener and Conn have the
// manners of package net: they take contexts, establish many connections at
// once, and return errors that errors.Is knows. EventChannel, ID and Event are
// librdmacm itself, asynchronous: each call starts something, and an event
// tells what came of it. The same code runs over RoCE, InfiniBand and iWARP;
// what differs, Conn.Transport tells.
//
// # Ownership
//
// A Conn owns its ID, event channel and QP, and what its Config does not bring
// along: PD, CQs, completion channel, device. Close frees them all. Memory
// regions that the user makes on the connection's own PD go with it if they are
// given to Conn.Own; else Close fails with EBUSY while they are open. In the
// thin layer the user closes IDs before their channel, and a QP that
// ID.CreateQP made whenever its connection has ended.
//
// librdmacm never sees a QP of this package: the rdma_cm_id stays without one,
// and the package takes the QP through its states itself, as the library would
// have done. So the QP can be on any PD of the device.
//
// # Concurrency
//
// Everything here may be used from several goroutines at once. Calls on one ID
// run one after the other.
//
// # Blocking
//
// What waits takes a context, and parks its goroutine in Go's poller: no OS
// thread is held, with one exception. On iWARP the kernel connects TCP inside
// rdma_connect, so that ID.Connect holds a thread until TCP has connected or
// given up. Dialer does not wait for that once its context has ended.
//
// # Errors
//
// Errors are *ibverbs.OpError: the C function, the object, the cause. A
// rejection is a *RejectError with its reason and private data, and satisfies
// syscall.ECONNREFUSED; so does a closed port, on every transport. After Close
// methods return net.ErrClosed. A time that ran out is the context's error, or
// os.ErrDeadlineExceeded where this package set the bound. ErrDisconnected,
// ErrDeviceRemoved and ErrAddrChanged are what ends a connection.
package rdmacm
