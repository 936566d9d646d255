// Command rdmalab gives any machine RDMA: it runs a command in a virtual machine that has an rxe (RoCE v2) and a siw (iWARP)
// device and otherwise is the host. See docs/lab.md.
package main

import (
	"os"

	"github.com/goverbs/goverbs/internal/lab/guest"
)

func main() {
	if os.Getpid() == 1 && isInit(os.Args) {
		guest.Main()
		return
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
