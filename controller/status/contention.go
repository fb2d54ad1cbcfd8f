package status

import (
	"slices"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	maxContentions   = 5 // in a namespace and an interval, before all routes that others changed there are left alone
	contentionMemory = 3 // intervals after which a change is forgotten
)

// contention notices that another process writes other entries under the same name. What it leads to stays with the routes
// that were changed: an account that may write to the status of some routes, as the administrator of a project, must not stop what
// is said of others. It is not safe for concurrent use.
type contention struct {
	interval time.Duration // a contended route is left alone that long
	routes   map[types.UID]*contended
	quarrels map[string]*quarrel // by namespace, those with contentions
}

// contended is what is known about one route that somebody changed.
type contended struct {
	namespace string
	at        time.Time
	last      *routev1.RouteIngress // seen last; nil = none
	on        bool                  // contended; else a candidate
}

// quarrel is the contentions in one namespace.
type quarrel struct {
	count int       // since the last flush, and routes contended then
	fresh int       // since the last flush
	last  time.Time // flush that found fresh ones
	again int       // routes taken up again at once since then
}

func newContention(interval time.Duration) contention {
	return contention{interval: interval, routes: make(map[types.UID]*contended), quarrels: make(map[string]*quarrel)}
}

// changed tells that somebody changed the entry of a route to one this router does not
// agree with. nil is a removed entry.
func (c *contention) changed(namespace string, uid types.UID, entry *routev1.RouteIngress, now time.Time) {
	r := c.routes[uid]
	switch {
	case r == nil:
		c.routes[uid] = &contended{namespace: namespace, at: now, last: entry}
	case sameOpinion(r.last, entry):
	default:
		if !r.on {
			r.at, r.last, r.on = now, entry, true
		}
		q := c.quarrel(namespace)
		q.count++
		q.fresh++
	}
}

// quarrel returns that of a namespace, made when it is asked for first.
func (c *contention) quarrel(namespace string) *quarrel {
	q := c.quarrels[namespace]
	if q == nil {
		q = new(quarrel)
		c.quarrels[namespace] = q
	}
	return q
}

// confirmed tells that the entry of a route is as this router wants it.
func (c *contention) confirmed(uid types.UID, entry *routev1.RouteIngress) {
	if r := c.routes[uid]; r != nil {
		r.last, r.on = entry, false
	}
}

// suspect makes the next change of an entry from what it should be contention.
func (c *contention) suspect(namespace string, uid types.UID, entry *routev1.RouteIngress, now time.Time) {
	c.routes[uid] = &contended{namespace: namespace, at: now, last: entry}
}

// holds reports whether a route must not be written to.
func (c *contention) holds(uid types.UID, now time.Time) bool {
	r := c.routes[uid]
	if r == nil {
		return false // nobody but this router has changed it
	}
	if q := c.quarrels[r.namespace]; q != nil && q.count > maxContentions {
		return true
	}
	return r.on && now.Sub(r.at) <= c.interval
}

// flush forgets what is old, two intervals after the last flush. It returns how many
// contentions there were since.
func (c *contention) flush(now time.Time) int {
	fresh := 0
	for _, q := range c.quarrels {
		if fresh += q.fresh; q.fresh > 0 {
			q.last, q.again = now, 0
		}
		q.count, q.fresh = 0, 0
	}
	for uid, r := range c.routes {
		age := now.Sub(r.at)
		switch {
		case age > contentionMemory*c.interval, r.on && age > c.interval:
			delete(c.routes, uid)
		case r.on:
			c.quarrel(r.namespace).count++
		}
	}
	return fresh
}

// reopen returns how many of the routes in a namespace that were left out may be taken up again now: none before nobody has
// interfered there for a time, then a few, and twice as many each time as long as it stays calm.
func (c *contention) reopen(namespace string, calm time.Duration, now time.Time) int {
	q := c.quarrel(namespace)
	if now.Sub(q.last) < calm {
		return 0
	}
	q.again = max(maxContentions, 2*q.again)
	return q.again
}

// settle forgets the quarrels that are over. left is, by namespace with routes that are left out, how many more could have been
// taken up, negative when some had to wait.
func (c *contention) settle(left map[string]int) {
	for namespace, q := range c.quarrels {
		n, some := left[namespace]
		switch {
		case !some && q.count == 0:
			delete(c.quarrels, namespace)
		case n >= 0:
			q.again = 0 // all of them
		}
	}
}

// where returns some of the namespaces with contentions.
func (c *contention) where() []string {
	var names []string
	for namespace := range c.quarrels {
		if names = append(names, namespace); len(names) == maxContentions {
			break
		}
	}
	slices.Sort(names)
	return names
}

// sameOpinion compares two entries, nil included, for contention: times do not count,
// and conditions about external certificates, which come and go with Secrets each
// process sees when it sees them, are equal to any.
func sameOpinion(a, b *routev1.RouteIngress) bool {
	if a == nil || b == nil {
		return a == b
	}
	if !sameButConditions(a, b) || len(a.Conditions) != len(b.Conditions) {
		return false
	}
	for i := range a.Conditions {
		found := false
		for j := range b.Conditions {
			x, y := &a.Conditions[i], &b.Conditions[j]
			found = found || passing(x.Reason) || passing(y.Reason) || sameCondition(x, y)
		}
		if !found {
			return false
		}
	}
	return true
}

// passing reports whether a reason may come and go without anybody disagreeing.
func passing(reason string) bool {
	switch reason {
	case "ExternalCertificateValidationFailed", "ExternalCertificateSecretRecreated",
		"ExternalCertificateSecretUpdated", "ExternalCertificateSecretDeleted":
		return true
	}
	return false
}
