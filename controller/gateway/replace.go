package gateway

import (
	"cmp"
	"maps"
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

// replaceRoute notes what rules, streams and status of a route differ; nil = it is none of ours.
func (j *Judge) replaceRoute(ref Ref, next *Route) {
	changes, before := &j.result.Changes, j.result.Routes[ref]
	switch {
	case before == nil && next == nil:
	case next == nil:
		delete(j.result.Routes, ref)
		changes.Status = append(changes.Status, ref)
		changes.rules(before, &Route{})
	case before == nil:
		j.result.Routes[ref] = next
		changes.Status = append(changes.Status, ref)
		changes.rules(&Route{}, next)
	default:
		if equality.Semantic.DeepEqual(before.Status, next.Status) {
			next.Status = before.Status // who writes it goes by the pointer
		} else {
			changes.Status = append(changes.Status, ref)
		}
		if changes.rules(before, next) || next.Status != before.Status {
			j.result.Routes[ref] = next
		}
	}
}

// rules notes how the rules of a route differ, and returns whether they do.
func (c *Changes) rules(before, next *Route) bool {
	if before.hasRulesOf(next) {
		return false
	}
	old := make(map[routing.RouteKey]*routing.RuleSpec, len(before.Rules))
	for i := range before.Rules {
		old[before.Rules[i].RouteKey] = &before.Rules[i]
	}
	for i := range next.Rules {
		spec := &next.Rules[i]
		if was := old[spec.RouteKey]; was == nil || !reflect.DeepEqual(was, spec) {
			c.Rules = append(c.Rules, *spec)
		}
		delete(old, spec.RouteKey)
	}
	c.DeletedRules = slices.AppendSeq(c.DeletedRules, maps.Keys(old))
	return true
}

// hasRulesOf reports whether the rules of both are equal, in the same order.
func (r *Route) hasRulesOf(o *Route) bool {
	if len(r.Rules) != len(o.Rules) {
		return false
	}
	for i := range r.Rules {
		if !reflect.DeepEqual(&r.Rules[i], &o.Rules[i]) {
			return false
		}
	}
	return true
}

// settle makes the statuses that count routes, and says what of listeners and ports differs.
func (j *Judge) settle() {
	for ref := range j.counted {
		if g := j.gateways[ref.Key]; g != nil && ref.Kind == kindGateway {
			j.replaceGateway(g)
		}
		if s := j.sets[ref.Key]; s.set != nil && ref.Kind == kindListenerSet {
			j.replaceListenerSet(s)
		}
	}
	for key := range j.result.Gateways {
		if j.gateways[key] == nil {
			delete(j.result.Gateways, key)
			j.result.Changes.Gateways = append(j.result.Changes.Gateways, key)
			j.result.Changes.Status = append(j.result.Changes.Status, Ref{kindGateway, key})
		}
	}
	if j.refs != nil {
		j.settleObjects()
	}
	if j.affected {
		policies := make(map[source.Key]*gatewayv1.PolicyStatus)
		for _, p := range j.policies.all {
			if status := p.status(j.cfg.Controller, j.ancestors(p)); status != nil {
				policies[source.Key{Namespace: p.object.Namespace, Name: p.object.Name}] = status
			}
		}
		replaceStatus(&j.result, kindPolicy, j.result.Policies, policies)
		j.result.Policies = policies
	}
}

// settleObjects says what follows from Gateways, ListenerSets and policies that were judged: listeners, and what they refer to.
func (j *Judge) settleObjects() {
	j.refs = nil
	listeners := make(map[string]*routing.ListenerSpec)
	for _, g := range j.gateways {
		for l := range g.all {
			if spec, ok := l.compiled(); ok {
				listeners[spec.Name] = spec
			}
		}
	}
	j.replaceListeners(listeners)
	for key := range j.result.ListenerSets {
		if _, there := j.sets[key]; !there {
			delete(j.result.ListenerSets, key)
			j.result.Changes.Status = append(j.result.Changes.Status, Ref{kindListenerSet, key})
		}
	}
	j.result.Secrets, j.result.ConfigMaps = maps.Clone(j.ofGateways.secrets), maps.Clone(j.ofGateways.configMaps)
	maps.Copy(j.result.ConfigMaps, j.ofPolicies.configMaps)
	maps.DeleteFunc(j.bundles, func(key source.Key, _ bundle) bool { _, used := j.result.ConfigMaps[key]; return !used })
}

// replaceGateway notes whether the ports and the status of a Gateway differ.
func (j *Judge) replaceGateway(g *gateway) {
	changes, before, next := &j.result.Changes, j.result.Gateways[g.key], &Gateway{Ports: g.ports(), Status: g.status()}
	ports := before == nil || !slices.Equal(before.Ports, next.Ports)
	status := before == nil || !equality.Semantic.DeepEqual(before.Status, next.Status)
	if ports {
		changes.Gateways = append(changes.Gateways, g.key)
	}
	if status {
		changes.Status = append(changes.Status, Ref{kindGateway, g.key})
	} else {
		next.Status = before.Status
	}
	if ports || status {
		j.result.Gateways[g.key] = next
	}
}

// replaceListenerSet notes whether the status of a ListenerSet differs.
func (j *Judge) replaceListenerSet(s setOf) {
	status := s.set.status(s.gateway)
	if before := j.result.ListenerSets[s.set.key]; before == nil || !equality.Semantic.DeepEqual(before, status) {
		j.result.ListenerSets[s.set.key] = status
		j.result.Changes.Status = append(j.result.Changes.Status, Ref{kindListenerSet, s.set.key})
	}
}

// replaceListeners notes which listeners differ.
func (j *Judge) replaceListeners(next map[string]*routing.ListenerSpec) {
	changes, was := &j.result.Changes, j.result.Listeners
	for name, spec := range next {
		if before := was[name]; before != nil && reflect.DeepEqual(before, spec) {
			next[name] = before
			continue
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
