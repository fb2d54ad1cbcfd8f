package translate

import (
	routev1 "github.com/openshift/api/route/v1"

	"turnout/balancer"
	"turnout/routing"
)

// canaryPool is the routing.RuleSpec.PoolKey of the rules for the canary.
const canaryPool = "canary"

// Rules returns the rules of the route, which has a Spec: the rule of the spec, and one for each
// way to request the canary. They differ in RouteKey.Rule, counted from 0, in their conditions and
// in their targets. The rules for the canary share a pool.
func (r *Result) Rules() []routing.RuleSpec {
	first := r.Spec.Rule()
	first.ClientAuth = r.clients
	first.Mirrors = r.beside.mirrorSpecs(first.Pool)
	rules := []routing.RuleSpec{first}
	if r.beside == nil || r.beside.canary == nil {
		return rules
	}
	for i, asked := range r.beside.asked {
		rule := first
		rule.RouteKey.Rule, rule.PoolKey, rule.Targets = i+1, canaryPool, r.beside.canary.targets
		rule.Match.Headers, rule.Match.Cookies = asked.Headers, asked.Cookies
		rules = append(rules, rule)
	}
	return rules
}

// Fill returns the servers of a rule by its number, and of its mirrors, as routing.Route.Refill wants them.
func (r *Result) Fill(rule int, pool balancer.PoolConfig) routing.RuleSpec {
	spec := routing.RuleSpec{Pool: pool, Targets: r.Targets, Mirrors: r.beside.mirrorSpecs(pool)}
	if rule > 0 {
		spec.PoolKey, spec.Targets = canaryPool, nil
		if r.beside != nil && r.beside.canary != nil {
			spec.Targets = r.beside.canary.targets
		}
	}
	return spec
}

// Release forgets the servers, which pools have now and which Refill finds again, and returns how many the route has.
func (r *Result) Release() int {
	n := len(r.Targets)
	r.Targets = nil
	r.beside.sides(func(s *side) { s.targets = nil })
	return n
}

// Share is a service with its weight among those of a route.
type Share struct {
	Service string
	Weight  int
}

// Shares are the services that the requests of a route are shared by, in the order of their names: those of its spec, and a canary with a weight.
func Shares(r *routev1.Route) (list []Share) {
	a := annotations{values: r.Annotations}
	for _, b := range a.share(r, services(r)) {
		list = append(list, Share{b.name, b.weight})
	}
	return list
}

// Canary is the service that the rules behind the first one are for.
func Canary(r *routev1.Route) string { return r.Annotations[annotationCanary] }
