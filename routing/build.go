package routing

import (
	"errors"
	"hash/maphash"

	"turnout/internal/keypair"
)

// builder makes one table. What it shares with the table it began with is copied
// before it is changed.
type builder struct {
	options   Options
	seed      maphash.Seed
	pair      hostsEdit // of OpenShift Routes
	listened  hostsEdit // of listeners
	listeners *edit[listenerUse]
	ports     map[string]port
	ownPorts  map[string]port // of ports: those that this builder has copied
	numbers   uint64          // of the next new listener
	guards    int             // see Table
	// unavailable is as in Table.
	unavailable int
	keys        *edit[keyed]
	certs       *edit[content[certificate]]
	auths       *edit[content[ClientAuth]]
	policies    *edit[common]
	objects     *edit[objectUse]
	order       uint64
	open        map[*group]int      // groups of a table that is shared that may be changed; how many entries are in order
	gone        map[*Route]struct{} // routes to be taken out of the groups
	empty       []*group            // groups whose last route has gone
	before      *plan               // of the table it began with
	changes     []change            // of pools, in the order of the specs
	again       bool                // some of changes may be overtaken by others, or by a rejection
	contents    poolContents        // of the object whose rules were added last
}

// newBuilder begins with nothing.
func newBuilder(options Options) *builder {
	return &builder{
		options:   options,
		seed:      maphash.MakeSeed(),
		pair:      freshHosts(),
		listened:  freshHosts(),
		listeners: freshEdit[listenerUse](),
		keys:      freshEdit[keyed](),
		certs:     freshEdit[content[certificate]](),
		auths:     freshEdit[content[ClientAuth]](),
		policies:  freshEdit[common](),
		objects:   freshEdit[objectUse](),
		open:      make(map[*group]int),
		gone:      make(map[*Route]struct{}),
	}
}

// builder begins with t.
func (t *Table) builder() *builder {
	return &builder{
		options:   t.options,
		seed:      t.hosts.seed,
		pair:      t.hosts.edit(),
		listened:  t.listened.edit(),
		listeners: t.listeners.edit(),
		ports:     t.ports,
		numbers:   t.numbers,
		guards:    t.guards,

		unavailable: t.unavailable,
		keys:        t.keys.edit(),
		certs:       t.certs.edit(),
		auths:       t.auths.edit(),
		policies:    t.policies.edit(),
		objects:     t.objects.edit(),
		order:       t.order,
		open:        make(map[*group]int),
		gone:        make(map[*Route]struct{}),
		before:      t.plan.pending(),
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
	a, err := b.clientAuth(spec.ClientAuth, prev)
	if err != nil {
		return b.reject(spec, ReasonClientAuth, err)
	}
	asked, err := spec.conditions()
	if err != nil {
		return b.reject(spec, ReasonMatch, err)
	}
	if err := spec.distinct(); err != nil {
		return b.reject(spec, ReasonBackends, err)
	}
	if err := b.contents.add(spec); err != nil {
		return b.reject(spec, ReasonBackends, err)
	}
	r := b.route(spec, old, prev, c, a, asked)
	current, there := b.keyed(spec.RouteKey)
	b.changes = append(b.changes, changeTo(r, spec))
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

// route returns old if it equals spec. Otherwise it returns a new route with the pool and counters
// of old, whose targets the builder's changes contain.
func (b *builder) route(spec *RuleSpec, old *Route, prev *Table, c *certificate, a *ClientAuth, asked *conditions) *Route {
	r := old
	_, gone := b.gone[old]
	if old == nil || gone || !old.is(spec, c, a) {
		r = &Route{served: spec.served(), policy: b.policy(&spec.Policy), certificate: c, auth: a, conditions: asked}
		if old != nil {
			r.stats = old.stats
		} else {
			r.stats = new(counted)
		}
		b.pools(r, spec, old)
		if r.object = b.object(spec.RouteKey, prev); spec.Policy.Rates.Any() {
			r.rates = r.object.limitRates(b.options.Rates)
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
	b.use(r, 1)
	if r.host != "" {
		g := b.group(r)
		g.more.entries = append(g.more.entries, newEntry(r, order))
	}
}

// leave takes r out of the group of its host and counts what it uses off.
func (b *builder) leave(r *Route) {
	if r.host != "" {
		b.group(r)
		b.gone[r] = struct{}{}
	}
	b.use(r, -1)
}

// group returns the group r belongs to, open for changes.
func (b *builder) group(r *Route) *group {
	set, tail := &b.pair, ""
	if r.listener != "" {
		set, tail = &b.listened, b.listenerUse(r.listener).tail
	}
	index, host := set.index(r)
	host += tail
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

// use counts n more routes with the object, policy, certificate, client certificate requirement and
// listener of r.
func (b *builder) use(r *Route, n int) {
	b.countPolicy(r.policy, n)
	b.countObject(r.object, n)
	if r.certificate != nil {
		countContent(b.certs, r.certificate.sum, r.certificate, n)
	}
	if r.auth != nil {
		countContent(b.auths, r.auth.sum, r.auth, n)
		if r.listener == "" {
			b.guards += n
		}
	}
	switch {
	case r.listener != "":
		b.countRules(r.listener, n)
	case !r.policy.NotFound:
		b.unavailable += n
	}
}

// parse returns the certificate of spec, nil if it uses the default one.
func (b *builder) parse(spec *RuleSpec, prev *Table) (*certificate, error) {
	if spec.Certificate == nil || !spec.Termination.terminates() {
		return nil, nil
	}
	return b.certificate(spec.Certificate, prev)
}

// certificate returns the certificate of spec. A content that was parsed for this table or prev, which may be nil, is not parsed again.
func (b *builder) certificate(spec *CertificateSpec, prev *Table) (*certificate, error) {
	sum := spec.sum()
	if c := contentOf(&b.certs.cow, sum); c != nil {
		return c, nil
	}
	if prev != nil {
		if c := contentOf(&prev.certs, sum); c != nil {
			return c, nil
		}
	}
	return spec.parse(sum)
}

// clientAuth is certificate for what clients have to show, nil for none.
func (b *builder) clientAuth(spec *ClientAuthSpec, prev *Table) (*ClientAuth, error) {
	if spec == nil {
		return nil, nil
	}
	sum := spec.sum()
	if a := contentOf(&b.auths.cow, sum); a != nil {
		return a, nil
	}
	if prev != nil {
		if a := contentOf(&prev.auths, sum); a != nil {
			return a, nil
		}
	}
	return spec.parse(sum)
}

// table ends the work. The builder must not be used after it.
func (b *builder) table() *Table {
	for _, index := range b.indexes() {
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
		for _, index := range b.indexes() {
			index.remove(hash, same)
		}
	}
	return &Table{
		hosts:   b.pair.result(b.seed),
		guarded: b.guards > 0,
		guards:  b.guards,

		unavailable: b.unavailable,
		listened:    b.listened.result(b.seed),
		listeners:   b.listeners.result(),
		ports:       b.ports,
		numbers:     b.numbers,
		keys:        b.keys.result(),
		certs:       b.certs.result(),
		auths:       b.auths.result(),
		policies:    b.policies.result(),
		objects:     b.objects.result(),
		options:     b.options,
		order:       b.order,
		plan:        &plan{before: b.before, changes: b.last()},
	}
}

// indexes are all that have groups.
func (b *builder) indexes() [6]*edit[group] {
	p, l := &b.pair, &b.listened
	return [...]*edit[group]{p.exact, p.wild, p.deep, l.exact, l.wild, l.deep}
}

// close completes a group.
func (b *builder) close(g *group, sorted int) {
	if g.close(sorted, b.gone) == 0 {
		b.empty = append(b.empty, g)
	}
}
