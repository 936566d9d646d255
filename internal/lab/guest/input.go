package guest

import (
	"io"
	"os"
	"sync"
)

// input passes what the host sends on to the command's standard input, and closes it where the host says that it ends.
type input struct {
	mu    sync.Mutex
	to    *os.File
	got   int64 // bytes that came
	total int64 // bytes that will have come, -1 while that is not known
	shut  bool
}

func newInput(to *os.File) *input { return &input{to: to, total: -1} }

// copy runs until the port fails. When the command does not read any more, the rest is thrown away.
func (in *input) copy(from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		_, _ = in.to.Write(buf[:n]) // EPIPE: nobody reads
		in.mu.Lock()
		in.got += int64(n)
		in.closeAtEnd()
		in.mu.Unlock()
	}
}

// endAfter says that total bytes are all there will be.
func (in *input) endAfter(total int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.total = total
	in.closeAtEnd()
}

func (in *input) closeAtEnd() {
	if in.total >= 0 && in.got >= in.total && !in.shut {
		in.shut = true
		in.to.Close()
	}
}
