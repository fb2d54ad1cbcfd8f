package controller

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/source"
	"turnout/controller/status"
)

// views is what other goroutines may see of the routes.
type views struct {
	mu       sync.RWMutex
	routes   map[source.Key]view
	rejected int
	changed  time.Time // when a table was published last; zero = never
}

// view is what others may know of one route. It is immutable, and small, because there
// is one of each route and few are looked at: shown makes what is seen.
type view struct {
	object   *routev1.Route        // as its source has it, private keys included
	status   *routev1.RouteIngress // what this router says of it; nil = nothing yet
	notes    []string
	origin   string
	servers  int
	valid    validity // of its own certificate
	rejected bool
}

// explain returns notes about the route at a time: those of its translation and what
// the time makes of its certificate.
func (v *view) explain(now time.Time) []string {
	if more := v.valid.notes(now); more != nil {
		return append(slices.Clone(v.notes), more...)
	}
	return v.notes
}

// set says what a route is now.
func (v *views) set(r *route) {
	next := view{object: r.object, status: r.status, notes: r.tls.notes, origin: r.origin, rejected: !r.verdict.Admitted && !r.waiting}
	if r.result != nil {
		next.servers, next.valid = r.servers, r.valid
		if len(r.tls.notes) == 0 {
			next.notes = r.result.Notes
		} else {
			next.notes = append(slices.Clone(r.tls.notes), r.result.Notes...)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.routes[r.key].rejected {
		v.rejected--
	}
	if next.rejected {
		v.rejected++
	}
	v.routes[r.key] = next
}

// shown returns the route with the status it has or will have, and without private keys.
func (v *view) shown(options status.Options) *routev1.Route {
	out := *v.object // shallow: what is changed below is replaced, not written to
	if out.Spec.TLS != nil {
		out.Spec.TLS = withoutKeys(out.Spec.TLS)
	}
	if _, copied := out.Annotations[lastApplied]; copied {
		out.Annotations = maps.Clone(out.Annotations)
		delete(out.Annotations, lastApplied)
	}
	if v.status != nil {
		out.Status.Ingress = status.Put(options, out.Status.Ingress, v.status)
	}
	return &out
}

func (v *views) remove(key source.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.routes[key].rejected {
		v.rejected--
	}
	delete(v.routes, key)
}

// lastApplied is where kubectl keeps a copy of the whole object, its key included.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// redacted stands for a private key.
const redacted = "REDACTED"

// withoutKeys returns TLS settings without private keys.
func withoutKeys(tls *routev1.TLSConfig) *routev1.TLSConfig {
	hasKey := func(text string) bool { return strings.Contains(text, "PRIVATE KEY") }
	if tls.Key == "" && !hasKey(tls.Certificate) && !hasKey(tls.CACertificate) && !hasKey(tls.DestinationCACertificate) {
		return tls
	}
	out := tls.DeepCopy()
	if out.Key != "" {
		out.Key = redacted
	}
	for _, text := range []*string{&out.Certificate, &out.CACertificate, &out.DestinationCACertificate} {
		if hasKey(*text) {
			*text = redacted
		}
	}
	return out
}

// sorted returns all views by namespace and name.
func (v *views) sorted() []view {
	v.mu.RLock()
	list := make([]view, 0, len(v.routes))
	for _, r := range v.routes {
		list = append(list, r)
	}
	v.mu.RUnlock()
	slices.SortFunc(list, func(a, b view) int {
		return cmp.Or(cmp.Compare(a.object.Namespace, b.object.Namespace), cmp.Compare(a.object.Name, b.object.Name))
	})
	return list
}

func (v *views) get(namespace, name string) (view, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.routes[source.Key{Namespace: namespace, Name: name}]
	return r, ok
}

// Routes returns all routes by namespace and name, with their status as it would be
// written to the API. Private keys are replaced by a word. The routes are shared and
// read-only. Any goroutine may call it.
func (c *Controller) Routes() []*routev1.Route {
	list := c.views.sorted()
	out := make([]*routev1.Route, len(list))
	for i := range list {
		out[i] = list[i].shown(c.cfg.Options.status())
	}
	return out
}

// Route returns one route as Routes does. The bool is false when there is none.
func (c *Controller) Route(namespace, name string) (*routev1.Route, bool) {
	v, ok := c.views.get(namespace, name)
	if !ok {
		return nil, false
	}
	return v.shown(c.cfg.Options.status()), true
}

// Notes returns what of a route has no effect or is missing: annotations with values
// that cannot be used, services that do not exist, addresses that are left out, a
// certificate that has expired or will within a week, or is for another host. Any
// goroutine may call it.
func (c *Controller) Notes(namespace, name string) []string {
	v, _ := c.views.get(namespace, name)
	return slices.Clone(v.explain(c.cfg.Clock()))
}

// Explanation is what a person should know about one route.
type Explanation struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Notes     []string `json:"notes"` // as Notes returns them
}

// Explanations returns the notes of all routes that have any, by namespace and name. Any goroutine may call it.
func (c *Controller) Explanations() []Explanation {
	all, now := []Explanation{}, c.cfg.Clock()
	for _, v := range c.views.sorted() {
		if notes := v.explain(now); len(notes) > 0 {
			all = append(all, Explanation{Namespace: v.object.Namespace, Name: v.object.Name, Notes: slices.Clone(notes)})
		}
	}
	return all
}

// Changed returns when the table was published last, the zero value before the first. Any goroutine may call it.
func (c *Controller) Changed() time.Time {
	c.views.mu.RLock()
	defer c.views.mu.RUnlock()
	return c.views.changed
}

// publishedAt notes when a table was published.
func (v *views) publishedAt(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.changed = now
}

// Counts returns the number of routes and how many of them are rejected. Any goroutine
// may call it.
func (c *Controller) Counts() (routes, rejected int) {
	c.views.mu.RLock()
	defer c.views.mu.RUnlock()
	return len(c.views.routes), c.views.rejected
}
