// Command leak forgets some of C's heap. The lane with AddressSanitizer builds it to see that a leak is found.
package main

// #include <stdlib.h>
import "C"
import "os"

func main() {
	leak()
	// What is left of the pointer on the stack is overwritten by now.
	use(make([]byte, 1<<16))
	os.Exit(0) // as tests end
}

//go:noinline
func leak() { C.calloc(1, 4242) }

//go:noinline
func use(b []byte) {
	for i := range b {
		b[i] = byte(i)
	}
}
