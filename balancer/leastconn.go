package balancer

import "sync/atomic"

// load is how busy a server is. An idle server has load 0, whatever its weight;
// otherwise it is the number of requests it would have with this one, relative to
// its weight.
type load struct {
	requests uint64
	weight   uint64
}

// load returns that of number i.
func (s *set) load(i int) load {
	c := &s.active[i]
	l := load{weight: uint64(c.weight)}
	if v := s.slots.find(int(c.at)); v != nil {
		if n := v.counters.inFlight.Load(); n > 0 {
			l.requests = uint64(n) + 1
		}
	}
	return l
}

// less reports whether l is less loaded than m.
func (l load) less(m load) bool { return l.requests*m.weight < m.requests*l.weight }

// leastConn returns the index of the least loaded server that is not skip. Among
// equally loaded ones the next of the round robin is taken. Few servers, and those of
// a second attempt, are all looked at; many have a tree.
func (s *set) leastConn(cursor *atomic.Uint64, skip int) int {
	if skip < 0 && s.hasTree() {
		return s.loads().least(cursor)
	}
	best, equals := -1, 0
	var least load
	for i := range s.active {
		if i == skip {
			continue
		}
		switch l := s.load(i); {
		case best < 0 || l.less(least):
			best, least, equals = i, l, 1
		case !least.less(l):
			equals++
		}
	}
	if equals == 1 {
		return best
	}
	for {
		at := cursor.Load()
		i, next := s.dueAmong(at+s.shift, skip, least)
		if i < 0 {
			return best // the loads have changed meanwhile
		}
		if cursor.CompareAndSwap(at, next-s.shift) {
			return i
		}
	}
}

// dueAmong is due for the servers whose load is not above most. It gives up after
// some walks: the index is then that of any of them, -1 if there is none.
func (s *set) dueAmong(position uint64, skip int, most load) (int, uint64) {
	const walks = 4
	n := uint64(len(s.active))
	walk, i := position/n, position%n
	fallback, next := -1, position
	for range walks * n {
		if int(i) != skip && !most.less(s.load(int(i))) {
			if s.uniform || s.isDue(i, walk) {
				return int(i), walk*n + i + 1
			}
			if fallback < 0 {
				fallback, next = int(i), walk*n+i+1
			}
		}
		if i++; i == n {
			walk, i = walk+1, 0
		}
	}
	return fallback, next
}
