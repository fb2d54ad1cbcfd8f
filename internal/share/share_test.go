package share

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// fill takes units one by one until the pool refuses, and returns their number.
func fill(p *Pool, namespace string) (n int) {
	for p.Take(namespace, 1) {
		n++
	}
	return n
}

func TestOneNamespaceLeavesHalf(t *testing.T) {
	p := NewPool(100)
	if got := fill(&p, "a"); got != 50 {
		t.Errorf("the first namespace got %d of 100, want 50", got)
	}
	if got := fill(&p, "b"); got != 25 {
		t.Errorf("the second namespace got %d of the remaining 50, want 25", got)
	}
}

func TestZeroPoolGrantsNothing(t *testing.T) {
	var p Pool
	if p.Take("a", 1) {
		t.Error("a pool without units granted one")
	}
}

func TestGivingBackMoreThanHeldPanics(t *testing.T) {
	p := NewPool(10)
	p.Take("a", 2)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	p.Give("b", 1)
}

// TestSharesAddUp takes and returns units at random. No namespace exceeds half, the sum equals the
// granted units, and nothing is left at the end.
func TestSharesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const size = 1000
	p := NewPool(size)
	held := map[string]int{}
	for range 100_000 {
		ns, n := strconv.Itoa(r.IntN(8)), 1+r.IntN(20)
		if r.IntN(2) == 0 {
			if p.Take(ns, n) {
				held[ns] += n
			}
		} else if held[ns] >= n {
			p.Give(ns, n)
			held[ns] -= n
		}
		sum := 0
		for ns, n := range held {
			sum += n
			if p.Held(ns) != n || n > size/2 {
				t.Fatalf("namespace %s holds %d, counted %d", ns, p.Held(ns), n)
			}
		}
		if sum != p.Used() || sum > size {
			t.Fatalf("used %d, counted %d", p.Used(), sum)
		}
	}
	for ns, n := range held {
		if n > 0 {
			p.Give(ns, n)
		}
	}
	if p.Used() != 0 || len(p.held) != 0 {
		t.Errorf("%d units and %d namespaces are left", p.Used(), len(p.held))
	}
}

func TestTakeAllocs(t *testing.T) {
	p := NewPool(100)
	p.Take("a", 1)
	if n := testing.AllocsPerRun(1000, func() {
		p.Take("b", 3)
		p.Give("b", 3)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
