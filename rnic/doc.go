// Package rnic finds RDMA network adapters (RNICs), says what they are and how
// they stand, and makes software ones: rxe (RoCE v2) and siw (iWARP) on top of
// any Ethernet device. It is pure Go and needs no cgo, no rdma-core and, for
// reading, no privilege.
//
//	rnics, err := rnic.List()
//
//	err := rnic.AddLink(ctx, rnic.Link{Name: "rxe0", Type: "rxe", Netdev: "eth0"})
//	err = rnic.WaitUsable(ctx, "rxe0")
//
// # Sources
//
// RDMA netlink says which RNICs there are, as rdma(8) does, and sysfs adds what
// it lacks; where a kernel has no RDMA netlink, sysfs says it all. No RDMA at
// all is an empty list and no error. What could not be read is in
// RNIC.Problems and is never taken for empty.
//
// The functions of the package read the machine they run on, in the network
// namespace of the calling thread. The methods of Host read another root, such
// as a container's view of its host's /sys, or a tree that was copied.
//
// # Concurrency and blocking
//
// Everything may be called concurrently; results are values that belong to the
// caller. Only WaitUsable waits, without occupying a thread.
//
// # Errors
//
// Every error is an *OpError, one line that says what to do next.
package rnic
