package ratelimit

import (
	"net/netip"
	"testing"
	"time"
)

// TestOneClientIsOneKey checks that all addresses that one client can choose share their counters,
// in Enter and in Peek, and that different clients do not share any.
func TestOneClientIsOneKey(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "64:ff9b::192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"64:ff9b::192.0.2.1", "64:ff9b::192.0.2.2", false},
		{"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
		{"::1", "0.0.0.1", false},
	} {
		a, b := netip.MustParseAddr(c.a), netip.MustParseAddr(c.b)
		tab, l := NewMemory(0).NewTable("ns"), Limits{HTTP: on(1)}
		if _, ok := tab.Enter(a, int64(time.Hour), l, true); !ok {
			t.Fatalf("%s: the first request is refused", c.a)
		}
		if _, ok := tab.Peek(b, int64(time.Hour), l, true); ok == c.same {
			t.Errorf("%s after %s: Peek says %v", c.b, c.a, ok)
		}
		if _, ok := tab.Enter(b, int64(time.Hour), l, true); ok == c.same {
			t.Errorf("%s after %s: Enter says %v", c.b, c.a, ok)
		}
	}
}
