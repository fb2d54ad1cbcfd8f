package status

import (
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	maxContentions   = 5 // in an interval, before nothing is written any more
	contentionMemory = 3 // intervals after which a change is forgotten
)

// contention notices that another process writes other entries under the same name. It
// is not safe for concurrent use.
type contention struct {
	interval time.Duration // a contended route is left alone that long
	count    int           // contentions since the last flush, and routes contended then
	fresh    int           // contentions since the last flush
	routes   map[types.UID]*contended
}

// contended is what is known about one route.
type contended struct {
	at   time.Time
	last *routev1.RouteIngress // seen last; nil = none
	on   bool                  // contended; else a candidate
}

// changed tells that somebody changed the entry of a route to one this router does not
// agree with. nil is a removed entry.
func (c *contention) changed(uid types.UID, entry *routev1.RouteIngress, now time.Time) {
	if c.count > maxContentions {
		return
	}
	r := c.routes[uid]
	switch {
	case r == nil:
		c.routes[uid] = &contended{at: now, last: entry}
	case sameOpinion(r.last, entry):
	case r.on:
		c.count++
		c.fresh++
	default:
		r.at, r.last, r.on = now, entry, true
		c.count++
		c.fresh++
	}
}

// confirmed tells that the entry of a route is as this router wants it.
func (c *contention) confirmed(uid types.UID, entry *routev1.RouteIngress) {
	if r := c.routes[uid]; r != nil {
		r.last, r.on = entry, false
	}
}

// suspect makes the next change of an entry from what it should be contention.
func (c *contention) suspect(uid types.UID, entry *routev1.RouteIngress, now time.Time) {
	c.routes[uid] = &contended{at: now, last: entry}
}

// holds reports whether a route must not be written to.
func (c *contention) holds(uid types.UID, now time.Time) bool {
	if c.count > maxContentions {
		return true
	}
	r := c.routes[uid]
	return r != nil && r.on && now.Sub(r.at) <= c.interval
}

// flush forgets what is old, two intervals after the last flush. It returns how many
// contentions there were since.
func (c *contention) flush(now time.Time) int {
	fresh := c.fresh
	c.count, c.fresh = 0, 0
	for uid, r := range c.routes {
		age := now.Sub(r.at)
		switch {
		case age > contentionMemory*c.interval, r.on && age > c.interval:
			delete(c.routes, uid)
		case r.on:
			c.count++
		}
	}
	return fresh
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
