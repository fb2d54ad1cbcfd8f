package routing

import "testing"

// TestNotFound: who asks for what is not there is told so by the rules of the host, and by all rules together where there are none.
func TestNotFound(t *testing.T) {
	rule := func(name, host, path string, notFound bool) RouteSpec {
		return RouteSpec{RouteKey: RouteKey{Namespace: "ns", Name: name, UID: name}, Host: host, Path: path, Policy: Policy{NotFound: notFound}}
	}
	ingresses := []RouteSpec{rule("i", "i.test", "/x", true), rule("w", "wild.test", "", true), rule("shared", "both.test", "/x", true)}
	ingresses[1].Host, ingresses[1].Wildcard = "x.wild.test", true
	routes := []RouteSpec{rule("r", "r.test", "/x", false), rule("b", "both.test", "/y", false)}
	for name, c := range map[string]struct {
		specs []RouteSpec
		want  map[string]bool
	}{
		"nothing":   {nil, map[string]bool{"x.test": true, "": true, "..": true}},
		"Ingresses": {ingresses, map[string]bool{"i.test": true, "I.Test:8080": true, "a.wild.test": true, "other.test": true, "both.test": true, "": true}},
		"Routes":    {routes, map[string]bool{"r.test": false, "other.test": false, "": false, "..": false}},
		"both":      {append(ingresses, routes...), map[string]bool{"i.test": true, "a.wild.test": true, "r.test": false, "both.test": false, "other.test": false, "": false}},
	} {
		table, rejected := Compile(Options{}, nil, c.specs)
		if len(rejected) > 0 {
			t.Fatal(rejected)
		}
		for host, want := range c.want {
			if got := table.NotFound([]byte(host)); got != want {
				t.Errorf("%s, %q: %t", name, host, got)
			}
		}
		gone := make([]RouteKey, 0, len(routes))
		for _, r := range routes {
			gone = append(gone, r.RouteKey)
		}
		next, _ := table.Apply(nil, gone)
		if !next.NotFound([]byte("other.test")) {
			t.Errorf("%s: Routes that are gone still count", name)
		}
	}
}

// TestNotFoundDoesNotAllocate: attackers ask for what is not there.
func TestNotFoundDoesNotAllocate(t *testing.T) {
	table, _ := Compile(Options{}, nil, []RouteSpec{{RouteKey: RouteKey{Namespace: "ns", Name: "i", UID: "i"}, Host: "i.test", Path: "/x", Policy: Policy{NotFound: true}}})
	host := []byte("i.test")
	if n := testing.AllocsPerRun(100, func() { table.NotFound(host) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
