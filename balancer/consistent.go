package balancer

import (
	"math"
	"net/netip"
	"sync/atomic"
)

// sourceGroups is the number of groups that client addresses fall into by their hash.
// A group goes to one server.
const sourceGroups = 1 << 16

// owners remembers the server of each group, by index + 1; 0 = not looked for yet. A part is made
// with the first group in it.
type owners [sourceGroups / partGroups]atomic.Pointer[[partGroups]atomic.Uint32]

const partGroups = 1 << 8

// of returns the entry of a group.
func (o *owners) of(group uint64) *atomic.Uint32 {
	part := &o[group/partGroups]
	if part.Load() == nil {
		part.CompareAndSwap(nil, new([partGroups]atomic.Uint32))
	}
	return &part.Load()[group%partGroups]
}

// sourceConsistent returns the server of a client address by weighted rendezvous
// hashing of its group: each server draws a number from the hash of group and server,
// and the greatest wins. A server that leaves gives away only its own clients, one that
// comes takes only its share. Of few servers all are looked at; with many, what was
// found is remembered until the set changes.
func (c *choices) sourceConsistent(addr netip.Addr, skip int) int {
	group := hashAddr(addr) / (1 << 64 / sourceGroups)
	if skip >= 0 || len(c.active) < treeFrom {
		return c.rendezvous(mix(group), skip)
	}
	known := c.owners.Load()
	if known == nil {
		c.owners.CompareAndSwap(nil, new(owners))
		known = c.owners.Load()
	}
	owner := known.of(group)
	if i := owner.Load(); i > 0 {
		return int(i) - 1
	}
	i := c.rendezvous(mix(group), skip)
	owner.Store(uint32(i) + 1)
	return i
}

// rendezvous returns the server that draws the greatest number for a hash.
func (c *choices) rendezvous(hash uint64, skip int) int {
	best := -1
	if c.uniform { // the draw alone decides
		most := uint64(0)
		for i := range c.active {
			if draw := mix(hash ^ c.active[i].hash); i != skip && (best < 0 || draw > most) {
				best, most = i, draw
			}
		}
		return best
	}
	// ln(u)/weight with u uniform in (0,1): the greatest belongs to server i with probability
	// weight/total. Of neighbours of one weight, as the endpoints of a service are, the greatest u
	// has the greatest score, and only that one needs the logarithm.
	most := math.Inf(-1)
	for i := 0; i < len(c.active); {
		run, weight, draw := -1, c.active[i].weight, uint64(0)
		for ; i < len(c.active) && c.active[i].weight == weight; i++ {
			if d := mix(hash^c.active[i].hash) >> 11; i != skip && (run < 0 || d > draw) {
				run, draw = i, d
			}
		}
		if run < 0 {
			continue
		}
		if score := math.Log((float64(draw)+0.5)/(1<<53)) / float64(weight); score > most {
			best, most = run, score
		}
	}
	return best
}
