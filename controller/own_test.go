package controller

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"turnout/internal/bound"
	"turnout/internal/target"
)

// TestOwnAddressesChange: an endpoint that becomes the router's own address is left out at once, with a note and counted, and is back
// when it is not any more. No table is made for it.
func TestOwnAddressesChange(t *testing.T) {
	var bounds bound.Counts
	r := newRig(t, Options{}, func(cfg *Config) { cfg.Bounds = &bounds })
	at := func(addrs ...string) *target.Own {
		var interfaces []netip.Addr
		for _, a := range addrs {
			interfaces = append(interfaces, netip.MustParseAddr(a))
		}
		return target.NewOwn([]netip.AddrPort{netip.MustParseAddrPort("[::]:8080")}, interfaces)
	}
	r.c.SetOwn(at("10.0.0.9"))
	r.do(aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1", "10.0.0.2"))
	table := r.store.Load()
	noted := func() bool {
		return slices.ContainsFunc(r.c.Notes("ns", "a"), func(n string) bool {
			return strings.Contains(n, "port 8080 of address 10.0.0.2 is not used: the router itself listens there")
		})
	}
	for _, step := range []struct {
		own   []string
		want  string
		noted bool
	}{
		{[]string{"10.0.0.9"}, "10.0.0.1:8080 10.0.0.2:8080", false},
		{[]string{"10.0.0.9", "10.0.0.2"}, "10.0.0.1:8080", true},
		{[]string{"10.0.0.2", "10.0.0.9"}, "10.0.0.1:8080", true},
		{[]string{"10.0.0.9"}, "10.0.0.1:8080 10.0.0.2:8080", false},
	} {
		r.c.SetOwn(at(step.own...))
		r.do()
		if got := r.servers("a"); got != step.want || noted() != step.noted {
			t.Errorf("the router at %v: servers %q, noted %t", step.own, got, noted())
		}
	}
	if r.store.Load() != table {
		t.Error("a table was published")
	}
	if n := bounds.Of(bound.OwnAddresses); n != 1 {
		t.Errorf("counted %d times", n)
	}
}
