package cluster

import (
	"context"
	"strconv"
	"sync"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	shards "turnout/controller/shard/api"
	"turnout/controller/source"
)

// readsAtOnce is how many routes are read by name at a time.
const readsAtOnce = 8

// boundRoutes is which routes a replica of a Router gets: those that a RouteBinding of the Router names. Of all others only the version is known, so that a
// replica needs memory for the routes of its Router, not for those of the cluster. A route that is bound when it is known already is read by its name.
type boundRoutes struct {
	read func(ctx context.Context, key source.Key) (*routev1.Route, error) // nil without an error = it is not there
	log  *zap.Logger
	wait backoff

	mu        sync.Mutex
	routes    *store                    // its state is guarded by mu; set before the first call
	of        map[source.Key]source.Key // binding to route
	at        map[source.Key]int        // route to the number of its bindings; none is 0
	delivered map[source.Key]struct{}
	asked     map[source.Key]*ask   // bound routes that are to be read
	queue     []source.Key          // of asked, those that nobody reads yet, and others that are not asked for any more
	ahead     map[source.Key]uint64 // versions of routes that were read by name and that the watch has not reached
	more      chan struct{}         // has a value when queue may have keys
}

// ask is one wish to read a route. What the watch says of the route meanwhile makes it void: it is not in asked any more.
type ask struct{ reading bool }

func newBoundRoutes(c *clients, log *zap.Logger, wait backoff) *boundRoutes {
	return &boundRoutes{
		read: c.routeByName, log: log, wait: wait,
		of: make(map[source.Key]source.Key), at: make(map[source.Key]int), delivered: make(map[source.Key]struct{}),
		asked: make(map[source.Key]*ask), ahead: make(map[source.Key]uint64), more: make(chan struct{}, 1),
	}
}

// join has the stores of routes and of bindings work with each other; nil for who reads all routes.
func (b *boundRoutes) join(s *store) {
	switch {
	case b == nil:
	case s.kind == source.Route:
		b.routes, s.bound = s, b
	case s.kind == source.RouteBinding:
		s.bind = b
	}
}

// routeByName reads one route, which a replica may do that may list routes and not get them.
func (c *clients) routeByName(ctx context.Context, key source.Key) (*routev1.Route, error) {
	var list routev1.RouteList
	err := c.route.Get().Namespace(key.Namespace).Resource("routes").
		VersionedParams(&metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name).String()}, c.parameters).
		MaxRetries(0).Do(ctx).Into(&list)
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// bind notes what a binding names; nil = it is gone.
func (b *boundRoutes) bind(key source.Key, binding *shards.RouteBinding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	route := source.Key{}
	if binding != nil && binding.Spec.RouteNamespace == binding.Namespace { // another's routes are not for a tenant to bind
		route = source.Key{Namespace: binding.Spec.RouteNamespace, Name: binding.Spec.RouteName}
	}
	was, known := b.of[key]
	if known && was == route {
		return
	}
	if route != (source.Key{}) {
		b.of[key] = route
		if b.at[route]++; b.at[route] == 1 {
			b.ask(route)
		}
	} else {
		delete(b.of, key)
	}
	if known {
		b.unbind(was)
	}
}

// unbind takes one binding from a route.
func (b *boundRoutes) unbind(route source.Key) {
	if b.at[route]--; b.at[route] > 0 {
		return
	}
	delete(b.at, route)
	delete(b.asked, route)
	delete(b.ahead, route)
	if _, was := b.delivered[route]; was {
		delete(b.delivered, route)
		b.routes.pass(route, nil)
	}
}

// ask has a bound route read, if there is one of that name.
func (b *boundRoutes) ask(route source.Key) {
	if _, there := b.routes.held[route]; !there {
		return // the watch brings it
	}
	b.asked[route] = new(ask)
	b.queue = append(b.queue, route)
	b.wake()
}

func (b *boundRoutes) wake() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// take reports whether an object that the watch has brought is to be delivered.
func (b *boundRoutes) take(key source.Key, object runtime.Object) bool {
	if b.at[key] == 0 {
		return false
	}
	route, whole := object.(*routev1.Route)
	if !whole { // it was not bound when it came
		if b.asked[key] == nil {
			b.ask(key)
		}
		return false
	}
	delete(b.asked, key)
	if newest, is := b.ahead[key]; is {
		if now, err := strconv.ParseUint(route.ResourceVersion, 10, 64); err == nil && now < newest {
			return false // what was read by name is newer
		}
		delete(b.ahead, key)
	}
	b.delivered[key] = struct{}{}
	return true
}

// drop notes that the watch says that a route is gone, and reports whether it had been delivered.
func (b *boundRoutes) drop(key source.Key) bool {
	_, was := b.delivered[key]
	delete(b.delivered, key)
	delete(b.asked, key)
	delete(b.ahead, key)
	return was
}

// lean returns what the store is to know of a route: all of it if it is bound, else only who it is.
func (b *boundRoutes) lean(x any) any {
	o, is := x.(*routev1.Route)
	if !is {
		return x
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at[source.Key{Namespace: o.Namespace, Name: o.Name}] > 0 {
		return x
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}
}

// run reads what is asked for until ctx is done.
func (b *boundRoutes) run(ctx context.Context) {
	var readers sync.WaitGroup
	for range readsAtOnce {
		readers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-b.more:
				}
				for b.readNext(ctx) {
				}
			}
		})
	}
	readers.Wait()
}

// readNext reads the next route that is asked for, however long that takes. It returns false when there is none, and when ctx is done.
func (b *boundRoutes) readNext(ctx context.Context) bool {
	key, asked := b.next()
	if asked == nil {
		return false
	}
	b.wake() // another may go on with the rest
	for attempt := 0; ; attempt++ {
		route, err := b.read(ctx, key)
		if err == nil {
			b.answer(key, asked, route)
			return true
		}
		if attempt == 0 {
			b.log.Warn("a route that is bound to this Router cannot be read; it is tried again", zap.Stringer("route", key), zap.Error(err))
		}
		if !b.wait.sleep(ctx, attempt, err) || !b.isAsked(key, asked) {
			return ctx.Err() == nil
		}
	}
}

func (b *boundRoutes) next() (source.Key, *ask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 {
		key := b.queue[0]
		b.queue = b.queue[1:]
		if asked := b.asked[key]; asked != nil && !asked.reading {
			asked.reading = true
			return key, asked
		}
	}
	b.queue = nil
	return source.Key{}, nil
}

func (b *boundRoutes) isAsked(key source.Key, asked *ask) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[key] == asked
}

// answer delivers a route that was read, unless the watch was faster.
func (b *boundRoutes) answer(key source.Key, asked *ask, route *routev1.Route) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked[key] != asked {
		return
	}
	delete(b.asked, key)
	if route == nil {
		return // the watch says so, too
	}
	if version, err := strconv.ParseUint(route.ResourceVersion, 10, 64); err == nil && b.routes.held[key] != b.routes.versionOf(route) {
		b.ahead[key] = version
	}
	b.delivered[key] = struct{}{}
	b.routes.trim(route)
	b.routes.pass(key, route)
}
