// Package lab gives any machine RDMA: it boots a Debian kernel that ci/kernel prepared in QEMU, shares the host's root
// file system with it read-only, and runs a command there, on an rxe and a siw device, as if it ran on the host.
//
// Run is the whole of it. The guest's side is internal/lab/guest, what both say to each other internal/lab/wire.
package lab
