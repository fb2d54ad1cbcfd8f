package controller

import (
	"context"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/types"

	shards "turnout/controller/shard/api"
	"turnout/controller/source"
)

// bindings are the RouteBindings of the Router that this is a replica of.
type bindings struct {
	of map[source.Key]source.Key             // binding to route
	at map[source.Key]map[source.Key]binding // route to its bindings: more than one while a hand has made another
}

// binding is what a RouteBinding says.
type binding struct {
	uid     types.UID // of the route
	host    string
	target  string
	leaving bool
}

// find returns the binding of a route, nil if there is none of exactly this route; one that stays before one that leaves.
func (b *bindings) find(o *routev1.Route) (found *binding) {
	for _, of := range b.at[source.Key{Namespace: o.Namespace, Name: o.Name}] {
		if of.uid == o.UID && (found == nil || found.leaving) {
			found = &of
		}
	}
	return found
}

// bindingEvent takes a RouteBinding over and looks at its route again.
func (s *state) bindingEvent(e *source.Event) {
	if s.cfg.Options.Router == "" {
		return
	}
	if route, known := s.bindings.of[e.Key]; known {
		delete(s.bindings.of, e.Key)
		if at := s.bindings.at[route]; len(at) > 1 {
			delete(at, e.Key)
		} else {
			delete(s.bindings.at, route)
		}
		defer s.rebind(route)
	}
	o, _ := e.Object.(*shards.RouteBinding)
	if o == nil || o.Spec.Router != s.cfg.Options.Router || o.Spec.RouteNamespace != o.Namespace {
		return
	}
	route := source.Key{Namespace: o.Spec.RouteNamespace, Name: o.Spec.RouteName}
	s.bindings.of[e.Key] = route
	if s.bindings.at[route] == nil {
		s.bindings.at[route] = make(map[source.Key]binding, 1)
	}
	s.bindings.at[route][e.Key] = binding{uid: types.UID(o.Spec.RouteUID), host: o.Spec.DNS, target: o.Spec.Target, leaving: o.Spec.Leaving}
	s.rebind(route)
}

// rebind looks at a route again whose binding is another now.
func (s *state) rebind(key source.Key) {
	if r := s.routes.Get(key); r != nil {
		s.routeEvent(&source.Event{Kind: source.Route, Key: key, Object: s.objectOf(r), Order: r.order, Origin: r.origin})
		if r = s.routes.Get(key); r != nil {
			s.judgeAgain(r)
		}
		return
	}
	if a := s.views.outside[key.Namespace][key.Name]; a != nil {
		e := a.event()
		s.routeEvent(&e)
	}
}

// wantedHost is the host that a route asks for. A route that is bound and asks for none gets that of its binding.
func (s *state) wantedHost(o *routev1.Route) string {
	if s.selection.bound && (o.Spec.Host == "" || o.Annotations[shards.HostGenerated] == "true") {
		if b := s.bindings.find(o); b != nil {
			return b.host
		}
	}
	return o.Spec.Host
}

// ShardReport is how a route is bound to the Router that this is a replica of.
type ShardReport struct {
	Router  string `json:"router"`
	DNS     string `json:"dns,omitempty"`     // the name by which clients find it
	Target  string `json:"target,omitempty"`  // what a domain of the user's own points to
	Leaving bool   `json:"leaving,omitempty"` // others serve it from now on
}

// shardReport is nil without a Router, and for a route that is not bound.
func (s *state) shardReport(o *routev1.Route) *ShardReport {
	if s.cfg.Options.Router == "" {
		return nil
	}
	b := s.bindings.find(o)
	if b == nil {
		return nil
	}
	return &ShardReport{s.cfg.Options.Router, b.host, b.target, b.leaving}
}

// leaves reports whether a route is served elsewhere from now on.
func (s *state) leaves(o *routev1.Route) bool {
	if !s.selection.bound {
		return false
	}
	b := s.bindings.find(o)
	return b != nil && b.leaving
}

// Bound is what became of the routes that are bound to the Router.
type Bound struct {
	Known   int          // bound routes that are served, or said to be rejected
	Missing []source.Key // bound routes that are not known, or of which another was bound
	Leaving []LeavingRoute
}

// LeavingRoute is a route that others serve from now on, and how much it is still asked for here.
type LeavingRoute struct {
	Route    source.Key
	Binding  source.Key
	Requests uint64 // since the router was started
	Open     int64  // requests and tunnels that have not ended
}

// Bound returns what became of the routes that are bound. The owner answers; the error is that of ctx when that ends first.
func (c *Controller) Bound(ctx context.Context) (b Bound, err error) {
	return b, c.ask(ctx, func(s *state) {
		table := s.cfg.Store.Load()
		for key, all := range s.bindings.at {
			r := s.routes.Get(key)
			if r == nil {
				b.Missing = append(b.Missing, key)
				continue
			}
			b.Known++
			for name, of := range all {
				if !of.leaving || of.uid != r.kept.uid {
					continue
				}
				leaving := LeavingRoute{Route: key, Binding: name}
				if in := table.Route(r.tableKey()); in != nil {
					if stats := in.Counted(); stats != nil {
						leaving.Requests, leaving.Open = stats.Sessions.Total(), stats.Sessions.Current()
					}
				}
				b.Leaving = append(b.Leaving, leaving)
			}
		}
	})
}
