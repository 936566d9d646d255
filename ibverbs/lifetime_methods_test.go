package ibverbs_test

import (
	"context"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// otherFirst are methods that need what typical does not have, an object which
// no device here can create above all: what they say of its lack comes first.
var otherFirst = map[string]bool{"CreateFlowActionESP": true, "CreateRWQIndTable": true, "RegBufMR": true, "RegDMMR": true}

// Every method that can fail says os.ErrClosed once its object is closed,
// whatever its name: a new one is tested as it comes. The others are accessors
// and must do without the object.
func TestEveryMethodClosed(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		all := newFamily(t, target)
		for i := range all {
			if err := all[len(all)-1-i].Close(); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range all {
			eachMethod(r.closer, func(name string, method reflect.Value) {
				err, fails := call(t, name, method, typical(all))
				if name != "Close" && fails && !errors.Is(err, os.ErrClosed) && !otherFirst[name] {
					t.Errorf("%v: %s after Close: %v, want os.ErrClosed", r, name, err)
				}
			})
		}
	})
}

// No method panics or crashes when it is called with nothing but zeros, on an
// open object and on a closed one.
func TestEveryMethodZero(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		all := newFamily(t, target)
		for i := range all {
			c := all[len(all)-1-i].closer
			eachMethod(c, func(name string, method reflect.Value) {
				if name != "Close" {
					call(t, name, method, zero)
				}
			})
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			eachMethod(c, func(name string, method reflect.Value) { call(t, name, method, zero) })
		}
	})
}

func eachMethod(object any, fn func(name string, method reflect.Value)) {
	v := reflect.ValueOf(object)
	for i := range v.NumMethod() {
		if name := v.Type().Method(i).Name; name != "PostSendUnchecked" { // tests' own
			fn(name, v.Method(i))
		}
	}
}

// call calls a method with arguments for its types, and reports a panic as the
// test's failure. fails tells whether the method returns an error. What it has
// created it closes.
func call(t *testing.T, name string, method reflect.Value, arg func(t *testing.T, typ reflect.Type) reflect.Value) (err error, fails bool) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panics: %v", name, p)
		}
	}()
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		args = append(args, arg(t, method.Type().In(i)))
	}
	results := method.Call(args)
	if n := len(results); n > 0 {
		err, _ = results[n-1].Interface().(error)
		fails = method.Type().Out(n-1) == reflect.TypeFor[error]()
	}
	if created, ok := first(results).(interface{ Close() error }); ok && fails && err == nil {
		if err := created.Close(); err != nil {
			t.Errorf("closing what %s made: %v", name, err)
		}
	}
	return err, fails
}

func first(results []reflect.Value) any {
	if len(results) < 2 {
		return nil
	}
	return results[0].Interface()
}

// zero gives a type's zero value; contexts are over, so that nothing waits, and
// functions do nothing.
func zero(t *testing.T, typ reflect.Type) reflect.Value {
	if typ == reflect.TypeFor[context.Context]() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return reflect.ValueOf(ctx)
	}
	if typ.Kind() == reflect.Func {
		return reflect.MakeFunc(typ, func([]reflect.Value) (results []reflect.Value) {
			for i := range typ.NumOut() {
				results = append(results, reflect.Zero(typ.Out(i)))
			}
			return results
		})
	}
	return reflect.Zero(typ)
}

// typical gives values that a method cannot refuse before it looks at its own
// object: sound in themselves, with the family's objects where it takes some.
func typical(all []relative) func(t *testing.T, typ reflect.Type) reflect.Value {
	values := []any{
		1, uint64(1 << 20), int64(0), "", time.Millisecond, make([]byte, 64<<10), // long enough to begin at a page, as the iova does
		&ibverbs.WC{},
		[]ibverbs.WC{{}}, []ibverbs.WCEx{{}}, []ibverbs.SendWR{{Opcode: ibverbs.WRSend}}, []ibverbs.RecvWR{{}},
		ibverbs.AccessLocalWrite, ibverbs.SRQInitAttr{MaxWR: 1, MaxSGE: 1}, ibverbs.MWType2, ibverbs.CQExInitAttr{CQE: 1}, ibverbs.FlowAttr{Type: ibverbs.FlowAllDefault, Port: 1},
		ibverbs.AHAttr{IsGlobal: true, DGID: ibverbs.GID{10: 0xff, 11: 0xff, 12: 192, 14: 2, 15: 1}, Port: 1},
	}
	for _, r := range all {
		if cq, ok := r.closer.(*ibverbs.CQ); ok {
			values = append(values, ibverbs.QPInitAttr{Type: ibverbs.QPTypeRC, SendCQ: cq, RecvCQ: cq, Cap: verbstest.PairCap},
				ibverbs.WQInitAttr{CQ: cq, MaxWR: 1, MaxSGE: 1}, ibverbs.MRInitAttr{Buf: make([]byte, 64)})
			break
		}
	}
	return func(t *testing.T, typ reflect.Type) reflect.Value {
		for _, v := range values {
			if reflect.TypeOf(v) == typ {
				return reflect.ValueOf(v)
			}
		}
		for _, r := range all {
			if reflect.TypeOf(r.closer) == typ {
				return reflect.ValueOf(r.closer)
			}
		}
		return zero(t, typ)
	}
}

// Every type that has a Close is in the family, or is none that rxe or siw can
// create.
func TestFamilyIsComplete(t *testing.T) {
	elsewhere := map[string]string{
		"Buf": "no provider here allocates buffers", "CompCntr": "hardware", "DM": "hardware", "DMAH": "hardware", "Flow": "hardware", "FlowAction": "hardware", "Counters": "hardware",
		"RWQIndTable": "hardware", "BufferPool": "a helper over an MR, tested in pool_internal_test.go",
		"TD": "hardware", "WQ": "hardware", "XRCD": "hardware", "RecvRing": "a helper over a QP, tested in recvring_test.go",
	}
	known := make(map[string]bool)
	all := newFamily(t, verbstest.Device(t, verbstest.MemoryWindows, verbstest.Datagrams, verbstest.ExtendedCQ))
	for i := range all {
		c := all[len(all)-1-i].closer
		known[strings.TrimPrefix(reflect.TypeOf(c).String(), "*ibverbs.")] = true
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name := range closingTypes(t) {
		if known[name] == (elsewhere[name] != "") {
			t.Errorf("%s: in the family %v, elsewhere %q; it must be in one of them", name, known[name], elsewhere[name])
		}
	}
}

// closingTypes are the types that the package's source gives a Close.
func closingTypes(t *testing.T) map[string]bool {
	t.Helper()
	found := make(map[string]bool)
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`(?m)^func \(\w+ \*([A-Z]\w*)\) Close\(\) error`)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		source := verbstest.Must[[]byte](t)(os.ReadFile(f.Name()))
		for _, m := range pattern.FindAllSubmatch(source, -1) {
			found[string(m[1])] = true
		}
	}
	if len(found) < 10 {
		t.Fatalf("only %v have a Close: is this the package's folder?", found)
	}
	return found
}
