package ibverbs_test

import (
	"io"
	"os"
	"testing"

	"github.com/goverbs/goverbs/internal/verbstest"
)

// The examples that need a device run here, where there is one; what they print
// is what their readers are to see.
func TestRCExamples(t *testing.T) {
	verbstest.Device(t, verbstest.StateMachine, verbstest.Atomics, verbstest.MemoryWindows)
	for _, tc := range []struct {
		name    string
		example func()
		want    string
	}{
		{"pingPong", Example_pingPong, "b got \"ping\"\na got \"pong\"\n"},
		{"atomics", Example_atomics, "ATOMIC_FETCH_AND_ADD: 0 became 5\nATOMIC_FETCH_AND_ADD: 5 became 7\nATOMIC_CMP_AND_SWP: 7 became 100\n"},
		{"memoryWindow", Example_memoryWindow, "b reads \"a was here\"\nonce more: true\n"},
		{"sharedReceives", Example_sharedReceives, "guest 0 is Ada\nguest 1 is Grace\nguest 2 is Edith\nSRQ_LIMIT_REACHED true\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := printed(t, tc.example); got != tc.want {
				t.Errorf("printed\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// printed is what fn prints to standard output.
func printed(t *testing.T, fn func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	fn()
	os.Stdout = stdout
	w.Close()
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
