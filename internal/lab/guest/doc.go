// Package guest is the lab's guest side: rdmalab as /init of the virtual machine. It mounts the host's root file system
// under a writable overlay, loads modules, brings the RDMA links up, runs one command as the host says, and reports how
// it ended. It never returns: the host ends the machine.
package guest
