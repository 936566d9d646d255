// Package verbsread lets tests see the C structs that package ibverbs fills in,
// by the names that their fields have in rdma-core's headers. Offsets and sizes
// are what the C compiler says, so that a mistake in a conversion shows even
// where the way back makes the same one.
//
// Only tests import it: they cannot import "C" themselves.
package verbsread

// #cgo pkg-config: libibverbs
// #cgo CFLAGS: -Wall -Wextra
// #include "fields.h"
import "C"

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unsafe"
)

// Size is the size of a struct in C; 0 if the package does not know it.
func Size(name string) int {
	c, free := cString(name)
	defer free()
	return int(C.vr_size(c))
}

// Fields reads all fields of the struct at p: their bytes by their name, such
// as "val.src_ip". It is nil if the package does not know the struct.
func Fields(name string, p unsafe.Pointer) map[string][]byte {
	var fields map[string][]byte
	for _, f := range layout(name) {
		if fields == nil {
			fields = make(map[string][]byte)
		}
		fields[f.name] = C.GoBytes(unsafe.Add(p, f.offset), C.int(f.size))
	}
	return fields
}

// Offset is where the first field whose name begins with prefix is; -1 where
// there is none.
func Offset(name, prefix string) int {
	for _, f := range layout(name) {
		if strings.HasPrefix(f.name, prefix) {
			return f.offset
		}
	}
	return -1
}

// Clear zeroes all fields of the struct at p, and so leaves what is between
// them.
func Clear(name string, p unsafe.Pointer) {
	for _, f := range layout(name) {
		clear(unsafe.Slice((*byte)(unsafe.Add(p, f.offset)), f.size))
	}
}

type field struct {
	name         string
	offset, size int
}

// layout lists a struct's fields in their order.
func layout(name string) (fields []field) {
	c, free := cString(name)
	defer free()
	for i := C.int(0); ; i++ {
		f := C.vr_field(c, i)
		if f == nil {
			return fields
		}
		fields = append(fields, field{C.GoString(f.name), int(f.offset), int(f.size)})
	}
}

// structNames lists the structs that the package knows.
func structNames() (names []string) {
	for i := C.int(0); ; i++ {
		f := C.vr_field(nil, i)
		if f == nil {
			return names
		}
		names = append(names, C.GoString(f._type))
	}
}

// Net16 and Net32 are wanted in network byte order.
type (
	Net16 uint16
	Net32 uint32
)

// Diff says how the struct at p differs from what is wanted of its fields; ""
// where it does not. Numbers are wanted in host byte order and of the size of
// the field, byte arrays as they are, bool as 0 or 1. A field that want leaves
// out must be zero.
func Diff(name string, p unsafe.Pointer, want map[string]any) string {
	fields := Fields(name, p)
	if fields == nil {
		return "no struct " + name
	}
	var diffs []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		got := fields[field]
		bytes := make([]byte, len(got))
		if v, ok := want[field]; ok {
			bytes = encode(v)
		}
		if string(bytes) != string(got) {
			diffs = append(diffs, fmt.Sprintf("%s.%s is %x, want %x", name, field, got, bytes))
		}
	}
	for field := range want {
		if _, ok := fields[field]; !ok {
			diffs = append(diffs, "no field "+name+"."+field)
		}
	}
	return strings.Join(diffs, "\n")
}

func encode(v any) []byte {
	switch v := v.(type) {
	case Net16:
		return binary.BigEndian.AppendUint16(nil, uint16(v))
	case Net32:
		return binary.BigEndian.AppendUint32(nil, uint32(v))
	case string:
		return []byte(v)
	case unsafe.Pointer:
		return encode(uint64(uintptr(v)))
	}
	b, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

func cString(s string) (*C.char, func()) {
	c := C.CString(s)
	return c, func() { C.free(unsafe.Pointer(c)) }
}
