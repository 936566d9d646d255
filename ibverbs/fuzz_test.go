package ibverbs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// cage is memory that no read may leave at its end: there the process would
// die. It is not Go's, so that bytes in it may look like pointers.
type cage []byte

func newCage(f *testing.F) cage {
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { unix.Munmap(mem) })
	if err := unix.Mprotect(mem[page:], unix.PROT_NONE); err != nil {
		f.Fatal(err)
	}
	return mem[:page]
}

// place gives a C struct that ends where the memory ends, filled with data
// again and again.
func place[C any](mem cage, data []byte) *C {
	room := mem[len(mem)-int(unsafe.Sizeof(*new(C))):]
	clear(room)
	for n := 0; len(data) > 0 && n < len(room); {
		n += copy(room[n:], data)
	}
	return (*C)(unsafe.Pointer(&room[0]))
}

// conversion converts a C struct made of any bytes, and says what is wrong.
type conversion func(mem cage, data []byte) error

// oneWay is a conversion that has no way back. The bytes that Go keeps must be
// the struct's own.
func oneWay[C, G any](from func(*C) G) conversion {
	return func(mem cage, data []byte) error {
		got := from(place[C](mem, data))
		if diff := cmp.Diff(got, from(place[C](mem, data))); diff != "" {
			return errors.New(diff)
		}
		return printable(got)
	}
}

// bothWays is one whose result, as C gets to see it, is the same again.
func bothWays[C, G any](from func(*C) G, to func(G) C) conversion {
	return func(mem cage, data []byte) error {
		got := from(place[C](mem, data))
		c := to(got)
		if diff := cmp.Diff(got, from(&c)); diff != "" {
			return errors.New(diff)
		}
		return printable(got)
	}
}

// byPointer serves functions that take what they convert by pointer.
func byPointer[C, G any](to func(*G) C) func(G) C { return func(g G) C { return to(&g) } }

// printable sees that no String method of a field fails, which fmt would catch.
func printable(v any) error {
	if s := fmt.Sprintf("%+v", v); s == "" || strings.Contains(s, "PANIC") {
		return fmt.Errorf("%T prints as %q", v, s)
	}
	return nil
}

var conversions = map[string]conversion{
	"device attributes":   oneWay(deviceAttrFromC),
	"extended attributes": oneWay(deviceAttrExFromC),
	"raw clock":           oneWay(rawClockFromC),
	"port attributes":     oneWay(portAttrFromC),
	"GID entry":           oneWay(gidEntryFromC),
	"QP attributes":       bothWays(qpAttrFromC, byPointer(qpAttrToC)),
	"QP init attributes":  bothWays(qpInitAttrFromC, byPointer(qpInitAttrToC)),
	"AH attributes":       bothWays(ahAttrFromC, byPointer(ahAttrToC)),
	"SRQ attributes":      bothWays(srqAttrFromC, srqAttrToC),
	"rate limit":          bothWays(rateLimitFromC, rateLimitToC),
	"ECE":                 bothWays(eceFromC, eceToC),
	"completion":          func(mem cage, data []byte) error { return checkWC(place[WC](mem, data)) },
	"extended completion": func(mem cage, data []byte) error {
		wc := place[WCEx](mem, data)
		return checkWC(&WC{WRID: wc.WRID, Status: wc.Status, QPN: wc.QPN, VendorErr: wc.VendorErr, imm: wc.imm})
	},
}

func checkWC(wc *WC) error {
	err := wc.Err()
	if (err == nil) != (wc.Status == WCStatusSuccess) {
		return fmt.Errorf("status %v is error %v", wc.Status, err)
	}
	if err != nil && (!errors.Is(err, &WCError{Status: wc.Status}) || !strings.Contains(err.Error(), wc.Status.String())) {
		return fmt.Errorf("status %v is error %v", wc.Status, err)
	}
	if be := be32(wc.ImmData()); be != wc.InvalidatedRKey() {
		return fmt.Errorf("immediate data %#x of %#x", wc.ImmData(), be)
	}
	return printable(*wc)
}

// FuzzConversions: whatever a driver or the kernel puts into a struct, its
// conversion reads the struct alone, and makes values that print and that
// convert back.
func FuzzConversions(f *testing.F) {
	mem := newCage(f)
	f.Add([]byte{})
	f.Add([]byte{0xff})
	f.Add([]byte{1, 0, 0, 0})
	f.Add([]byte("5.2.1\x00 a longer pattern, of an odd length\x80"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, convert := range conversions {
			if err := convert(mem, data); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Every conversion from C is fuzzed, or part of one that is.
func TestConversionsFuzzed(t *testing.T) {
	parts := []string{
		"deviceInfoFromC", // asks libibverbs
		"gidFromC", "guidFromC", "qpCapFromC",
	}
	this, err := os.ReadFile("fuzz_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("cgo*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (\w+FromC)\(`).FindAllSubmatch(text, -1) {
			found++
			if name := string(m[1]); !slices.Contains(parts, name) && !bytes.Contains(this, []byte("("+name)) {
				t.Errorf("%s: conversions lack %s", file, name)
			}
		}
	}
	if found < len(conversions)/2 {
		t.Errorf("found %d conversions in %v", found, files)
	}
}
