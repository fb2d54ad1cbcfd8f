package translate

import (
	"fmt"
	"strings"
	"testing"

	"turnout/routing"
)

// TestWhatIsSharedIsBounded: a route that says something else again and again leaves no more behind than the bound, and equal
// texts are still one.
func TestWhatIsSharedIsBounded(t *testing.T) {
	tr := translator(t, Options{})
	policy := func(i int) routing.Policy {
		value := fmt.Sprint(i) + strings.Repeat("x", 4000)
		r := terminated("edge", "", annotationRewrite, "/"+value[:4000], annotationAllow, fmt.Sprintf("10.1.%d.%d", i/256, i%256))
		r.Spec.HTTPHeaders = nil
		p := tr.Route(Input{Route: r, Host: "h.test", TLS: r.Spec.TLS, Service: one}).Spec.Policy
		if p.Rewrite == nil || p.Allow == nil {
			t.Fatal("an annotation was not used")
		}
		return p
	}
	for i := range 1200 {
		before := policy(i)
		if again := policy(i); again != before {
			t.Fatalf("%d: the route is another one when it is translated again", i)
		}
		if tr.compiled.rewrites.size > maxInterned || tr.allowed.size > maxInterned {
			t.Fatalf("%d: %d and %d bytes are kept", i, tr.compiled.rewrites.size, tr.allowed.size)
		}
	}
	if len(tr.compiled.rewrites.made) > maxInterned/4000 {
		t.Errorf("%d rules are kept", len(tr.compiled.rewrites.made))
	}
	c := interned[int]{most: 10}
	for i, text := range []string{"aaaa", "bbbb", "aaaa", "cccc"} {
		if _, ok := c.get(text); ok != (i == 2) {
			t.Errorf("%d: known %v", i, ok)
		}
		c.put(text, i)
		if c.size > 10 {
			t.Errorf("%d: %d bytes", i, c.size)
		}
	}
}
