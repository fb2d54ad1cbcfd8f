package routing

import (
	"fmt"
	"testing"
	"time"
)

// TestPoliciesAreShared: routes with the same policy have one object, from whatever table they come, and a policy that nobody has any more is gone.
func TestPoliciesAreShared(t *testing.T) {
	specOf := func(name string, timeout time.Duration) RouteSpec {
		return RouteSpec{
			RouteKey: RouteKey{Namespace: "ns", Name: name}, Host: name + ".test", Policy: Policy{ServerTimeout: timeout}, CookieName: name,
		}
	}
	var specs []RouteSpec
	for i := range 10 {
		specs = append(specs, specOf(fmt.Sprint("r", i), time.Duration(1+i%2)*time.Second))
	}
	table, _ := Compile(Options{}, nil, specs)
	policyOf := func(name string) *Policy { return table.Route(RouteKey{Namespace: "ns", Name: name}).Policy() }
	want := func(what string, n int) {
		t.Helper()
		seen := map[*Policy]bool{}
		for r := range table.Routes {
			seen[r.Policy()] = true
			if r.CookieName() != r.Name() {
				t.Errorf("%s: the cookie of %s is %s", what, r.Name(), r.CookieName())
			}
		}
		held := 0
		for range table.policies.each {
			held++
		}
		if len(seen) != n || held != n {
			t.Errorf("%s: %d policies, %d held, want %d", what, len(seen), held, n)
		}
	}
	want("two contents", 2)
	first := policyOf("r0")
	table, _ = table.Apply([]RouteSpec{specOf("r1", time.Second), specOf("new", 3*time.Second)}, nil)
	if policyOf("r1") != first || policyOf("r0") != first {
		t.Error("a route that changed to the policy of others has one of its own")
	}
	want("a third", 3)
	table, _ = table.Apply(nil, []RouteKey{{Namespace: "ns", Name: "new"}})
	want("without it", 2)
	table, _ = Compile(Options{}, table, specs[:1])
	want("one route", 1)
}
