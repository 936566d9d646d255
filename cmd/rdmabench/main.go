// Command rdmabench measures one workload over RoCE v2, iWARP and TCP, side by
// side. See docs/rdmabench.md.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
