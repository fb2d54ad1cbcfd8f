// Package sim is a cluster in virtual time for the Planner of package shard: objects with resource versions, writes that take time and may
// fail, watches that lag behind, replicas of routers that serve what is bound and report it. It checks what is written against what clients
// need, and measures a million routes. The Planner is the real one.
package sim

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
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
	routes     map[shard.Key]*routeObject
	routers    map[string]*routerObject
	bindings   map[shard.Key]*bindingObject
	schedulers []*Scheduler
	events     eventHeap
	order      uint64
	deleted    []time.Duration // bindings, lately
	calm       time.Duration   // until then writes of schedulers that have ended, and of people, are in the way of others

	// Writes counts what was written, by kind.
	Writes map[shard.Kind]int
	// Wrong is what was written that must not have been.
	Wrong []string
	// Events are reasons of reports, counted.
	Events map[string]int
}

type routeObject struct {
	spec     shard.Route
	view     shard.View
	admitted []string
	bindings map[string]*bindingObject // by router
	excused  bool                      // somebody else has had a hand in it: it may be served by nothing for a while
}

type bindingObject struct {
	shard.Binding
	left    time.Duration // when it was marked
	hand    bool          // by somebody else
	served  bool          // DNS named it once
	labeled bool          // the route says that it is bound
}

type routerObject struct {
	spec      shard.Router
	status    shard.RouterStatus
	replicas  []*replica
	bound     map[shard.Key]*bindingObject
	unlabeled map[shard.Key]*bindingObject // of these, routes that do not say so yet
}

// replica is one of a router's.
type replica struct {
	name     string
	up       bool // it runs and reaches the API
	since    time.Duration
	ready    bool
	observed uint64
	skew     time.Duration // by which its clock is ahead
	held     bool          // its clock stands still
	renewed  time.Time
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
		bindings:   make(map[shard.Key]*bindingObject),
		Writes:     make(map[shard.Kind]int),
		Events:     make(map[string]int),
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

// next is a new resource version.
func (w *World) next() uint64 { w.version++; return w.version }

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
		r = &routeObject{bindings: make(map[string]*bindingObject)}
		w.routes[key] = r
	}
	if r.spec.UID != "" && (r.spec.UID != spec.UID || r.spec.Host != spec.Host || r.spec.Path != spec.Path) {
		r.excused = true
	}
	if spec.Host != "" {
		// It may take the host from others, or give it back.
		for _, other := range w.routes {
			if other.spec.Host == spec.Host && other != r {
				other.excused = true
			}
		}
	}
	r.spec = spec
	w.routeChanged(r)
}

func (w *World) routeChanged(r *routeObject) {
	r.view.Version = w.next()
	spec, view, admitted := r.spec, r.view, r.admitted
	w.tell(func(p *shard.Planner) { p.SetRoute(spec, view, admitted) })
}

// DeleteRoute deletes a route; the garbage collector deletes its bindings later.
func (w *World) DeleteRoute(key shard.Key) {
	r := w.routes[key]
	if r == nil {
		return
	}
	delete(w.routes, key)
	w.next()
	w.tell(func(p *shard.Planner) { p.DeleteRoute(key) })
	uid := r.spec.UID
	w.after(time.Duration(w.rand.Int64N(int64(10*time.Second))), func() {
		for _, b := range w.boundTo(key) {
			if b.RouteUID == uid {
				w.deleteBinding(b)
			}
		}
	})
}

// boundTo are the bindings of a route by their objects, in order.
func (w *World) boundTo(key shard.Key) []*bindingObject {
	var list []*bindingObject
	for _, router := range slices.Sorted(maps.Keys(w.routers)) {
		if b := w.bindings[shard.Key{Namespace: key.Namespace, Name: shard.BindingName(key.Name, router)}]; b != nil {
			list = append(list, b)
		}
	}
	return list
}

// SetRouter makes or changes a router. Its replicas report from then on.
func (w *World) SetRouter(spec shard.Router) {
	r := w.routers[spec.Name]
	if r == nil {
		r = &routerObject{bound: make(map[shard.Key]*bindingObject), unlabeled: make(map[shard.Key]*bindingObject)}
		w.routers[spec.Name] = r
		for i := range w.options.Replicas {
			e := &replica{name: fmt.Sprintf("%s-%d", spec.Name, i), up: true, ready: true}
			r.replicas = append(r.replicas, e)
			e.renewed = w.clock()
			w.after(time.Duration(w.rand.Int64N(int64(w.options.ReportEvery))), func() { w.report(spec.Name, r, e) })
		}
		for key, b := range w.bindings {
			if b.Router == spec.Name {
				r.bound[key] = b
				if !b.labeled {
					r.unlabeled[key] = b
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
	r.status.Version = w.next()
	spec := r.spec
	spec.Replicas = make([]shard.Replica, 0, len(r.replicas))
	for _, e := range r.replicas {
		spec.Replicas = append(spec.Replicas, shard.Replica{Name: e.name, Ready: e.ready, Observed: e.observed, Renewed: e.renewed, Addresses: []string{"192.0.2.1"}})
	}
	status := r.status
	w.tell(func(p *shard.Planner) { p.SetRouter(spec, status) })
}

// DeleteRouter deletes a router. Its replicas go on serving, but say nothing.
func (w *World) DeleteRouter(name string) {
	if w.routers[name] == nil {
		return
	}
	delete(w.routers, name)
	w.next()
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
	for _, b := range r.unlabeled {
		e.observed = min(e.observed, b.Version-1)
	}
	if w.options.Admit {
		for _, key := range sortedKeys(r.bound) {
			b := r.bound[key]
			route := w.routes[shard.Key{Namespace: b.Namespace, Name: b.Route}]
			if route != nil && b.Version <= e.observed && !slices.Contains(route.admitted, name) {
				route.admitted = append(slices.Clone(route.admitted), name)
				w.routeChanged(route)
			}
		}
	}
	w.routerChanged(r)
}

func sortedKeys[T any](m map[shard.Key]T) []shard.Key {
	list := slices.Collect(maps.Keys(m))
	slices.SortFunc(list, func(a, b shard.Key) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return list
}
