package routing

import "turnout/balancer"

// plan is what the publication of a table changes in pools. Compile and Apply change nothing that requests, checks or metrics see:
// they write down here what is to be changed, and Store.Publish does it just before requests find the table.
type plan struct {
	before  *plan // of the table that this one was made from, if that was not published
	changes []change
	done    bool
}

// change is what the pools of a route are to be like.
type change struct {
	route   *Route
	pool    balancer.PoolConfig
	targets []balancer.Target
	shares  *RuleSpec // its backends and mirrors, nil = there are none
}

func changeTo(r *Route, spec *RuleSpec) change {
	c := change{route: r, pool: spec.Pool, targets: spec.Targets}
	if r.shares != nil {
		c.shares = &RuleSpec{Backends: spec.Backends, Mirrors: spec.Mirrors}
	}
	return c
}

// pending returns p if it is still to be executed, nil otherwise. p may be nil.
func (p *plan) pending() *plan {
	if p == nil || p.done {
		return nil
	}
	return p
}

// execute makes the changes of the tables before and then its own, each once however many tables lead to it.
// p may be nil. Only Store.Publish calls it.
func (p *plan) execute() {
	var order []*plan
	for ; p.pending() != nil; p = p.before {
		order = append(order, p)
	}
	for i := len(order) - 1; i >= 0; i-- {
		p := order[i]
		for j := range p.changes {
			p.changes[j].execute()
		}
		p.before, p.changes, p.done = nil, nil, true
	}
}

func (c *change) execute() {
	if r := c.route; !r.published {
		r.enter()
		r.published = true
	}
	if c.shares == nil {
		c.route.pool.Update(c.pool, c.targets)
		return
	}
	c.shares.Pool, c.shares.Targets = c.pool, c.targets
	c.route.Refill(c.shares)
}

// last returns the changes of the routes that there are at the end, one for each, in their order.
func (b *builder) last() []change {
	if !b.again {
		return b.changes
	}
	seen := make(map[RouteKey]struct{}, len(b.changes))
	kept := len(b.changes)
	for i := len(b.changes) - 1; i >= 0; i-- {
		c := b.changes[i]
		key := c.route.key
		if _, later := seen[key]; later {
			continue
		}
		seen[key] = struct{}{}
		if k, there := b.keyed(key); there && k.route == c.route {
			kept--
			b.changes[kept] = c
		}
	}
	return b.changes[kept:]
}
