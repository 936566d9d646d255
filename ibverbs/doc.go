// Package ibverbs is Go's view of libibverbs: RDMA devices, memory regions,
// completion queues and queue pairs, on real RNICs and on the kernel's
// software drivers rxe (RoCE v2) and siw (iWARP).
//
// Names follow verbs.h, without prefix and with the object as receiver:
// ibv_alloc_pd is [Device.AllocPD], ibv_post_send is [QP.PostSend], and every
// destroy is Close. A snapshot is a value ([DeviceAttr], [QPAttr], [WC]); an
// object of the kernel's is a pointer ([Device], [PD], [MR], [CQ], [QP]).
//
// Most programs let package rdmacm connect their queue pairs, as iWARP
// demands.
//
// # Ownership
//
// Whoever creates an object closes it. Children hold their parents: a Close
// while children are open changes nothing, and returns an error that is EBUSY
// and names them. Close may be called again, and from several goroutines. An
// object that is forgotten is not destroyed, since a device may still write to
// its memory; [ReportLeaks] tells of those.
//
// Memory that a work request names is the device's until its completion has
// been polled. A posted work request cannot be cancelled: move its QP to the
// error state ([QP.ToError]) and poll the flushed completions, or close the QP.
//
// # Concurrency
//
// All methods may be called from several goroutines. A method that races with
// Close either works or returns an error that is [os.ErrClosed].
//
// # Blocking
//
// Only methods that take a context wait, and they hold no OS thread meanwhile:
// [CQ.Wait], [CQEx.WaitEx], [CompChannel.Wait] and [Device.ReadAsyncEvent] park
// the goroutine in Go's network poller. Close wakes them. [CQ.Spin] burns a
// processor for as long as it is told. [PD.CreateAH] and
// [Device.ResolveEthL2FromGID] hold a thread while a neighbour is asked for its
// address. Everything else returns at once, apart from what the kernel needs
// for it.
//
// # Work requests
//
// [QP.PostSend] and [QP.PostRecv] carry a batch to C in one call. What the QP's
// type, its creation or its sizes do not allow, or some driver would crash on,
// cut short or never complete, is refused before anything of it is posted. A QP
// that was created with [QPInitAttr].SendOps posts through ibv_wr_* and can do
// more; all others post through ibv_post_send.
//
// Each signaled send and each receive that was accepted completes once, as long
// as its QP is open: also what was posted to a QP that had failed, or whose
// connection was about to end, which then completes as flushed. The software
// drivers forget such work requests; they are made up for as soon as this side
// knows of the failure, by a failed completion or [QP.ToError], which package
// rdmacm calls when a connection has ended.
//
// # Datagrams
//
// A UD QP sends each message to an address handle ([AH]), a QP number and a
// Q_Key ([SendWR]), and needs [GRHSize] bytes more in each receive, where the
// message's [GRH] says whence it came. [PD.CreateAHFromWC] and
// [GRH.ReversePath] answer it. A [RecvRing] keeps the receive queue filled.
//
// # Errors
//
// Every error is an [*OpError] that names the C function and the object with
// its ancestry ("rxe0/pd3/qp17"), and unwraps to a [syscall.Errno]. What a
// driver, kernel or rdma-core lacks satisfies [errors.ErrUnsupported]. A
// completion's failure is a [*WCError].
package ibverbs
