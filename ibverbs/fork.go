package ibverbs

// ForkInit prepares libibverbs for a process that forks: ibv_fork_init(3).
// Call it before any other function, if at all.
//
// Go programs need it only where C code of theirs calls fork(2) and goes on
// without exec: os/exec starts its child without letting it run on the parent's
// memory. Since Linux 5.12 nobody needs it (ForkUnneeded).
func ForkInit() error { return wrap("ibv_fork_init", "", forkInit()) }

// IsForkInitialized tells whether fork support is on:
// ibv_is_fork_initialized(3).
func IsForkInitialized() ForkStatus { return forkStatus() }
