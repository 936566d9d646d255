package ibverbs

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// What makes a QP that spreads its receives is checked before C is called.
func TestCheckRSS(t *testing.T) {
	dev := &Device{}
	table := &RWQIndTable{dev: dev}
	for word, attr := range map[string]QPInitAttr{
		"go together":    {RWQIndTable: table},
		"another device": {RWQIndTable: &RWQIndTable{dev: &Device{}}, RXHash: &RXHash{}},
		"no CQs":         {RWQIndTable: table, RXHash: &RXHash{}, SendCQ: &CQ{}},
		"needs a Key":    {RWQIndTable: table, RXHash: &RXHash{Func: RXHashToeplitz}},
	} {
		if err := attr.checkRSS(dev); !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), word) {
			t.Errorf("%v, want EINVAL and a word on %q", err, word)
		}
	}
	good := QPInitAttr{RWQIndTable: table, RXHash: &RXHash{Func: RXHashToeplitz, Key: make([]byte, 40)}}
	if err := good.checkRSS(dev); err != nil || !good.extended() || good.extras() != "RWQIndTable" {
		t.Errorf("%v; extended %v, extras %q", err, good.extended(), good.extras())
	}
}
