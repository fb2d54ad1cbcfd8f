package member

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"turnout/controller/shard/api"
	"turnout/controller/source"
)

// known is a binding that was delivered.
type known struct {
	version uint64
	route   source.Key
}

// tracker is a source.Sink that notes which bindings pass through it.
type tracker struct {
	source.Sink

	changed atomic.Bool // bindings have come

	mu       sync.Mutex
	latest   uint64 // highest version of a binding that was delivered
	bindings map[source.Key]known
	since    map[source.Key]time.Time // when each route was first found missing
}

func newTracker(to source.Sink) *tracker {
	return &tracker{Sink: to, bindings: make(map[source.Key]known), since: make(map[source.Key]time.Time)}
}

// Event implements source.Sink. Events are passed on before they are noted: what was noted is with the controller.
func (t *tracker) Event(events ...source.Event) {
	t.Sink.Event(events...)
	for i := range events {
		if e := &events[i]; e.Kind == source.RouteBinding {
			t.note(e)
			t.changed.Store(true)
		}
	}
}

func (t *tracker) note(e *source.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, _ := e.Object.(*api.RouteBinding)
	if o == nil {
		delete(t.bindings, e.Key)
		return
	}
	version, _ := strconv.ParseUint(o.ResourceVersion, 10, 64) // Kubernetes promises a number; 0 is older than all
	t.latest = max(t.latest, version)
	t.bindings[e.Key] = known{version, source.Key{Namespace: o.Spec.RouteNamespace, Name: o.Spec.RouteName}}
}

// version is up to which version all bindings have been delivered.
func (t *tracker) version() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.latest
}

// missingPatience is how long a route may be missing before it holds nothing up any more: its binding is one that somebody made by hand, or its
// route is gone.
const missingPatience = 30 * time.Second

// observed is up to which version bindings are served, when those up to latest were delivered and these routes were not there.
func (t *tracker) observed(latest uint64, missing []source.Key, now time.Time) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	waits := make(map[source.Key]bool, len(missing))
	for _, key := range missing {
		if t.since[key].IsZero() {
			t.since[key] = now
		}
		waits[key] = now.Sub(t.since[key]) < missingPatience
	}
	for key := range t.since {
		if _, still := waits[key]; !still {
			delete(t.since, key)
		}
	}
	if len(waits) == 0 {
		return latest
	}
	for _, b := range t.bindings {
		if waits[b.route] && b.version > 0 {
			latest = min(latest, b.version-1)
		}
	}
	return latest
}

// waits reports whether routes are missing.
func (t *tracker) waits() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.since) > 0
}
