package verbsnet

import (
	"sync/atomic"
	"unsafe"
)

// A WRITE that nobody is told of shows in memory only. The receiver clears the
// last byte of the place and looks at it until it is not 0, which the last byte of
// no message is. Device and program share the memory, so that both accesses are
// atomic: of the aligned 32-bit word that contains the byte. The word lies within
// the message's slot, which is whole cache lines.

// arrived says whether the last byte of a message of the given size at off has come.
func (c *Conn) arrived(off, size int) bool {
	word, shift := lastWord(c.Sink, off, size)
	return atomic.LoadUint32(word)>>shift&0xff != 0
}

// expect clears the last byte.
func (c *Conn) expect(off, size int) {
	word, shift := lastWord(c.Sink, off, size)
	atomic.StoreUint32(word, atomic.LoadUint32(word)&^(0xff<<shift))
}

// lastWord is the word that the last byte is in, and how far up in it.
func lastWord(region []byte, off, size int) (*uint32, uint) {
	last := off + size - 1
	in := uint(last & 3)
	if bigEndian {
		in = 3 - in
	}
	return (*uint32)(unsafe.Pointer(&region[last&^3])), 8 * in
}

// bigEndian is the machine's byte order.
var bigEndian = func() bool {
	word := uint32(1)
	return *(*byte)(unsafe.Pointer(&word)) == 0
}()
