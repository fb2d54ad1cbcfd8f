package balancer

import "sync/atomic"

// choices is who of a roster may be chosen, and what the algorithms need for that. It does not change. All pools share it
// that have the roster and leave out the same members.
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

// newChoices returns the choices among a roster with weights, parallel to its members, and without those that are out.
func newChoices(ro *roster, weights []uint32, out []bool) *choices {
	n := len(ro.members)
	c := &choices{roster: ro, out: out, active: make([]choice, 0, n)}
	if c.activate(weights); len(c.active) == 0 && out != nil {
		c.out = nil // all are bad: better any of them than none
		c.activate(weights)
	}
	return c
}

// activate fills active with those that may be chosen.
func (c *choices) activate(weights []uint32) {
	c.uniform = true
	for i, m := range c.roster.members {
		w := weights[i]
		if w == 0 || c.isOut(i) {
			continue
		}
		c.active = append(c.active, choice{at: int32(i), weight: w, hash: m.hash})
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

func (c *choices) isOut(at int) bool { return c.out != nil && c.out[at] }

// member returns the one that the algorithms know by number i.
func (c *choices) member(i int) *member { return c.roster.members[c.active[i].at] }

// index returns the position of m among those that may be chosen, -1 if it is not there.
func (c *choices) index(m *member) int {
	at := c.roster.place(m)
	if at < 0 {
		return -1
	}
	low, high := 0, len(c.active)
	for low < high {
		if middle := (low + high) / 2; int(c.active[middle].at) < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < len(c.active) && int(c.active[low].at) == at {
		return low
	}
	return -1
}
