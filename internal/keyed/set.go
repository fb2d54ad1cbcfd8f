// Package keyed has a set of values that know their own keys. A Go map of a key of two
// strings to a pointer takes 75 bytes per entry, because the key stands in it once more;
// a Set takes the pointer alone, 11 to 22 bytes. It is for what there are tens of thousands of.
package keyed

import (
	"hash/maphash"
	"iter"
)

// leastSlots is what a set that is not empty has at least. A power of two, as all numbers of slots.
const leastSlots = 8

// Set finds values by their keys, of which no two are equal. The key of a value must not
// change while it is in the set. The set keeps the pointers that it is given. It is not
// safe for use by several goroutines while one of them changes it.
//
// It is a hash table with linear probing: three quarters of the slots are used at most,
// and an eighth at least.
type Set[K comparable, V any] struct {
	key   func(*V) K
	hash  func(K) uint64
	slots []*V
	count int
}

// New returns an empty set of values whose keys key returns. key is called often and
// should only read a field.
func New[K comparable, V any](key func(*V) K) *Set[K, V] {
	seed := maphash.MakeSeed()
	return &Set[K, V]{key: key, hash: func(k K) uint64 { return maphash.Comparable(seed, k) }}
}

// Len returns the number of values.
func (s *Set[K, V]) Len() int { return s.count }

// Get returns the value of a key, nil if there is none.
func (s *Set[K, V]) Get(key K) *V {
	if s.count == 0 {
		return nil
	}
	return s.slots[s.find(key)]
}

// Put adds a value and takes out the one of the same key, if there is one.
func (s *Set[K, V]) Put(v *V) {
	if 4*(s.count+1) > 3*len(s.slots) {
		s.resize(max(2*len(s.slots), leastSlots))
	}
	at := s.find(s.key(v))
	if s.slots[at] == nil {
		s.count++
	}
	s.slots[at] = v
}

// Delete takes out the value of a key and returns it, nil if there was none.
func (s *Set[K, V]) Delete(key K) *V {
	if s.count == 0 {
		return nil
	}
	at := s.find(key)
	v := s.slots[at]
	if v == nil {
		return nil
	}
	s.count--
	s.close(at)
	if 8*s.count < len(s.slots) && len(s.slots) > leastSlots {
		s.resize(len(s.slots) / 2)
	}
	return v
}

// All yields the values in no order. The set must not be changed meanwhile.
func (s *Set[K, V]) All() iter.Seq[*V] {
	return func(yield func(*V) bool) {
		for _, v := range s.slots {
			if v != nil && !yield(v) {
				return
			}
		}
	}
}

// find returns the slot of a key: that of its value, or the empty one where it belongs.
// There is always an empty one.
func (s *Set[K, V]) find(key K) uint64 {
	last := uint64(len(s.slots) - 1)
	at := s.hash(key) & last
	for s.slots[at] != nil && s.key(s.slots[at]) != key {
		at = (at + 1) & last
	}
	return at
}

// close empties a slot. Values after it move up where a search for them would end at it.
func (s *Set[K, V]) close(empty uint64) {
	last := uint64(len(s.slots) - 1)
	s.slots[empty] = nil
	for at := (empty + 1) & last; s.slots[at] != nil; at = (at + 1) & last {
		home := s.hash(s.key(s.slots[at])) & last
		if (at-home)&last >= (at-empty)&last {
			s.slots[empty], s.slots[at] = s.slots[at], nil
			empty = at
		}
	}
}

// resize moves all values to n slots, more than there are values.
func (s *Set[K, V]) resize(n int) {
	old := s.slots
	s.slots = make([]*V, n)
	for _, v := range old {
		if v != nil {
			s.slots[s.find(s.key(v))] = v
		}
	}
}
