package ibverbs_test

import (
	"context"
	"errors"
	"reflect"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
)

// An object that nobody created is refused before C sees its nil pointer, which
// would end the process.
func TestNeverCreated(t *testing.T) {
	for _, object := range []any{&ibverbs.Device{}, &ibverbs.PD{}, &ibverbs.CQ{}, &ibverbs.CQEx{}, &ibverbs.CompChannel{},
		&ibverbs.QP{}, &ibverbs.MR{}, &ibverbs.MW{}, &ibverbs.SRQ{}, &ibverbs.AH{}, &ibverbs.WQ{}, &ibverbs.XRCD{},
		&ibverbs.Buf{}, &ibverbs.TD{}, &ibverbs.DM{}, &ibverbs.DMAH{}, &ibverbs.Flow{}, &ibverbs.FlowAction{},
		&ibverbs.Counters{}, &ibverbs.CompCntr{}, &ibverbs.RWQIndTable{}} {
		kind := reflect.TypeOf(object)
		for i := range kind.NumMethod() {
			method := kind.Method(i)
			last := method.Type.NumOut() - 1
			if last < 0 || method.Type.Out(last) != reflect.TypeFor[error]() {
				continue
			}
			if method.Name == "PostSendUnchecked" { // tests' own
				continue
			}
			t.Run(kind.Elem().Name()+"."+method.Name, func(t *testing.T) {
				results := method.Func.Call(zeroArguments(reflect.New(kind.Elem()), method.Type))
				err, _ := results[last].Interface().(error)
				if err == nil {
					t.Fatal("an object that nobody created works")
				}
				if method.Name == "Close" && !errors.Is(err, syscall.EINVAL) {
					t.Fatalf("got %v, want EINVAL", err)
				}
			})
		}
	}
}

// zeroArguments are the receiver and a zero value for each argument, but one
// byte to copy.
func zeroArguments(receiver reflect.Value, method reflect.Type) []reflect.Value {
	args := []reflect.Value{receiver}
	for i := 1; i < method.NumIn() && (i < method.NumIn()-1 || !method.IsVariadic()); i++ {
		arg := reflect.Zero(method.In(i))
		switch method.In(i) {
		case reflect.TypeFor[context.Context]():
			arg = reflect.ValueOf(context.Background())
		case reflect.TypeFor[[]byte]():
			arg = reflect.ValueOf(make([]byte, 1))
		}
		args = append(args, arg)
	}
	return args
}
