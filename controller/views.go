package controller

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/ingress"
	"turnout/controller/source"
	"turnout/controller/status"
	"turnout/controller/translate"
	"turnout/internal/keyed"
)

// views is what other goroutines may see of the routes.
type views struct {
	options  atomic.Pointer[Options] // as they are now; immutable
	gateways gatewayViews

	mu       sync.RWMutex
	routes   *keyed.Set[source.Key, view]
	outside  map[string]map[string]*aside // routes that are not selected, by namespace and name; written by the owner alone, which reads them without mu
	rejected int
	changed  time.Time // when a table was published last; zero = never
}

// view is what others may know of one route. It is immutable, and small, because there
// is one of each route and few are looked at: shown makes what is seen.
type view struct {
	kept     *kept                 // private keys included
	status   *routev1.RouteIngress // what this router says of it; nil = nothing yet
	notes    []string
	origin   string
	servers  int
	valid    *validity // of its own certificate; nil = it has none
	rejected bool
	rule     *ingress.Rule // nil = somebody has written the route
	shard    *ShardReport  // nil = the router is no replica of a Router
}

// explain returns notes about the route at a time: those of its translation and what
// the time makes of its certificate.
func (v *view) explain(now time.Time) []string {
	if more := v.valid.notes(now); more != nil {
		return append(slices.Clone(v.notes), more...)
	}
	return v.notes
}

// setRoute says what a route is now.
func (v *views) setRoute(r *route) {
	next := &view{kept: r.kept, status: r.status, notes: r.tls.notes, origin: r.origin, rejected: !r.verdict.Admitted && !r.waiting, rule: r.rule, shard: r.shard}
	if r.result != nil {
		next.servers, next.valid = int(r.servers), r.valid
		if len(r.tls.notes) == 0 {
			next.notes = r.result.Notes
		} else {
			next.notes = append(slices.Clone(r.tls.notes), r.result.Notes...)
		}
	}
	if r.rule != nil && r.rule.Problem.Message != "" {
		next.notes = append([]string{r.rule.Problem.Message}, next.notes...)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if was := v.routes.Get(r.key); was != nil && was.rejected {
		v.rejected--
	}
	if next.rejected {
		v.rejected++
	}
	v.routes.Put(next)
}

// shown returns the route with the status it has or will have, and without private keys.
func (v *view) shown(options status.Options) *routev1.Route {
	out := v.kept.object() // what is changed below is replaced where it is shared, not written to
	if out.Spec.TLS != nil {
		out.Spec.TLS = withoutKeys(out.Spec.TLS)
	}
	out.Annotations = readOnes(out.Annotations)
	out.ManagedFields = nil
	if out.Spec.HTTPHeaders != nil {
		out.Spec.HTTPHeaders = withoutSecrets(out.Spec.HTTPHeaders)
	}
	if v.status != nil {
		out.Status.Ingress = status.WithEntry(options, out.Status.Ingress, v.status)
	}
	return out
}

func (v *views) remove(key source.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if was := v.routes.Delete(key); was != nil && was.rejected {
		v.rejected--
	}
}

// readOnes returns the annotations that the router reads. Others are not its business to show: kubectl keeps a copy of the whole
// object in one, its key included.
func readOnes(all map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range all {
		if translate.Reads(key) {
			if kept == nil {
				kept = make(map[string]string)
			}
			kept[key] = translate.Shown(value)
		}
	}
	return kept
}

// secretNames are parts of the names of headers whose values are secrets.
var secretNames = []string{"authorization", "cookie", "token", "secret", "password", "credential", "api-key", "apikey"}

// withoutSecrets returns header actions without the values of those that carry secrets.
func withoutSecrets(headers *routev1.RouteHTTPHeaders) *routev1.RouteHTTPHeaders {
	out := headers.DeepCopy()
	for _, list := range [][]routev1.RouteHTTPHeader{out.Actions.Request, out.Actions.Response} {
		for i := range list {
			set := list[i].Action.Set
			if set == nil {
				continue
			}
			if secretName(list[i].Name) {
				set.Value = redacted
			}
		}
	}
	return out
}

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

// setOptions has what is shown follow options.
func (v *views) setOptions(o Options) {
	o.DefaultDestinationCA = nil
	v.options.Store(&o)
}

// keys returns the keys of all views by namespace and name, those that follow after; its zero value is before all.
func (v *views) keys(after source.Key) []source.Key {
	v.mu.RLock()
	list := make([]source.Key, 0, v.routes.Len())
	for of := range v.routes.All() {
		if key := of.kept.key; order(key, after) > 0 {
			list = append(list, key)
		}
	}
	v.mu.RUnlock()
	slices.SortFunc(list, order)
	return list
}

func order(a, b source.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// each gives the views of keys that are still there, each as it is when it is its turn.
func (v *views) each(keys []source.Key) iter.Seq[view] {
	return func(yield func(view) bool) {
		for _, key := range keys {
			if r, ok := v.routeView(key.Namespace, key.Name); ok && !yield(r) {
				return
			}
		}
	}
}

func (v *views) routeView(namespace, name string) (view, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r := v.routes.Get(source.Key{Namespace: namespace, Name: name})
	if r == nil {
		return view{}, false
	}
	return *r, true
}

// Routes returns all routes as ListRoutes does.
func (c *Controller) Routes() []*routev1.Route {
	list, _ := c.ListRoutes("", 0)
	return slices.Collect(list)
}

// ListRoutes gives routes by namespace and name, with their status as it would be
// written to the API: those that follow after, NAMESPACE/NAME, "" = from the first on, at most limit, 0 = all. next is the last one
// if there are more. Private keys and other secrets are replaced by a word, and annotations that the router does not read are left
// out. The routes are shared and read-only, and made while they are asked for. Any goroutine may call it.
func (c *Controller) ListRoutes(after string, limit int) (list iter.Seq[*routev1.Route], next string) {
	namespace, name, _ := strings.Cut(after, "/")
	keys := c.views.keys(source.Key{Namespace: namespace, Name: name})
	if limit > 0 && len(keys) > limit {
		keys = keys[:limit]
		next = keys[limit-1].String()
	}
	return func(yield func(*routev1.Route) bool) {
		for v := range c.views.each(keys) {
			if !yield(v.shown(c.views.options.Load().status())) {
				return
			}
		}
	}, next
}

// Route returns one route as Routes does. The bool is false when there is none.
func (c *Controller) Route(namespace, name string) (*routev1.Route, bool) {
	v, ok := c.views.routeView(namespace, name)
	if !ok {
		return nil, false
	}
	return v.shown(c.views.options.Load().status()), true
}

// Notes returns what of a route has no effect or is missing: annotations with values
// that cannot be used, services that do not exist, addresses that are left out, a
// certificate that has expired or will within a week, or is for another host. Any
// goroutine may call it.
func (c *Controller) Notes(namespace, name string) []string {
	v, _ := c.views.routeView(namespace, name)
	return slices.Clone(v.explain(c.cfg.Clock()))
}

// Explanation is what a person should know about one route.
type Explanation struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Notes     []string `json:"notes"` // as Notes returns them
}

// Explanations gives the notes of all routes that have any, as ListRoutes gives routes. Any goroutine may call it.
func (c *Controller) Explanations(after string, limit int) (list iter.Seq[Explanation], next string) {
	namespace, name, _ := strings.Cut(after, "/")
	now := c.cfg.Clock()
	keys := slices.DeleteFunc(c.views.keys(source.Key{Namespace: namespace, Name: name}), func(key source.Key) bool {
		v, ok := c.views.routeView(key.Namespace, key.Name)
		return !ok || len(v.explain(now)) == 0
	})
	if limit > 0 && len(keys) > limit {
		keys = keys[:limit]
		next = keys[limit-1].String()
	}
	return func(yield func(Explanation) bool) {
		for v := range c.views.each(keys) {
			if !yield(Explanation{Namespace: v.kept.key.Namespace, Name: v.kept.key.Name, Notes: slices.Clone(v.explain(now))}) {
				return
			}
		}
	}, next
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
	return c.views.routes.Len(), c.views.rejected
}
