package translate

import (
	"fmt"
	"slices"

	"turnout/balancer"
	"turnout/controller/endpoints"
	"turnout/internal/wire/protocol"
)

// fleet is what of a route decides its servers, besides the endpoints.
type fleet struct {
	kind  endpoints.Kind
	names []backend
	asked bool   // checks send a request
	idle  string // what is said if no endpoint can be chosen; "" = nothing
}

// Shared remembers the servers of routes while the endpoints of services stay as they are: routes that lead to the same services in
// the same way have one list of targets, and not one each. The zero value is empty. It is for one goroutine at a time.
type Shared struct {
	known map[crewKey]crew
}

// crewKey is all that the servers of a route depend on.
type crewKey struct {
	kind     endpoints.Kind
	asked    bool
	idle     string
	services [sharedServices]crewService
}

// sharedServices is how many services a route may have for its servers to be shared. The API allows no more.
const sharedServices = 4

// crewService is one service of a crewKey.
type crewService struct {
	set         *endpoints.Set
	weight      int
	tls         *balancer.TLS
	unreachable bool
}

// crew is the servers of routes and what is to be noted about them. It does not change.
type crew struct {
	targets []balancer.Target
	notes   []string
}

// Forget forgets everything: endpoints have changed.
func (s *Shared) Forget() { s.known = nil }

// crew returns the servers of a route and what is to be noted about them. shared may be nil.
func (f *fleet) crew(service func(name string) *endpoints.Set, shared *Shared) crew {
	sets := make([]*endpoints.Set, len(f.names))
	for i, b := range f.names {
		sets[i] = service(b.name)
	}
	if shared == nil || len(sets) > sharedServices {
		return f.muster(sets)
	}
	key := crewKey{kind: f.kind, asked: f.asked, idle: f.idle}
	for i, b := range f.names {
		key.services[i] = crewService{sets[i], b.weight, b.tls, b.unreachable}
	}
	c, ok := shared.known[key]
	if !ok {
		c = f.muster(sets)
		if shared.known == nil {
			shared.known = make(map[crewKey]crew)
		}
		shared.known[key] = c
	}
	return c
}

// muster is crew for the sets of the services.
func (f *fleet) muster(sets []*endpoints.Set) (c crew) {
	list := make([]endpoints.Weighted, 0, len(f.names))
	usable := 0
	for i, b := range f.names {
		set := sets[i]
		c.notes = append(c.notes, set.Notes...)
		matching := len(set.Matching(f.kind.Port))
		if matching == 0 && len(set.Endpoints) > 0 {
			c.notes = append(c.notes, fmt.Sprintf("service %s has no endpoint with port %s", b.name, f.kind.Port))
		}
		if b.unreachable {
			continue
		}
		if b.weight > 0 {
			usable += matching
		}
		list = append(list, endpoints.Weighted{Set: set, Weight: b.weight, TLS: b.tls})
	}
	if usable == 0 && f.idle != "" {
		c.notes = append(c.notes, f.idle)
	}
	c.targets = endpoints.Targets(f.kind, list)
	if f.asked && slices.ContainsFunc(c.targets, func(t balancer.Target) bool { return t.Protocol != protocol.HTTP1 }) {
		c.notes = append(c.notes, "annotation "+annotationCheckPath+": has no effect on endpoints that speak HTTP/2 without TLS; their checks are a connect")
	}
	return c
}

// fill gives the route its servers.
func (r *Result) fill(service func(name string) *endpoints.Set, shared *Shared) {
	c := r.fleet.crew(service, shared)
	own := r.Notes[:r.own]
	r.Targets, r.Notes = c.targets, c.notes
	if r.Spec != nil {
		r.Spec.Targets = c.targets
	}
	r.beside.sides(func(s *side) {
		of := s.fleet.crew(service, shared)
		s.targets = of.targets
		for _, note := range of.notes {
			if !slices.Contains(r.Notes, note) {
				r.Notes = append(slices.Clip(r.Notes), note)
			}
		}
	})
	if len(own) > 0 {
		r.Notes = append(slices.Clip(own), r.Notes...)
	}
}

// Refill gives the route its servers anew after its endpoints changed, and what is to be noted about them. All else about the
// route stays. shared may be nil.
func (r *Result) Refill(service func(name string) *endpoints.Set, shared *Shared) {
	r.fill(service, shared)
}

// ChoosesAs reports whether two results of one route have the same services, with weights and ports.
func (r *Result) ChoosesAs(o *Result) bool {
	return r.fleet.kind == o.fleet.kind && slices.Equal(r.fleet.names, o.fleet.names) && r.beside.sameAs(o.beside)
}
