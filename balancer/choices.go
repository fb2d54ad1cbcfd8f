package balancer

import "sync/atomic"

// choices holds the members of a roster that the algorithms may choose, and sums over them. It is
// immutable. Pools with one roster that exclude the same members share it.
type choices struct {
	roster   *roster
	out      []bool                 // by place in the roster: may not be chosen; nil = all may
	active   []choice               // the other members of weight > 0, in the order of the roster
	sums     []uint32               // sums[i] is the total weight of active[:i+1]; nil if they are uniform
	total    uint32                 // sum of all weights
	heaviest uint32                 // greatest weight
	uniform  bool                   // all of active weigh the same
	owners   atomic.Pointer[owners] // for SourceConsistent among many servers, nil before the first
}

// choice is one member the algorithms may choose.
type choice struct {
	at     int32 // its place in the roster
	weight uint32
	hash   uint64 // of the server identity, the same in every process
}

// newChoices returns the choices among a roster with weights, parallel to its members, and without
// those that are out. A member that has no weight in ro.all, if that exists, has none in weights.
func newChoices(ro *roster, weights []uint32, out []bool) *choices {
	n := len(ro.members)
	c := &choices{roster: ro, out: out, active: make([]choice, 0, n)}
	if c.activate(weights); len(c.active) == 0 && out != nil {
		c.out = nil // all are bad: better any of them than none
		c.activate(weights)
	}
	return c
}

// activate fills active with the members that may be chosen.
func (c *choices) activate(weights []uint32) {
	c.uniform = true
	hashes := hashesOf(c.roster)
	for i := range c.roster.members {
		w := weights[i]
		if w == 0 || c.isOut(i) {
			continue
		}
		c.active = append(c.active, choice{at: int32(i), weight: w, hash: hashes(i)})
		c.total += w
		c.heaviest = max(c.heaviest, w)
		c.uniform = c.uniform && w == c.active[0].weight
	}
	if c.uniform {
		return
	}
	c.sums = make([]uint32, len(c.active))
	total := uint32(0)
	for i := range c.active {
		total += c.active[i].weight
		c.sums[i] = total
	}
}

// hashesOf returns a function from places in the roster to the hashes of identities. It is called
// in the order of places. Hashes are computed once for a roster; later choices copy them.
func hashesOf(ro *roster) func(place int) uint64 {
	if ro.all == nil {
		return func(place int) uint64 { return hashString(ro.members[place].id()) }
	}
	known := ro.all.active
	return func(place int) uint64 {
		for int(known[0].at) != place {
			known = known[1:]
		}
		return known[0].hash
	}
}

func (c *choices) isOut(at int) bool { return c.out != nil && c.out[at] }

// member returns the one that the algorithms know by number i.
func (c *choices) member(i int) *member { return c.roster.members[c.active[i].at] }

// weightOf returns the total weight of active[from:to], which is not empty.
func (c *choices) weightOf(from, to int) uint32 {
	switch {
	case c.uniform:
		return uint32(to-from) * c.heaviest
	case from == 0:
		return c.sums[to-1]
	}
	return c.sums[to-1] - c.sums[from-1]
}

// index returns the position of m in active, -1 if it is not there.
func (c *choices) index(m *member) int { return c.activeAt(c.roster.place(m)) }

// activeAt returns the position in active of the member at a place of the roster, -1 if it is not
// there.
func (c *choices) activeAt(at int) int {
	low, high := 0, len(c.active)
	for low < high {
		if middle := (low + high) / 2; int(c.active[middle].at) < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < len(c.active) && at >= 0 && int(c.active[low].at) == at {
		return low
	}
	return -1
}
