package balancer

import (
	"math"
	"net/netip"
	"sync/atomic"
)

// sourceGroups is the number of groups that client addresses fall into by their hash.
// A group goes to one server.
const sourceGroups = 1 << 16

// owners remembers the server of each group, by index + 1; 0 = not looked for yet.
type owners [sourceGroups]atomic.Uint32

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
	if i := known[group].Load(); i > 0 {
		return int(i) - 1
	}
	i := c.rendezvous(mix(group), skip)
	known[group].Store(uint32(i) + 1)
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
	most := math.Inf(-1)
	for i := range c.active {
		if i == skip {
			continue
		}
		one := &c.active[i]
		// ln(u)/weight with u uniform in (0,1): the greatest belongs to server i with
		// probability weight/total.
		u := (float64(mix(hash^one.hash)>>11) + 0.5) / (1 << 53)
		if score := math.Log(u) / float64(one.weight); score > most {
			best, most = i, score
		}
	}
	return best
}
