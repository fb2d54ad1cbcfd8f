package balancer

import "sync/atomic"

// Round robin walks over the servers again and again. A server of the greatest
// weight takes part in every walk, one of a third of it in every third: server i is
// due in walk g when the multiple g*weight passes a multiple of the greatest weight.
// Over as many walks as the greatest weight, each server is chosen exactly weight
// times, evenly spread. The position is one counter, so no lock is needed.

// roundRobin returns the index of the next server that is due and not skip.
func (s *set) roundRobin(cursor *atomic.Uint64, skip int) int {
	for {
		at := cursor.Load()
		i, next := s.due(at+s.shift, skip)
		if cursor.CompareAndSwap(at, next-s.shift) {
			return i
		}
	}
}

// due returns the first server at or after a position that is due and not skip,
// and the position after it. There is an active server other than skip.
func (s *set) due(position uint64, skip int) (int, uint64) {
	n := uint64(len(s.active))
	walk, i := position/n, position%n
	for {
		if int(i) != skip && (s.uniform || s.isDue(i, walk)) {
			return int(i), walk*n + i + 1
		}
		if i++; i == n {
			walk, i = walk+1, 0
		}
	}
}

// isDue reports whether server i takes part in a walk.
func (s *set) isDue(i, walk uint64) bool {
	weight, most := uint64(s.active[i].weight), uint64(s.heaviest)
	// The offset differs by server: those of equal weight are due in different walks.
	return (weight*(walk%most)+offset(i, most))%most >= most-weight
}

// offset spreads the servers over the walks by the golden ratio.
func offset(i, most uint64) uint64 { return (i * 0x9E3779B1 & 0xFFFFFFFF) * most >> 32 }

// resume returns the shift of a set that takes the place of another one: the next
// server is the one that would have been next, if it is still there.
func resume(old, next *set, cursor uint64) uint64 {
	position := cursor + old.shift
	n, m := uint64(len(old.active)), uint64(len(next.active))
	if n == 0 || m == 0 {
		return old.shift
	}
	if position == 0 && cursor == 0 {
		return 0 // nobody has come yet
	}
	walk := position / n
	for k := range n {
		if i := next.index(old.member(int((position + k) % n))); i >= 0 {
			return walk*m + uint64(i) - cursor
		}
	}
	return old.shift
}
