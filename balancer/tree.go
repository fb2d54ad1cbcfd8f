package balancer

import (
	"math/bits"
	"sync/atomic"
)

// tree finds the least loaded of many servers. It is a tournament: a node holds the least load
// below it and the total weight of the servers with that load. A caller that changes the load of a
// server updates the nodes above it, from below. Each is computed from its children and stored by
// compare-and-swap, at most twice: if both fail, another caller has computed it after the change.
// So no caller waits, and a change costs a step per level, less where a node stays as it is.
//
// A version in each node prevents a value of old children from replacing the same value of new
// ones.
//
// A node that was never stored is 0 and counts as that of idle servers, which follows from their
// weights. So an event loop makes a tree in the time that its memory takes, whatever the number of
// servers.
type tree struct {
	set   *set
	base  int             // number of leaves, a power of two
	nodes []atomic.Uint64 // the root is 1, the children of i are 2i and 2i+1; leaves are the servers themselves
}

// place is the position of a server in a tree.
type place struct {
	tree *tree
	at   int // -1 = nowhere
}

// treeFrom is the number of servers from which a tree is faster than looking at each.
const treeFrom = 24

// A node is the load in the upper half, then the weight, then the version.
const (
	loadShift   = 32
	weightShift = 8
	weightMask  = 1<<24 - 1
	noLoad      = 1<<32 - 1 // of nobody: no server, or all are full
)

func newTree(s *set) *tree {
	base := 1
	for base < len(s.active) {
		base *= 2
	}
	return &tree{set: s, base: base, nodes: make([]atomic.Uint64, base)}
}

// seed stores the loads of the servers that have requests. The set has the tree already: later
// changes of loads update it themselves.
func (t *tree) seed() {
	for at, s := range t.set.slots.each {
		if s.counters.inFlight.Load() > 0 {
			t.update(t.set.activeAt(at))
		}
	}
}

// update computes the nodes above active server i; -1 = none.
func (t *tree) update(i int) {
	if i < 0 {
		return
	}
	for i = (t.base + i) / 2; i > 0 && t.refresh(i); i /= 2 {
	}
}

// idle returns the value of node i, which is no leaf, if all servers are idle.
func (t *tree) idle(i int) uint64 {
	depth := bits.Len(uint(i)) - 1
	width := t.base >> depth
	from := (i - 1<<depth) * width
	to := min(from+width, len(t.set.active))
	if from >= to {
		return noLoad << loadShift
	}
	return uint64(t.set.weightOf(from, to)) << weightShift
}

// node returns the value of node i without its version.
func (t *tree) node(i int) uint64 {
	if i < t.base {
		if v := t.nodes[i].Load(); v != 0 {
			return v >> weightShift << weightShift
		}
		return t.idle(i)
	}
	if i -= t.base; i >= len(t.set.active) {
		return noLoad << loadShift
	}
	c := &t.set.active[i]
	n := int64(0)
	if v := t.set.slots.find(int(c.at)); v != nil {
		n = v.counters.inFlight.Load()
	}
	if t.set.limit > 0 && n >= int64(t.set.limit) {
		return noLoad << loadShift
	}
	l := uint64(0)
	if n > 0 { // as load, in 1/65536: two that differ stay different
		l = min((uint64(n)+1)<<16/uint64(c.weight), noLoad-1)
	}
	return l<<loadShift | uint64(c.weight)<<weightShift
}

// better returns the lesser load, or both together if they are equal.
func better(a, b uint64) uint64 {
	switch la, lb := a>>loadShift, b>>loadShift; {
	case la < lb:
		return a
	case lb < la:
		return b
	case la == noLoad:
		return a
	}
	return a + b&(weightMask<<weightShift)
}

// refresh computes node i and reports whether it changed.
func (t *tree) refresh(i int) bool {
	for range 2 {
		old := t.nodes[i].Load()
		was := old >> weightShift << weightShift
		if old == 0 {
			was = t.idle(i)
		}
		v := better(t.node(2*i), t.node(2*i+1))
		if v == was {
			return false
		}
		if t.nodes[i].CompareAndSwap(old, v|(old+1)&(1<<weightShift-1)) {
			break
		}
	}
	return true
}

// hasTree reports that the algorithm of the set needs the tree of loads.
func (s *set) hasTree() bool { return s.algorithm == LeastConn && len(s.active) >= treeFrom }

// loads returns the tree of the set, made if there is none yet. Pool.replace makes the tree of a
// set that follows one with servers. So only the servers that other event loops make at this moment
// can have requests here.
func (s *set) loads() *tree {
	t := s.tree.Load()
	if t == nil {
		t = newTree(s)
		if !s.tree.CompareAndSwap(nil, t) {
			return s.tree.Load()
		}
		t.seed()
	}
	return t
}

// changed updates the nodes above a server, if its pool has a tree.
func (s *Server) changed() {
	set := s.pool.set.Load()
	t := set.tree.Load()
	if t == nil {
		return
	}
	p := s.place.Load()
	if p == nil || p.tree != t {
		p = &place{t, set.index(s.member)}
		s.place.Store(p)
	}
	t.update(p.at)
}

// least returns the index of a least loaded server, -1 if all are full. Equally loaded
// ones take turns, if their weights differ by weight.
func (t *tree) least(cursor *atomic.Uint64) int {
	for {
		at := cursor.Load()
		root := t.node(1)
		if root>>loadShift == noLoad {
			return -1
		}
		next := at + 1
		var i int
		if t.set.uniform {
			n := uint64(len(t.set.active))
			position := at + t.set.shift
			if i = t.find(1, t.base, root>>loadShift, int(position%n)); i < 0 {
				if i = t.find(1, t.base, root>>loadShift, 0); i >= 0 {
					position += n
				}
			}
			next = position/n*n + uint64(i) + 1 - t.set.shift
		} else {
			// Multiples of the golden ratio fall evenly, wherever one stops.
			total := root >> weightShift & weightMask
			i = t.owner(root>>loadShift, (at*0x9E3779B97F4A7C15)>>32*total>>32)
		}
		if i < 0 { // the loads have changed on the way
			i, next = int((at+t.set.shift)%uint64(len(t.set.active))), at+1
		}
		if cursor.CompareAndSwap(at, next) {
			return i
		}
	}
}

// find returns the first server from index from on with a load, below node i that has
// so many leaves; -1 if there is none.
func (t *tree) find(i, leaves int, load uint64, from int) int {
	if from >= leaves || t.node(i)>>loadShift > load {
		return -1
	}
	if i >= t.base {
		return i - t.base
	}
	leaves /= 2
	if at := t.find(2*i, leaves, load, from); at >= 0 {
		return at
	}
	return t.find(2*i+1, leaves, load, max(from-leaves, 0))
}

// owner returns the server that owns a unit of the total weight of those with a load;
// -1 if there is no such server any more.
func (t *tree) owner(load, unit uint64) int {
	i := 1
	for i < t.base {
		i *= 2
		left := t.node(i)
		if left>>loadShift == load {
			if w := left >> weightShift & weightMask; unit >= w {
				unit -= w
				i++
			}
		} else {
			i++
		}
	}
	if t.node(i)>>loadShift != load {
		return -1
	}
	return i - t.base
}
