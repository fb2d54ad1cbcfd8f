package controller

import (
	"cmp"
	"slices"

	shards "turnout/controller/shard/api"
	"turnout/controller/source"
)

// NameChain is how clients find a route that is bound to Routers.
type NameChain struct {
	Name    string       // by which clients ask for it
	Target  string       // that the system has given it: what Name has to be a CNAME of, unless it is the same
	Routers []NameRouter // that Target leads to, by name
}

// NameRouter is a Router that a name leads to.
type NameRouter struct {
	Name      string
	Addresses []string // none: no replica is ready, or nobody may read them
}

// NameChains are how the routes of some RouteBindings are found, by the Routers among the events. Bindings that leave count where there are no others: DNS names
// their Routers no more.
func NameChains(events []source.Event) map[source.Key]*NameChain {
	addresses := make(map[string][]string)
	stays := make(map[source.Key]bool)
	for _, e := range events {
		switch o := e.Object.(type) {
		case *shards.Router:
			addresses[o.Name] = o.Status.Addresses
		case *shards.RouteBinding:
			key := routeOf(o)
			stays[key] = stays[key] || !o.Spec.Leaving
		}
	}
	all := make(map[source.Key]*NameChain)
	for _, e := range events {
		o, ok := e.Object.(*shards.RouteBinding)
		if !ok || o.Spec.Leaving && stays[routeOf(o)] {
			continue
		}
		c := all[routeOf(o)]
		if c == nil {
			c = &NameChain{Name: o.Spec.DNS, Target: o.Spec.Target}
			all[routeOf(o)] = c
		}
		c.Routers = append(c.Routers, NameRouter{o.Spec.Router, addresses[o.Spec.Router]})
		slices.SortFunc(c.Routers, func(a, b NameRouter) int { return cmp.Compare(a.Name, b.Name) })
	}
	return all
}

func routeOf(o *shards.RouteBinding) source.Key {
	return source.Key{Namespace: o.Spec.RouteNamespace, Name: o.Spec.RouteName}
}
