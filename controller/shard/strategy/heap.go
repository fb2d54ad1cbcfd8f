package strategy

import (
	"container/heap"
	"strings"

	"turnout/controller/shard"
)

// weight says which of two routers is to be chosen first: the one with less. Equal ones take turns.
type weight func(*shard.Router) float64

// ranking is routers, the one with the least weight first. A caller that changes weights calls fix.
type ranking struct {
	weight weight
	turns  map[*shard.Router]uint64 // when each was chosen last; shared by the rankings of a strategy
	list   []*shard.Router
	least  []float64
	place  map[*shard.Router]int
}

func newRanking(routers []*shard.Router, weight weight, turns map[*shard.Router]uint64) *ranking {
	h := &ranking{weight: weight, turns: turns, place: make(map[*shard.Router]int, len(routers))}
	for i, r := range routers {
		h.list = append(h.list, r)
		h.least = append(h.least, weight(r))
		h.place[r] = i
	}
	heap.Init(h)
	return h
}

// first returns the router with the least weight.
func (h *ranking) first() *shard.Router { return h.list[0] }

// fix puts a router where it belongs, if it is here.
func (h *ranking) fix(r *shard.Router) {
	if i, ok := h.place[r]; ok {
		h.least[i] = h.weight(r)
		heap.Fix(h, i)
	}
}

// firstBut returns the first that none of them is, nil if there is no other.
func (h *ranking) firstBut(have []*shard.Router) *shard.Router {
	best := -1
	var look func(i int)
	look = func(i int) {
		switch {
		case i >= len(h.list) || best >= 0 && !h.Less(i, best):
		case contains(have, h.list[i]):
			look(2*i + 1)
			look(2*i + 2)
		default:
			best = i
		}
	}
	look(0)
	if best < 0 {
		return nil
	}
	return h.list[best]
}

// contains goes by name: routers may be copies.
func contains(routers []*shard.Router, r *shard.Router) bool {
	for _, e := range routers {
		if e.Name == r.Name {
			return true
		}
	}
	return false
}

// Len is heap.Interface's.
func (h *ranking) Len() int { return len(h.list) }

// Less is heap.Interface's.
func (h *ranking) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	switch s, t := h.turns[a], h.turns[b]; {
	case h.least[i] != h.least[j]:
		return h.least[i] < h.least[j]
	case s != t:
		return s < t
	case a.Bound != b.Bound:
		return a.Bound < b.Bound
	}
	return strings.Compare(a.Name, b.Name) < 0
}

// Swap is heap.Interface's.
func (h *ranking) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.least[i], h.least[j] = h.least[j], h.least[i]
	h.place[h.list[i]], h.place[h.list[j]] = i, j
}

// Push is heap.Interface's.
func (h *ranking) Push(any) { panic("a ranking does not grow") }

// Pop is heap.Interface's.
func (h *ranking) Pop() any { panic("a ranking does not shrink") }
