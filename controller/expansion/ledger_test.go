package expansion

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestNamespacesAreHeldToTheirAllowance sets and removes objects at random. Accepted objects never
// exceed the allowance. The oldest object and objects of small namespaces are never refused. The
// result depends on the objects alone, not on their order.
func TestNamespacesAreHeldToTheirAllowance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 34))
	ledger := func() *Ledger[int] {
		return NewLedger(func(k int) string { return []string{"large", "small"}[k%2] }, cmp.Compare[int])
	}
	l, objects := ledger(), map[int]Size{1: {Rules: 1}}
	for range 2000 {
		key := random.IntN(40) * 2
		if random.IntN(3) == 0 {
			delete(objects, key)
			l.Remove(key)
		} else {
			objects[key] = Size{Rules: 1 + random.IntN(MaxRules), Backends: 2 * MaxRules, Source: random.IntN(2000)}
			l.Set(key, objects[key])
		}
		l.Settle()
		again := ledger()
		for k, s := range objects {
			again.Set(k, s)
		}
		again.Settle()
		sum, oldest := 0, 1<<30
		for k, s := range objects {
			if l.Refused(k) != again.Refused(k) {
				t.Fatalf("object %d: %q, made anew %q", k, l.Refused(k), again.Refused(k))
			}
			if excess := max(s.Bytes()-BytesPerByte*s.Source, 0); k%2 == 0 && l.Refused(k) == "" {
				sum += excess
			}
			if k%2 == 0 {
				oldest = min(oldest, k)
			}
		}
		if sum > NamespaceAllowance || l.Refused(oldest) != "" || l.Refused(1) != "" {
			t.Fatalf("sum %d, oldest %q, other namespace %q", sum, l.Refused(oldest), l.Refused(1))
		}
	}
	for k := range maps.Clone(objects) {
		l.Remove(k)
	}
	if l.Settle(); len(l.accounts) != 0 || len(l.touched) != 0 {
		t.Errorf("%d namespaces are left", len(l.accounts))
	}
}

// TestSettleNamesWhatChanged checks that Settle returns an object once when it stops fitting and
// once when it fits again.
func TestSettleNamesWhatChanged(t *testing.T) {
	l := NewLedger(func(int) string { return "ns" }, cmp.Compare[int])
	most := Size{Rules: MaxRules, Backends: 2 * MaxRules}
	for k := range NamespaceAllowance/ObjectAllowance + 1 {
		l.Set(k, most)
	}
	const last = NamespaceAllowance / ObjectAllowance
	want := "expands to 7,340,032 bytes of memory beyond 64 for each of its own, limit 58,720,256 for all objects of the namespace, of which older ones have most"
	if got := l.Settle(); len(got) != 1 || got[0] != last || l.Refused(last) != want {
		t.Fatalf("%v, %q", got, l.Refused(last))
	}
	if got := l.Settle(); len(got) != 0 {
		t.Errorf("named again: %v", got)
	}
	l.Remove(0)
	if got := l.Settle(); len(got) != 1 || got[0] != last || l.Refused(last) != "" {
		t.Errorf("%v, %q", got, l.Refused(last))
	}
}
