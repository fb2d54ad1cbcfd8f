package gateway

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/routing"
)

// replaceStatus notes which statuses of one kind differ between was and next, and has equal ones be one object.
func replaceStatus[T any](r *Result, kind string, was, next map[source.Key]*T) {
	for key, status := range next {
		if before := was[key]; before != nil && equality.Semantic.DeepEqual(before, status) {
			next[key] = before
			continue
		}
		r.Changes.Status = append(r.Changes.Status, Ref{Kind: kind, Key: key})
	}
	for key := range was {
		if next[key] == nil {
			r.Changes.Status = append(r.Changes.Status, Ref{Kind: kind, Key: key})
		}
	}
}

// compareKeys orders keys by namespace and name.
func compareKeys(a, b source.Key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// replaceRoutes notes what rules, streams and statuses differ, and has equal routes be one object.
func (j *Judge) replaceRoutes(next map[Ref]*Route) {
	changes, was := &j.result.Changes, j.result.Routes
	for ref, route := range next {
		before := was[ref]
		if before == nil {
			before = &Route{}
		}
		status := !equality.Semantic.DeepEqual(before.Status, route.Status)
		rules, streams := !reflect.DeepEqual(before.Rules, route.Rules), !reflect.DeepEqual(before.Streams, route.Streams)
		if !status && !rules && !streams {
			next[ref] = before
			continue
		}
		if status {
			changes.Status = append(changes.Status, ref)
		} else {
			route.Status = before.Status
		}
		changes.rules(before, route)
	}
	for ref, before := range was {
		if next[ref] == nil {
			changes.Status = append(changes.Status, ref)
			changes.rules(before, &Route{})
		}
	}
	j.result.Routes = next
}

// rules notes how the rules and streams of a route differ.
func (c *Changes) rules(before, next *Route) {
	replaced(before.Rules, next.Rules, func(s *routing.RuleSpec) routing.RouteKey { return s.RouteKey }, &c.Rules, &c.DeletedRules)
	replaced(before.Streams, next.Streams, func(s *Stream) routing.RouteKey { return s.RouteKey }, &c.Streams, &c.DeletedStreams)
}

// replaced appends what of next is not in before, and the keys of what is in before only.
func replaced[T any](before, next []T, key func(*T) routing.RouteKey, upserts *[]T, deletes *[]routing.RouteKey) {
	old := make(map[routing.RouteKey]*T, len(before))
	for i := range before {
		old[key(&before[i])] = &before[i]
	}
	for i := range next {
		k := key(&next[i])
		if was := old[k]; was == nil || !reflect.DeepEqual(was, &next[i]) {
			*upserts = append(*upserts, next[i])
		}
		delete(old, k)
	}
	for k := range old {
		*deletes = append(*deletes, k)
	}
}

// settle makes the statuses that count routes, and says what of listeners and ports differs.
func (j *Judge) settle() {
	gateways, sets, policies := make(map[source.Key]*Gateway), make(map[source.Key]*gatewayv1.ListenerSetStatus), make(map[source.Key]*gatewayv1.PolicyStatus)
	listeners := make(map[string]*routing.ListenerSpec)
	for key, g := range j.gateways {
		gateways[key] = &Gateway{Ports: g.ports(), Status: g.status()}
		for _, s := range g.sets {
			sets[s.key] = s.status(g)
		}
		for l := range g.all {
			if spec, ok := l.compiled(); ok {
				listeners[spec.Name] = spec
			}
		}
	}
	for _, p := range j.policies.all {
		if status := p.status(j.cfg.Controller); status != nil {
			policies[source.Key{Namespace: p.object.Namespace, Name: p.object.Name}] = status
		}
	}
	j.replaceGateways(gateways)
	replaceStatus(&j.result, kindListenerSet, j.result.ListenerSets, sets)
	replaceStatus(&j.result, kindPolicy, j.result.Policies, policies)
	j.result.ListenerSets, j.result.Policies = sets, policies
	j.replaceListeners(listeners)
}

// replaceGateways notes which ports and statuses differ.
func (j *Judge) replaceGateways(next map[source.Key]*Gateway) {
	changes, was := &j.result.Changes, j.result.Gateways
	for key, g := range next {
		before := was[key]
		ports := before == nil || !slices.Equal(before.Ports, g.Ports)
		if ports {
			changes.Gateways = append(changes.Gateways, key)
		}
		switch {
		case before == nil || !equality.Semantic.DeepEqual(before.Status, g.Status):
			changes.Status = append(changes.Status, Ref{kindGateway, key})
		case !ports:
			next[key] = before
		}
	}
	for key := range was {
		if next[key] == nil {
			changes.Gateways = append(changes.Gateways, key)
			changes.Status = append(changes.Status, Ref{kindGateway, key})
		}
	}
	j.result.Gateways = next
}

// replaceListeners notes which listeners differ.
func (j *Judge) replaceListeners(next map[string]*routing.ListenerSpec) {
	changes, was := &j.result.Changes, j.result.Listeners
	for name, spec := range next {
		if before := was[name]; before != nil && reflect.DeepEqual(before, spec) {
			next[name] = before
			continue
		}
		if before := was[name]; before != nil && (before.Port != spec.Port || before.Hostname != spec.Hostname) {
			changes.DeletedListeners = append(changes.DeletedListeners, name) // another may take its place
		}
		changes.Listeners = append(changes.Listeners, *spec)
	}
	for name := range was {
		if next[name] == nil {
			changes.DeletedListeners = append(changes.DeletedListeners, name)
		}
	}
	j.result.Listeners = next
}
