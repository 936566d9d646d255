package rnic

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// attrs holds one netlink message's top-level attributes, the last one of each
// type. nl.ParseRouteAttr is not used: it slices past the end of a message
// whose last attribute lacks its padding.
type attrs map[uint16][]byte

const (
	attrHeader = unix.SizeofRtAttr
	// attrTypeMask is NLA_TYPE_MASK: the two top bits say nested and
	// network byte order.
	attrTypeMask = 0x3fff
)

// parseAttrs splits b into attributes; values alias b.
func parseAttrs(b []byte) (attrs, error) {
	out := attrs{}
	for len(b) >= attrHeader {
		n := int(binary.NativeEndian.Uint16(b))
		if n < attrHeader || n > len(b) {
			return nil, fmt.Errorf("netlink attribute of %d bytes in %d", n, len(b))
		}
		out[binary.NativeEndian.Uint16(b[2:])&attrTypeMask] = b[attrHeader:n]
		b = b[min((n+3)&^3, len(b)):]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%d bytes after the last netlink attribute", len(b))
	}
	return out, nil
}

func (a attrs) has(typ uint16) bool { _, ok := a[typ]; return ok }

// str is the string in attribute typ, without its NUL; "" when absent.
func (a attrs) str(typ uint16) string {
	v, _, _ := bytes.Cut(a[typ], []byte{0})
	return string(v)
}

// num is the unsigned number in attribute typ in whatever width the kernel
// chose; 0 when absent or of a width that is none.
func (a attrs) num(typ uint16) uint64 {
	switch v := a[typ]; len(v) {
	case 1:
		return uint64(v[0])
	case 2:
		return uint64(binary.NativeEndian.Uint16(v))
	case 4:
		return uint64(binary.NativeEndian.Uint32(v))
	case 8:
		return binary.NativeEndian.Uint64(v)
	}
	return 0
}
