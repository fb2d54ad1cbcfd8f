package bound

import "testing"

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range All() {
		if n.String() == "" || seen[n.String()] {
			t.Errorf("bound %d is called %q", n, n)
		}
		seen[n.String()] = true
	}
}

func TestCounts(t *testing.T) {
	var c Counts
	c.Reached(Hops)
	c.Reached(Hops)
	if c.Of(Hops) != 2 || c.Of(Reviews) != 0 {
		t.Errorf("counted %d and %d", c.Of(Hops), c.Of(Reviews))
	}
	var none *Counts
	none.Reached(Hops)
	if none.Of(Hops) != 0 {
		t.Error("nil counts")
	}
}
