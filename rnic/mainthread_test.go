package rnic_test

import "runtime"

// init keeps the main thread to the main goroutine, which runs no test: a
// thread that enters a network namespace must end with its goroutine, and the
// main thread never does.
func init() { runtime.LockOSThread() }
