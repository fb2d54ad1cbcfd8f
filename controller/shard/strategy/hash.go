package strategy

import (
	"cmp"
	"math"
	"slices"

	"turnout/controller/shard"
)

// points is how many points of the ring a router has. More make shares more even and joining slower.
const points = 100

// Boundary is how much more than its share a router may have by ConsistentHash: 1.25 is a quarter more.
const Boundary = 1.25

// point is a place of a router on the ring.
type point struct {
	hash uint64
	node *node
}

// node is a router on the ring.
type node struct {
	router *shard.Router
	index  int
	bound  int // as was observed last
}

// circle is what is known of a set of routers.
type circle struct {
	member []uint64 // bits by index of node
	nodes  map[*node]struct{}
	bound  int // routes of all of them
	weight int // of all
	equal  bool
}

func (c *circle) has(n *node) bool {
	return n.index/64 < len(c.member) && c.member[n.index/64]&(1<<(n.index%64)) != 0
}

// consistentHash binds a route to the router that follows it on a ring.
type consistentHash struct {
	ring  []point
	nodes map[*shard.Router]*node
	free  []int // indices that were of nodes which are gone
	sets  sets[*circle]
}

// ConsistentHash returns the strategy that binds a route by a hash of its namespace and name, so that few routes change their router when routers come
// and go (consistent hashing with bounded loads: no router has more than Boundary times its share).
func ConsistentHash() shard.Strategy {
	c := &consistentHash{nodes: make(map[*shard.Router]*node)}
	c.sets.make = c.circle
	return c
}

// Schedule is shard.Strategy's.
func (c *consistentHash) Schedule(route *shard.Route, routers []*shard.Router) (*shard.Router, error) {
	set := c.sets.of(routers)
	return c.follow(route, func(n *node) bool { return set.has(n) && n.bound < set.most(n) }).router, nil
}

// Home is shard.Preferring's.
func (c *consistentHash) Home(route *shard.Route, routers []*shard.Router) *shard.Router {
	if len(routers) == 0 {
		return nil
	}
	return c.follow(route, c.sets.of(routers).has).router
}

// most is how many routes a router may have when one more is bound.
func (c *circle) most(n *node) int {
	w := 1
	if !c.equal {
		w = n.router.Capacity
	}
	return int(math.Ceil(Boundary * float64(c.bound+1) * float64(w) / float64(c.weight)))
}

// follow returns the first node on the ring after a route that may have it. There is always one: together they may have more than they have.
func (c *consistentHash) follow(route *shard.Route, may func(*node) bool) *node {
	at := hash(route.Namespace, route.Name)
	i, _ := slices.BinarySearchFunc(c.ring, at, func(p point, h uint64) int { return cmp.Compare(p.hash, h) })
	for n := range c.ring {
		if p := c.ring[(i+n)%len(c.ring)]; may(p.node) {
			return p.node
		}
	}
	return c.ring[i%len(c.ring)].node
}

// circle makes a set of routers, which join the ring if they are not on it.
func (c *consistentHash) circle(routers []*shard.Router) *circle {
	c.join(routers)
	set := &circle{nodes: make(map[*node]struct{}, len(routers))}
	set.equal = slices.ContainsFunc(routers, func(r *shard.Router) bool { return r.Capacity <= 0 })
	for _, r := range routers {
		n := c.nodes[r]
		for len(set.member) <= n.index/64 {
			set.member = append(set.member, 0)
		}
		set.member[n.index/64] |= 1 << (n.index % 64)
		set.nodes[n] = struct{}{}
		set.bound += n.bound
		if set.equal {
			set.weight++
		} else {
			set.weight += r.Capacity
		}
	}
	return set
}

// join puts those routers on the ring that are not on it.
func (c *consistentHash) join(routers []*shard.Router) {
	before := len(c.ring)
	for _, r := range routers {
		if c.nodes[r] != nil {
			continue
		}
		n := &node{router: r, index: len(c.nodes) + len(c.free), bound: r.Bound}
		if last := len(c.free) - 1; last >= 0 {
			n.index = c.free[last]
			c.free = c.free[:last]
		}
		c.nodes[r] = n
		for i := range points {
			c.ring = append(c.ring, point{hash(r.Name, string(rune('0'+i))), n})
		}
	}
	if len(c.ring) > before {
		slices.SortFunc(c.ring, func(a, b point) int {
			return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.node.router.Name, b.node.router.Name))
		})
	}
}

// Observe is shard.Observer's.
func (c *consistentHash) Observe(r *shard.Router, gone bool) {
	n := c.nodes[r]
	if n == nil {
		return
	}
	if gone {
		c.ring = slices.DeleteFunc(c.ring, func(p point) bool { return p.node == n })
		c.free = append(c.free, n.index)
		delete(c.nodes, r)
		c.sets = sets[*circle]{make: c.circle}
		return
	}
	if change := r.Bound - n.bound; change != 0 {
		n.bound = r.Bound
		c.sets.each(func(set *circle) {
			if set.has(n) {
				set.bound += change
			}
		})
	}
}

// hash is FNV-1a of two texts, mixed (the finish of MurmurHash3), because FNV alone leaves texts that differ at their ends near each other.
func hash(a, b string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(a) {
		h = (h ^ uint64(a[i])) * 1099511628211
	}
	h *= 1099511628211
	for i := range len(b) {
		h = (h ^ uint64(b[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
