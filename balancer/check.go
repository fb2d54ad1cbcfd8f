package balancer

import (
	"sync/atomic"
	"time"
	"unique"

	"turnout/internal/wire/protocol"
)

// Request is what a server is asked, and which answers say that it is well.
type Request struct {
	Path        string // request-target in origin-form (RFC 9112 section 3.2.1)
	Host        string // value of Host
	Least, Most int    // the statuses of a server that is well, both of them included
}

// Passes reports whether an answer of this status says that the server is well.
func (r Request) Passes(status int) bool { return r.Least <= status && status <= r.Most }

// HTTPCheck is a Request, kept once however many routes have it, or none. Two of them are == if they ask for the same. The
// zero value is none: to be connected, with the TLS of requests where the endpoint wants it, is enough.
type HTTPCheck struct{ request unique.Handle[Request] }

// NewHTTPCheck returns the check by a request.
func NewHTTPCheck(r Request) HTTPCheck { return HTTPCheck{unique.Make(r)} }

// Asks reports whether there is a request.
func (h HTTPCheck) Asks() bool { return h != HTTPCheck{} }

// Request returns the request, the zero value if there is none.
func (h HTTPCheck) Request() Request {
	if !h.Asks() {
		return Request{}
	}
	return h.request.Value()
}

// Check is one way of checking one endpoint. All pools that want the endpoint checked in this way share it, and what it finds
// is true for them alone: where another pool asks for something else, that is another Check. It is made by a Registry when
// the first pool wants it, forgotten with the last one, and safe for use by any goroutine.
type Check struct {
	member  *member // the first that wanted it
	http    HTTPCheck
	results atomic.Pointer[checkResults] // nil = it was not made yet

	// Guarded by Registry.mu.
	watches  watches       // groups that want it
	interval time.Duration // the shortest that any of them wants

	down atomic.Bool
}

// key returns the identity of c.
func (c *Check) key() checkKey { return checkKey{c.Endpoint(), c.http} }

// checkKey is the full identity of a check.
type checkKey struct {
	endpoint *Endpoint
	http     HTTPCheck
}

// Endpoint returns what is checked.
func (c *Check) Endpoint() *Endpoint { return c.member.endpoint }

// Service returns the name of a service whose endpoint it is.
func (c *Check) Service() string { return c.member.service() }

// HTTP returns what is asked.
func (c *Check) HTTP() HTTPCheck { return c.http }

// Down reports that the check fails.
func (c *Check) Down() bool { return c.down.Load() }

// PoolsOf returns the keys of pools that want a check, at most so many, and how many there are.
func (r *Registry) PoolsOf(c *Check, most int) (keys []string, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range c.watches.all {
		for _, p := range w.group.pools {
			if all++; len(keys) < most {
				keys = append(keys, p.key)
			}
		}
	}
	return keys, all
}

// keyOf is the identity of the check that a group wants of e. Who speaks no HTTP/1.1 is not asked.
func (g *group) keyOf(e *Endpoint) checkKey {
	if e.Protocol() != protocol.HTTP1 {
		return checkKey{endpoint: e}
	}
	return checkKey{e, g.http}
}

// findCheck returns the check of an identity, nil if no pool wants it. r.mu is held.
func (r *Registry) findCheck(key checkKey) *Check {
	if !key.http.Asks() {
		return key.endpoint.check
	}
	return r.asked[key]
}

// setCheck has findCheck return c, nil for none, from now on. r.mu is held.
func (r *Registry) setCheck(key checkKey, c *Check) {
	if !key.http.Asks() {
		key.endpoint.check = c
		return
	}
	if c == nil {
		delete(r.asked, key)
		return
	}
	r.asked[key] = c
}

// check finds or makes the check that g wants of m. r.mu is held.
func (r *Registry) check(g *group, m *member) *Check {
	key := g.keyOf(m.endpoint)
	c := r.findCheck(key)
	if c == nil {
		c = &Check{member: m, http: key.http}
		r.setCheck(key, c)
		r.checks++
		if key.http.Asks() {
			r.asking[g.roster.namespace]++
		}
	}
	return c
}

// Watch has fn called with every check that is to be made, at which interval, and of each
// change of it; 0 = not any more. It is called at once with those that are known. fn is called
// with the registry locked and must not call back into it. There is one fn at a time.
func (r *Registry) Watch(fn func(c *Check, interval time.Duration)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watcher = fn
	for e := range r.endpoints.All() {
		if c := e.check; c != nil {
			fn(c, c.interval)
		}
	}
	for _, c := range r.asked {
		fn(c, c.interval)
	}
}

// SetDown takes an endpoint out of the choice in all pools that want this check of it, or lets
// it back in. A pool whose servers are all down chooses as if none were.
func (r *Registry) SetDown(c *Check, down bool) {
	r.mu.Lock()
	if c.down.Swap(down) == down {
		r.mu.Unlock()
		return
	}
	if r.clock != nil {
		c.counted().setDown(down, r.clock.Now())
	}
	var ready []*Waiter
	seen := make(map[*group]struct{}, 1)
	for w := range c.watches.all {
		if _, twice := seen[w.group]; twice {
			continue
		}
		seen[w.group] = struct{}{}
		w.group.judge()
		for _, p := range w.group.pools {
			ready = append(ready, p.rebuild()...)
		}
	}
	r.mu.Unlock()
	call(ready)
}

// watch has the members of a new group checked. r.mu is held.
func (r *Registry) watch(g *group) {
	g.checks = make([]checked, len(g.roster.members))
	for i, m := range g.roster.members {
		if m.noCheck {
			continue
		}
		c := r.check(g, m)
		g.checks[i] = checked{c, c.watches.add(watch{g, int32(i)})}
		r.setInterval(c, g.every)
	}
}

// unwatch takes back what watch did. r.mu is held.
func (r *Registry) unwatch(g *group) {
	for _, ch := range g.checks {
		if ch.check == nil {
			continue
		}
		ch.check.watches.remove(ch.watch)
		r.setInterval(ch.check, 0)
	}
}

// setInterval tells the watcher if the interval of c is another one now. added is that
// of a group that has just begun to want it, 0 = none has.
func (r *Registry) setInterval(c *Check, added time.Duration) {
	shortest := c.shortest(added)
	if shortest == c.interval {
		return
	}
	c.interval = shortest
	if shortest == 0 {
		r.setCheck(c.key(), nil)
		r.checks--
		if namespace := c.Endpoint().Namespace(); c.http.Asks() {
			if r.asking[namespace]--; r.asking[namespace] == 0 {
				delete(r.asking, namespace)
			}
		}
	}
	if r.watcher != nil {
		r.watcher(c, shortest)
	}
}

// shortest is the shortest interval of all that want c, 0 without any. It does not look at
// all of them while the one it had before is still wanted: thousands of routes may share an endpoint.
func (c *Check) shortest(added time.Duration) time.Duration {
	if added > 0 && (added < c.interval || c.interval == 0) {
		return added
	}
	var least time.Duration
	for w := range c.watches.all {
		if w.group.every == c.interval {
			return w.group.every
		}
		if least == 0 || w.group.every < least {
			least = w.group.every
		}
	}
	return least
}
