package balancer

import (
	"fmt"
	"testing"
)

// TestRequestChecksOfANamespaceAreBounded: routes that ask something each of the same many pods are checked by a connect when their
// namespace has as many requests as it may, and other namespaces are not affected.
func TestRequestChecksOfANamespaceAreBounded(t *testing.T) {
	const pods = 500
	r := newClockRig(t)
	list := targets(equal(pods)...)
	update := func(namespace string, i int, ask HTTPCheck) *Pool {
		p := r.Pool(fmt.Sprint(namespace, "/", i))
		p.Update(PoolConfig{Namespace: namespace, Check: checkEvery, HTTPCheck: ask}, list)
		return p
	}
	asks := func(p *Pool) bool { return p.Checks()[0].HTTP().Asks() }
	const most = mostAsking / pods
	for i := range 3 * most {
		if got := asks(update("greedy", i, asking(fmt.Sprint("/", i)))); got != (i < most) {
			t.Fatalf("route %d asks: %v", i, got)
		}
	}
	if n := r.checks; n > mostAsking+pods {
		t.Errorf("%d checks", n)
	}
	if !asks(update("greedy", 3*most, asking("/0"))) {
		t.Error("what is asked already is not shared")
	}
	if !asks(update("other", 0, asking("/0"))) {
		t.Error("another namespace may not ask")
	}
	update("greedy", 0, HTTPCheck{})
	update("greedy", 3*most, HTTPCheck{})
	if !asks(update("greedy", 1000, asking("/more"))) {
		t.Error("what was given back is not had again")
	}
	if r.Sweep(nothing); r.checks != 0 || len(r.asking) != 0 {
		t.Errorf("%d checks are left, of %v", r.checks, r.asking)
	}
}
