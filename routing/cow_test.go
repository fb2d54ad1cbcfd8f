package routing

import (
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"testing"
)

type pair struct{ key, value int }

// TestCow makes many versions by random edits, compares each with a map, and looks
// at all old versions again in the end.
func TestCow(t *testing.T) {
	seed := maphash.MakeSeed()
	hash := func(k int) uint64 { return maphash.Comparable(seed, k) }
	check := func(version int, c cow[pair], want map[int]int, keys int) {
		t.Helper()
		listed := make(map[int]int)
		c.each(func(p *pair) bool {
			if _, twice := listed[p.key]; twice {
				t.Fatalf("version %d: %d is listed twice", version, p.key)
			}
			listed[p.key] = p.value
			return true
		})
		if c.count != len(want) || !maps.Equal(listed, want) {
			t.Fatalf("version %d: %d items, %d listed, want %d", version, c.count, len(listed), len(want))
		}
		for k := range keys {
			p := c.findItem(hash(k), func(p *pair) bool { return p.key == k })
			if v, there := want[k]; (p != nil) != there || there && p.value != v {
				t.Fatalf("version %d: key %d is %v, want %d", version, k, p, v)
			}
		}
	}
	const keys = 4000
	r := rand.New(rand.NewPCG(1, 1))
	type version struct {
		cow  cow[pair]
		want map[int]int
	}
	versions := []version{{newCow[pair](), map[int]int{}}}
	for n := range 60 {
		last := versions[len(versions)-1]
		e, want := last.cow.edit(), maps.Clone(last.want)
		grow := n < 40
		for range 1 + r.IntN(300) {
			k := r.IntN(keys)
			same := func(p *pair) bool { return p.key == k }
			if grow == (r.IntN(8) > 0) {
				v := r.Int()
				e.putItem(hash(k), &pair{k, v}, same)
				want[k] = v
			} else {
				e.remove(hash(k), same)
				delete(want, k)
			}
		}
		versions = append(versions, version{e.result(), want})
	}
	for i, v := range versions {
		check(i, v.cow, v.want, keys)
	}
	if versions[40].cow.depth < 3 {
		t.Errorf("%d items share %d buckets: splitting was not tested", versions[40].cow.count, versions[40].cow.places())
	}
}

func TestCowShrinks(t *testing.T) {
	seed := maphash.MakeSeed()
	f := freshEdit[pair]()
	same := func(k int) func(*pair) bool { return func(p *pair) bool { return p.key == k } }
	const n = 20000
	for k := range n {
		f.putItem(maphash.Comparable(seed, k), &pair{k, k}, same(k))
	}
	full := f.result()
	e := full.edit()
	for k := 5; k < n; k++ {
		e.remove(maphash.Comparable(seed, k), same(k))
	}
	small := e.result()
	if small.count != 5 || small.places() > 2 {
		t.Errorf("%d items with a directory of %d", small.count, small.places())
	}
	for k := range n {
		if got := small.findItem(maphash.Comparable(seed, k), same(k)) != nil; got != (k < 5) {
			t.Fatalf("key %d is there: %t", k, got)
		}
		if full.findItem(maphash.Comparable(seed, k), same(k)) == nil {
			t.Fatalf("key %d has gone from the version before", k)
		}
	}
}

func TestEditSharesWhatItLeaves(t *testing.T) {
	seed := maphash.MakeSeed()
	f := freshEdit[pair]()
	for k := range 12000 {
		f.putItem(maphash.Comparable(seed, k), &pair{k, k}, func(p *pair) bool { return p.key == k })
	}
	before := f.result()
	e := before.edit()
	e.putItem(maphash.Comparable(seed, 7), &pair{7, 0}, func(p *pair) bool { return p.key == 7 })
	after, copied := e.result(), 0
	for place := range after.places() {
		if after.at(place).slots != before.at(place).slots && (place == 0 || after.at(place).slots != after.at(place-1).slots) {
			copied++
		}
	}
	pages := 0
	for i := range after.dir {
		if after.dir[i] != before.dir[i] {
			pages++
		}
	}
	if copied != 1 || pages != 1 || len(after.dir) < 2 {
		t.Errorf("one change copied %d buckets and %d of %d pages", copied, pages, len(after.dir))
	}
}
