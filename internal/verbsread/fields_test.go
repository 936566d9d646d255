package verbsread

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// Every struct that the table has is there in full: what lies between two
// fields is no more than alignment.
func TestNoFieldMissing(t *testing.T) {
	structs := structNames()
	if len(structs) < 20 {
		t.Fatalf("only %v", structs)
	}
	for _, name := range structs {
		end := 0
		fields := layout(name)
		for _, f := range append(fields, field{name: "the end", offset: Size(name)}) {
			gap := f.offset - end
			if gap < 0 || gap >= 8 || gap >= 4 && f.offset%8 != 0 {
				t.Errorf("%s: %d bytes before %s are in no field", name, gap, f.name)
			}
			end = f.offset + f.size
		}
	}
}

func TestDiff(t *testing.T) {
	mem := [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	name, p := "ibv_flow_tcp_udp_filter", unsafe.Pointer(&mem)
	if got := Size(name); got != 4 {
		t.Errorf("size %d", got)
	}
	if got := slices.Sorted(maps.Keys(Fields(name, p))); !slices.Equal(got, []string{"dst_port", "src_port"}) {
		t.Errorf("fields %v", got)
	}
	for _, tc := range []struct {
		want map[string]any
		word string
	}{
		{map[string]any{"dst_port": Net16(0x0102), "src_port": []byte{3, 4}}, ""},
		{map[string]any{"dst_port": Net16(0x0102)}, "src_port is 0304, want 0000"},
		{map[string]any{"dst_port": Net16(0x0201), "src_port": Net16(0x0304)}, "dst_port is 0102, want 0201"},
		{map[string]any{"dst_port": Net32(1), "src_port": Net16(0x0304)}, "dst_port is 0102, want 00000001"},
		{map[string]any{"dst_port": Net16(0x0102), "src_port": Net16(0x0304), "port": 1}, "no field"},
	} {
		if got := Diff(name, p, tc.want); (got == "") != (tc.word == "") || !strings.Contains(got, tc.word) {
			t.Errorf("%v: %q, want %q", tc.want, got, tc.word)
		}
	}
	if got := Diff("ibv_nothing", p, nil); !strings.Contains(got, "no struct") {
		t.Error(got)
	}
}
