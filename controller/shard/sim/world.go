// Package sim is a cluster in virtual time for the Planner of package shard: objects with resource versions, writes that take time and may
// fail, watches that lag behind, replicas of routers that serve what is bound and report it. It checks what is written against what clients
// need, and measures a million routes. The Planner is the real one.
package sim

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"turnout/controller/shard"
)

// Options is how the cluster behaves. Zero values are no time at all.
type Options struct {
	Config      shard.Config
	Replicas    int           // of each router
	WriteTime   time.Duration // of a write
	WatchLag    time.Duration // until an object that has changed is seen
	ReportEvery time.Duration // between reports of a replica
	Tick        time.Duration // time goes on in steps of this; 0: 1 ms
	Admit       bool          // routers write on a route that they have admitted it
	Seed        uint64
	// Requests is how many requests a second a route gets, which replicas report; nil: none. It is the same whenever it is asked.
	Requests func(*shard.Route) float64
	// Fault says what becomes of a write before it is done; Written: what the API makes of it.
	Fault func(shard.Action) shard.Outcome
	// Check has each write checked against what clients need; what is wrong is in World.Wrong.
	Check bool
}

// World is a cluster. It is made by New and used by one goroutine.
type World struct {
	options Options
	rand    *rand.Rand
	begun   time.Time
	now     time.Duration
	version uint64

	namespaces map[string]shard.Labels
	routes     map[shard.Key]*routeObject // those too that do not exist, and have bindings
	routers    map[string]*routerObject
	bindings   int
	unrouted   int // of these, those to routers that do not exist
	underWay   int // bindings that leave or take others' places
	unsettled  int // routes
	schedulers []*Scheduler
	events     eventHeap
	order      uint64
	addresses  []string        // of all replicas
	deleted    []time.Duration // bindings, lately
	calm       time.Duration   // until then writes of schedulers that have ended, and of people, are in the way of others

	// Writes counts what was written, by kind.
	Writes map[shard.Kind]int
	// Wrong is what was written that must not have been.
	Wrong []string
	// Events are reasons of reports, counted.
	Events map[string]int
}

// event is something that happens at a time.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is heap.Interface's.
func (h *eventHeap) Push(x any) { *h = append(*h, x.(event)) }

// Pop is heap.Interface's.
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

// New returns a cluster without objects and without a scheduler.
func New(options Options) *World {
	if options.Tick <= 0 {
		options.Tick = time.Millisecond
	}
	options.Replicas = max(options.Replicas, 1)
	if options.ReportEvery <= 0 {
		options.ReportEvery = 10 * time.Second
	}
	return &World{
		options:    options,
		rand:       rand.New(rand.NewPCG(options.Seed, 1)),
		begun:      time.Unix(1_700_000_000, 0),
		namespaces: make(map[string]shard.Labels),
		routes:     make(map[shard.Key]*routeObject),
		routers:    make(map[string]*routerObject),
		Writes:     make(map[shard.Kind]int),
		Events:     make(map[string]int),
		addresses:  []string{"192.0.2.1"},
	}
}

// Now is the time since the cluster began.
func (w *World) Now() time.Duration { return w.now }

func (w *World) clock() time.Time { return w.begun.Add(w.now) }

// after has something done later.
func (w *World) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, event{w.now + d, w.order, do})
}

func (w *World) wrongf(format string, args ...any) {
	if len(w.Wrong) < 100 {
		w.Wrong = append(w.Wrong, fmt.Sprintf("%v: ", w.now)+fmt.Sprintf(format, args...))
	}
}

// nextVersion is a new resource version.
func (w *World) nextVersion() uint64 { w.version++; return w.version }

// SetNamespace makes or changes a namespace.
func (w *World) SetNamespace(name string, labels map[string]string) {
	w.namespaces[name] = shard.MakeLabels(labels)
	w.tell(func(p *shard.Planner) { p.SetNamespace(name, shard.MakeLabels(labels)) })
}

// SetRoute makes or changes a route.
func (w *World) SetRoute(spec shard.Route) {
	key := spec.Key()
	r := w.routes[key]
	if r == nil {
		r = &routeObject{settled: true}
		w.routes[key] = r
	}
	if r.exists && (r.spec.UID != spec.UID || r.spec.Host != spec.Host || r.spec.Path != spec.Path) {
		r.excused = true
	}
	if spec.Host != "" {
		// It may take the host from others, or give it back.
		for _, other := range w.routes {
			if other.exists && other.spec.Host == spec.Host && other != r {
				other.excused = true
			}
		}
	}
	w.become(r, spec, true)
	w.routeChanged(r)
}

// become has a route be there, or not.
func (w *World) become(r *routeObject, spec shard.Route, exists bool) {
	for _, b := range r.bindings {
		if to := w.routers[b.router]; to != nil {
			w.load(to, b, -1)
		}
	}
	r.spec, r.exists = spec, exists
	for _, b := range r.bindings {
		if to := w.routers[b.router]; to != nil {
			w.load(to, b, 1)
		}
	}
	w.recount(r)
}

func (w *World) routeChanged(r *routeObject) {
	r.version = w.nextVersion()
	spec, view, admitted := r.spec, r.view(), r.admitted()
	w.tell(func(p *shard.Planner) { p.SetRoute(spec, view, admitted) })
}

// DeleteRoute deletes a route; the garbage collector deletes its bindings later.
func (w *World) DeleteRoute(key shard.Key) {
	r := w.routes[key]
	if r == nil || !r.exists {
		return
	}
	uid := r.spec.UID
	w.become(r, shard.Route{Namespace: key.Namespace, Name: key.Name}, false)
	r.write(&shard.View{})
	r.rare, r.excused = nil, false
	for _, b := range r.bindings {
		w.label(b, false)
	}
	if len(r.bindings) == 0 {
		delete(w.routes, key)
	}
	w.nextVersion()
	w.tell(func(p *shard.Planner) { p.DeleteRoute(key) })
	w.after(time.Duration(w.rand.Int64N(int64(10*time.Second))), func() {
		for _, b := range w.routes[key].inOrder() {
			if b.uid == uid {
				w.deleteBinding(b)
			}
		}
	})
}

// SetRouter makes or changes a router. Its replicas report from then on.
func (w *World) SetRouter(spec shard.Router) {
	r := w.routers[spec.Name]
	if r == nil {
		r = &routerObject{unlabeled: make(map[*bindingObject]struct{})}
		w.routers[spec.Name] = r
		for i := range w.options.Replicas {
			e := &replica{name: fmt.Sprintf("%s-%d", spec.Name, i), up: true, ready: true}
			r.replicas = append(r.replicas, e)
			e.renewed = w.clock()
			w.after(time.Duration(w.rand.Int64N(int64(w.options.ReportEvery))), func() { w.report(spec.Name, r, e) })
		}
		if w.unrouted > 0 {
			for _, route := range w.routes {
				for _, b := range route.bindings {
					if b.router == spec.Name {
						w.unrouted--
						w.enter(r, b)
					}
				}
			}
		}
	}
	r.spec = spec
	w.routerChanged(r)
}

// Router returns what was given to SetRouter last. The bool is false if there is none.
func (w *World) Router(name string) (shard.Router, bool) {
	r := w.routers[name]
	if r == nil {
		return shard.Router{}, false
	}
	return r.spec, true
}

func (w *World) routerChanged(r *routerObject) {
	r.status.Version = w.nextVersion()
	spec := r.spec
	spec.Replicas = make([]shard.Replica, 0, len(r.replicas))
	for _, e := range r.replicas {
		spec.Replicas = append(spec.Replicas, w.replica(r, e))
	}
	status := r.status
	w.tell(func(p *shard.Planner) { p.SetRouter(spec, status) })
}

// replica is what a replica has reported.
func (w *World) replica(r *routerObject, e *replica) shard.Replica {
	return shard.Replica{
		Name: e.name, Ready: e.ready, Observed: e.observed, Renewed: e.renewed, Addresses: w.addresses, RequestsPerSecond: int(r.requests) / len(r.replicas),
	}
}

// DeleteRouter deletes a router. Its replicas go on serving, but say nothing.
func (w *World) DeleteRouter(name string) {
	r := w.routers[name]
	if r == nil {
		return
	}
	w.unrouted += len(r.bound)
	delete(w.routers, name)
	w.nextVersion()
	w.tell(func(p *shard.Planner) { p.DeleteRouter(name) })
}

// Stop has the replicas of a router neither run nor report; Start has them again.
func (w *World) Stop(name string) { w.setUp(name, false) }

// Start has the replicas of a router run again.
func (w *World) Start(name string) { w.setUp(name, true) }

func (w *World) setUp(name string, up bool) {
	if r := w.routers[name]; r != nil {
		for _, e := range r.replicas {
			if up && !e.up {
				e.since = w.now
			}
			e.up = up
		}
	}
}

// report is what a replica does from time to time: it serves what it sees and says so.
func (w *World) report(name string, r *routerObject, e *replica) {
	if w.routers[name] != r {
		return
	}
	w.after(w.options.ReportEvery, func() { w.report(name, r, e) })
	if !e.up {
		return
	}
	if !e.held {
		e.renewed = w.clock().Add(e.skew)
	}
	// It sees a binding when the watch has it, and serves it when the route has its label, by which it watches routes.
	e.observed = w.version
	for b := range r.unlabeled {
		e.observed = min(e.observed, b.version-1)
	}
	if w.options.Admit {
		list := slices.Clone(r.bound)
		slices.SortFunc(list, func(a, b *bindingObject) int { return cmp.Compare(a.version, b.version) })
		for _, b := range list {
			route := b.route
			if route.exists && b.version <= e.observed && !slices.Contains(route.admitted(), name) {
				if route.rare == nil {
					route.rare = &rare{}
				}
				route.rare.admitted = append(slices.Clone(route.rare.admitted), name)
				w.routeChanged(route)
			}
		}
	}
	w.routerChanged(r)
}

func sortedKeys[T any](m map[shard.Key]T) []shard.Key {
	list := make([]shard.Key, 0, len(m))
	for key := range m {
		list = append(list, key)
	}
	slices.SortFunc(list, func(a, b shard.Key) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return list
}
