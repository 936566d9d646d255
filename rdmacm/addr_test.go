package rdmacm

import (
	"context"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestResolveHost(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want []string
	}{
		{"192.0.2.1:7471", []string{"192.0.2.1:7471"}},
		{"[2001:db8::1]:7471", []string{"[2001:db8::1]:7471"}},
		{"[fe80::1%rxenet0]:7471", []string{"[fe80::1%rxenet0]:7471"}},
		{"[::ffff:192.0.2.1]:1", []string{"192.0.2.1:1"}},
		{":7471", []string{"0.0.0.0:7471", "[::]:7471"}},
		{"192.0.2.1:http", []string{"192.0.2.1:80"}},
	} {
		got, err := resolveHost(context.Background(), tc.in)
		if err != nil {
			t.Errorf("%s: %v", tc.in, err)
			continue
		}
		var want []netip.AddrPort
		for _, s := range tc.want {
			want = append(want, netip.MustParseAddrPort(s))
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.in, diff)
		}
	}
}

func TestResolveHostRefuses(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, in := range []string{
		"", "192.0.2.1", "192.0.2.1:99999", "192.0.2.1:-1", "2001:db8::1:7471",
		"192.0.2.1:no such service", "[::1:5",
		"name.invalid:7471", // the context has ended before the look-up
	} {
		if got, err := resolveHost(ctx, in); err == nil {
			t.Errorf("%q became %v, want an error", in, got)
		}
	}
}
