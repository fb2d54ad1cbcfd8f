package routing

import (
	"errors"
	"hash/maphash"

	"turnout/internal/keypair"
)

// builder makes one table. What it shares with the table it began with is copied
// before it is changed.
type builder struct {
	options     Options
	seed        maphash.Seed
	exact, wild *edit[group]
	keys        *edit[keyed]
	certs       *edit[certificateUse]
	order       uint64
	open        map[*group]int      // groups of a table that is shared that may be changed; how many entries are in order
	gone        map[*Route]struct{} // routes to be taken out of the groups
	empty       []*group            // groups whose last route has gone
	before      *plan               // of the table it began with
	changes     []change            // of pools, in the order of the specs
	again       bool                // some of changes may be overtaken by others, or by a rejection
}

// newBuilder begins with nothing.
func newBuilder(options Options) *builder {
	return &builder{
		options: options,
		seed:    maphash.MakeSeed(),
		exact:   freshEdit[group](),
		wild:    freshEdit[group](),
		keys:    freshEdit[keyed](),
		certs:   freshEdit[certificateUse](),
		open:    make(map[*group]int),
		gone:    make(map[*Route]struct{}),
	}
}

// builder begins with t.
func (t *Table) builder() *builder {
	return &builder{
		options: t.options,
		seed:    t.hosts.seed,
		exact:   t.hosts.exact.edit(),
		wild:    t.hosts.wild.edit(),
		keys:    t.keys.edit(),
		certs:   t.certs.edit(),
		order:   t.order,
		open:    make(map[*group]int),
		gone:    make(map[*Route]struct{}),
		before:  t.plan.pending(),
	}
}

func (b *builder) keyed(key RouteKey) (keyed, bool) { return lookup(&b.keys.cow, b.seed, key) }

// upsert puts the route of spec into the table. old is the route of its key to take
// over from, nil if there is none; prev is another table to take certificates from.
func (b *builder) upsert(spec *RuleSpec, old *Route, prev *Table) *Rejection {
	c, err := b.parse(spec, prev)
	if err != nil {
		return b.reject(spec, ReasonCertificate, err)
	}
	asked, err := spec.conditions()
	if err != nil {
		return b.reject(spec, ReasonMatch, err)
	}
	r := b.route(spec, old, c, asked)
	current, there := b.keyed(spec.RouteKey)
	b.changes = append(b.changes, change{r, spec.Pool, spec.Targets})
	b.again = b.again || there
	if there && current.route == r {
		return nil
	}
	order := current.order
	if there {
		b.leave(current.route)
	} else {
		order = b.order
		b.order++
	}
	b.enter(r, order)
	return nil
}

// reject takes the route of spec out of the table and says why.
func (b *builder) reject(spec *RuleSpec, reason string, err error) *Rejection {
	b.delete(spec.RouteKey)
	b.again = true
	return &Rejection{Key: spec.RouteKey, Reason: reason, Message: err.Error(), LongChain: errors.Is(err, keypair.ErrLongChain)}
}

// route returns old if it is what spec asks for, and otherwise a new route with the
// pool and counters of old. What the pool is to be like stands in changes.
func (b *builder) route(spec *RuleSpec, old *Route, c *certificate, asked *conditions) *Route {
	r := old
	_, gone := b.gone[old]
	if old == nil || gone || !old.is(spec, c) {
		r = &Route{served: spec.served(), certificate: c, conditions: asked}
		if old != nil {
			r.pool, r.stats = old.pool, old.stats
		} else {
			r.pool, r.stats = b.options.Registry.Draft(spec.RouteKey.String()), new(Stats)
		}
		if spec.Policy.Rates.Any() {
			if old != nil {
				r.rates = old.rates
			}
			if r.rates == nil {
				r.rates = b.options.Rates.NewTable()
			}
		}
	}
	return r
}

// delete takes the route of a key out of the table.
func (b *builder) delete(key RouteKey) {
	if k, there := b.keyed(key); there {
		b.leave(k.route)
		b.keys.remove(maphash.Comparable(b.seed, key), func(k *keyed) bool { return k.route.key == key })
	}
}

// enter puts r at a place of the spec.
func (b *builder) enter(r *Route, order uint64) {
	key := r.key
	b.keys.putItem(maphash.Comparable(b.seed, key), &keyed{r, order}, func(k *keyed) bool { return k.route.key == key })
	if r.certificate != nil {
		b.use(r.certificate, 1)
	}
	if r.host != "" {
		g := b.group(r)
		g.more.entries = append(g.more.entries, newEntry(r, order))
	}
}

// leave takes r out of the group of its host and counts its certificate off.
func (b *builder) leave(r *Route) {
	if r.certificate != nil {
		b.use(r.certificate, -1)
	}
	if r.host != "" {
		b.group(r)
		b.gone[r] = struct{}{}
	}
}

// group returns the group r belongs to, open for changes.
func (b *builder) group(r *Route) *group {
	index, host := b.exact, r.host
	if r.wildcard {
		if d, ok := domain(r.host); ok {
			index, host = b.wild, d
		}
	}
	hash := maphash.String(b.seed, host)
	same := func(g *group) bool { return g.host == host }
	g := index.findItem(hash, same)
	if g != nil {
		if _, ok := b.open[g]; ok || index.fresh {
			return g
		}
		var sorted int
		g, sorted = g.reopen(b.place)
		b.open[g] = sorted
	} else {
		g = newGroup(host)
		if !index.fresh {
			b.open[g] = 0
		}
	}
	index.putItem(hash, g, same)
	return g
}

// place returns the place in the spec of a route of the table.
func (b *builder) place(r *Route) uint64 {
	k, _ := b.keyed(r.key)
	return k.order
}

// use counts n more routes with certificate c.
func (b *builder) use(c *certificate, n int) {
	same := func(u *certificateUse) bool { return u.has(c.sum) }
	if u := b.certs.findItem(c.sum.hash(), same); u != nil {
		n += u.routes
	}
	if n == 0 {
		b.certs.remove(c.sum.hash(), same)
		return
	}
	b.certs.putItem(c.sum.hash(), &certificateUse{c, n}, same)
}

// parse returns the certificate of spec, nil if it uses the default one. A content
// that was parsed for this table or prev is not parsed again.
func (b *builder) parse(spec *RuleSpec, prev *Table) (*certificate, error) {
	if spec.Certificate == nil || !spec.Termination.terminates() {
		return nil, nil
	}
	sum := spec.Certificate.sum()
	if c := certificateOf(&b.certs.cow, sum); c != nil {
		return c, nil
	}
	if c := prev.certificate(sum); c != nil {
		return c, nil
	}
	return spec.Certificate.parse(sum)
}

// table ends the work. The builder must not be used after it.
func (b *builder) table() *Table {
	for _, index := range [...]*edit[group]{b.exact, b.wild} {
		if index.fresh {
			index.each(func(g *group) bool {
				b.close(g, 0)
				return true
			})
		}
	}
	for g, sorted := range b.open {
		b.close(g, sorted)
	}
	for _, g := range b.empty {
		hash := maphash.String(b.seed, g.host)
		same := func(o *group) bool { return o == g }
		b.exact.remove(hash, same)
		b.wild.remove(hash, same)
	}
	return &Table{
		hosts:   hosts{seed: b.seed, exact: b.exact.result(), wild: b.wild.result()},
		keys:    b.keys.result(),
		certs:   b.certs.result(),
		options: b.options,
		order:   b.order,
		plan:    &plan{before: b.before, changes: b.last()},
	}
}

// close completes a group.
func (b *builder) close(g *group, sorted int) {
	if g.close(sorted, b.gone) == 0 {
		b.empty = append(b.empty, g)
	}
}
