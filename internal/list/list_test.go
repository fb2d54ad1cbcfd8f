package list

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type item struct {
	node Node[item]
	id   int
}

// TestAgainstASlice adds and removes at random and compares with a slice: order, length, ends, and who is listed.
func TestAgainstASlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var lists [2]List[item]
	var want [2][]int
	all := make([]item, 8)
	in := make([]int, len(all)) // the list of each, -1 = none
	for i := range all {
		all[i].id, in[i] = i, -1
	}
	for range 10_000 {
		i := rng.IntN(len(all))
		v := &all[i]
		if l := in[i]; l >= 0 {
			want[l] = slices.DeleteFunc(want[l], func(id int) bool { return id == i })
		}
		if rng.IntN(2) == 0 {
			v.node.Remove()
			in[i] = -1
		} else {
			l := rng.IntN(len(lists))
			lists[l].Push(&v.node, v)
			want[l] = append(want[l], i)
			in[i] = l
		}
		for l := range lists {
			var got []int
			for v := lists[l].First(); v != nil; v = v.node.Next() {
				got = append(got, v.id)
			}
			if !slices.Equal(got, want[l]) || lists[l].Len() != len(want[l]) {
				t.Fatalf("list %d is %v, %d values, want %v", l, got, lists[l].Len(), want[l])
			}
		}
		for i := range all {
			if all[i].node.Listed() != (in[i] >= 0) {
				t.Fatalf("%d is listed: %v", i, all[i].node.Listed())
			}
		}
	}
}

// TestNothingOfNothing: a list and a node that were never used have nothing, and removing twice changes nothing.
func TestNothingOfNothing(t *testing.T) {
	var l List[item]
	var v item
	v.node.Remove()
	if l.First() != nil || l.Len() != 0 || v.node.Next() != nil || v.node.Listed() {
		t.Error("zero values are not empty")
	}
	l.Push(&v.node, &v)
	v.node.Remove()
	v.node.Remove()
	if l.First() != nil || l.Len() != 0 || v.node != (Node[item]{}) {
		t.Error("what was removed is still there")
	}
}

// TestAllocNothing: neither adding, walking nor removing allocates.
func TestAllocNothing(t *testing.T) {
	var l List[item]
	a, b := new(item), new(item)
	if n := testing.AllocsPerRun(100, func() {
		l.Push(&a.node, a)
		l.Push(&b.node, b)
		if l.First() != a || a.node.Next() != b {
			t.Error("another order")
		}
		a.node.Remove()
		b.node.Remove()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
