package keyed

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type name struct{ namespace, name string }

type object struct {
	key   name
	value int
}

func newSet() *Set[name, object] { return New(func(o *object) name { return o.key }) }

// contents are the keys and values of a set as All yields them. It fails when one comes twice.
func contents(t *testing.T, s *Set[name, object]) map[name]int {
	t.Helper()
	found := make(map[name]int)
	for o := range s.All() {
		if _, twice := found[o.key]; twice {
			t.Fatalf("%v comes twice", o.key)
		}
		found[o.key] = o.value
	}
	return found
}

// run applies one operation per byte, two bits of it the operation and the others the key, to
// a set and a map, and compares what they say.
func run(t *testing.T, s *Set[name, object], operations []byte) {
	t.Helper()
	want := make(map[name]int)
	for i, op := range operations {
		key := name{"ns", strconv.Itoa(int(op >> 2))}
		was, there := want[key]
		switch op & 3 {
		case 0, 1:
			s.Put(&object{key, i})
			want[key] = i
		case 2:
			if o := s.Delete(key); (o != nil) != there || o != nil && (o.key != key || o.value != was) {
				t.Fatalf("operation %d: Delete(%v) = %v, the map has %d, %v", i, key, o, was, there)
			}
			delete(want, key)
		case 3:
			if o := s.Get(key); (o != nil) != there || o != nil && (o.key != key || o.value != was) {
				t.Fatalf("operation %d: Get(%v) = %v, the map has %d, %v", i, key, o, was, there)
			}
		}
		if s.Len() != len(want) {
			t.Fatalf("operation %d: length %d, the map has %d", i, s.Len(), len(want))
		}
		if n := len(s.slots); n > leastSlots && (4*s.Len() > 3*n || 8*s.Len() < n) {
			t.Fatalf("operation %d: %d values in %d slots", i, s.Len(), n)
		}
	}
	if diff := cmp.Diff(want, contents(t, s)); diff != "" {
		t.Fatalf("(-map +set)\n%s", diff)
	}
}

// FuzzSet: a set says what a map would, whatever is done to it, also when keys have the same hash.
func FuzzSet(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 4, 8, 12, 16, 20, 24, 28, 2, 6, 10, 14, 18, 22, 26, 30})
	f.Add([]byte{0, 4, 2, 7, 8, 0, 6, 3, 11})
	random := rand.New(rand.NewPCG(1, 2))
	long := make([]byte, 5000)
	for i := range long {
		long[i] = byte(random.Uint32())
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, operations []byte) {
		run(t, newSet(), operations)
		for _, hashes := range []uint64{1, 3, 5} {
			s := newSet()
			s.hash = func(k name) uint64 { return uint64(len(k.name)) * 7 % hashes * (1<<63 + 6) }
			run(t, s, operations)
		}
	})
}

// TestNothingThere: an empty set has nothing and can be asked.
func TestNothingThere(t *testing.T) {
	s := newSet()
	if s.Get(name{}) != nil || s.Delete(name{}) != nil || s.Len() != 0 || len(contents(t, s)) != 0 {
		t.Error("it has something")
	}
}

// TestAllStops: who has seen enough gets no more.
func TestAllStops(t *testing.T) {
	s, seen := newSet(), 0
	for i := range 10 {
		s.Put(&object{name{"", strconv.Itoa(i)}, i})
	}
	for range s.All() {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("%d are seen", seen)
	}
}

// TestMemory: what a set takes beside its values is a pointer per slot, a third of what a map takes.
func TestMemory(t *testing.T) {
	const n = 10_000
	objects := make([]object, n)
	for i := range objects {
		objects[i].key = name{"namespace", strconv.Itoa(i)}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := newSet()
	for i := range objects {
		s.Put(&objects[i])
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := float64(after.HeapAlloc-before.HeapAlloc) / n; each > 22 {
		t.Errorf("%.1f bytes for each value", each)
	}
	for i := range objects {
		if s.Get(objects[i].key) != &objects[i] {
			t.Fatalf("%d is not found", i)
		}
	}
}

// TestAllocates: reading allocates nothing.
func TestAllocates(t *testing.T) {
	s := newSet()
	for i := range 100 {
		s.Put(&object{name{"ns", strconv.Itoa(i)}, i})
	}
	key := name{"ns", "42"}
	if n := testing.AllocsPerRun(100, func() { s.Get(key) }); n > 0 {
		t.Errorf("Get allocates %v times", n)
	}
}

func BenchmarkGet(b *testing.B) {
	const n = 10_000
	keys := make([]name, n)
	s, m := newSet(), make(map[name]*object)
	for i := range keys {
		keys[i] = name{"namespace", strconv.Itoa(i)}
		o := &object{keys[i], i}
		s.Put(o)
		m[o.key] = o
	}
	b.Run("set", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if s.Get(keys[i%n]) == nil {
				b.Fatal("none")
			}
		}
	})
	b.Run("map", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if m[keys[i%n]] == nil {
				b.Fatal("none")
			}
		}
	})
}
