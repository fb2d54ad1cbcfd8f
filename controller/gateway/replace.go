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
		changes.rules(&before.rules, &ruleSet{})
	case before == nil:
		j.result.Routes[ref] = next
		changes.Status = append(changes.Status, ref)
		changes.rules(&ruleSet{}, &next.rules)
	default:
		if equality.Semantic.DeepEqual(before.Status, next.Status) {
			next.Status = before.Status // who writes it goes by the pointer
		} else {
			changes.Status = append(changes.Status, ref)
		}
		if changes.rules(&before.rules, &next.rules) || next.Status != before.Status {
			j.result.Routes[ref] = next
		}
	}
}

// settle makes the statuses that count routes, and says what of listeners and ports differs.
func (j *Judge) settle() {
	if j.affected {
		j.settlePolicies()
	}
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
	judged := j.refs != nil
	if judged {
		j.settleObjects()
	}
	if judged || j.affected {
		j.settleReferences()
	}
}

// settlePolicies makes the statuses of policies, and says which ConfigMaps each Gateway needs for those that matter to it.
func (j *Judge) settlePolicies() {
	policies := make(map[source.Key]*gatewayv1.PolicyStatus)
	needs := make(map[source.Key]keys)
	for _, p := range j.policies.all {
		ancestors := j.ancestors(p)
		if status := p.status(j.cfg.Controller, ancestors); status != nil {
			policies[source.Key{Namespace: p.object.Namespace, Name: p.object.Name}] = status
		}
		for key := range ancestors {
			if needs[key] == nil {
				needs[key] = keys{}
			}
			maps.Copy(needs[key], p.needs)
		}
	}
	for key := range j.gateways {
		if !maps.Equal(needs[key], j.needs[key]) {
			j.counted[Ref{kindGateway, key}] = struct{}{}
		}
	}
	j.needs = needs
	replaceStatus(&j.result, kindPolicy, j.result.Policies, policies)
	j.result.Policies = policies
}

// settleReferences says which Secrets and ConfigMaps are referred to.
func (j *Judge) settleReferences() {
	j.result.Secrets, j.result.ConfigMaps = maps.Clone(j.ofGateways.secrets), maps.Clone(j.ofGateways.configMaps)
	if j.cfg.Only == (source.Key{}) {
		maps.Copy(j.result.ConfigMaps, j.ofPolicies.configMaps)
	} else {
		maps.Copy(j.result.ConfigMaps, j.needs[j.cfg.Only]) // others it may not read
	}
	maps.DeleteFunc(j.bundles, func(key source.Key, _ bundle) bool { _, used := j.result.ConfigMaps[key]; return !used })
}

// settleObjects says what follows from Gateways and ListenerSets that were judged.
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
}

// replaceGateway notes whether the status of a Gateway differs, and what else does.
func (j *Judge) replaceGateway(g *gateway) {
	changes, before := &j.result.Changes, j.result.Gateways[g.key]
	next := &Gateway{Ports: g.ports(), Status: g.status(), Parameters: g.parameters, Secrets: g.refs.secrets, ConfigMaps: maps.Clone(g.refs.configMaps)}
	if next.ConfigMaps == nil {
		next.ConfigMaps = make(map[source.Key]struct{})
	}
	maps.Copy(next.ConfigMaps, j.needs[g.key])
	other := before == nil || !before.runsAlike(next)
	status := before == nil || !equality.Semantic.DeepEqual(before.Status, next.Status)
	if other {
		changes.Gateways = append(changes.Gateways, g.key)
	}
	if status {
		changes.Status = append(changes.Status, Ref{kindGateway, g.key})
	} else {
		next.Status = before.Status
	}
	if other || status {
		j.result.Gateways[g.key] = next
	}
}

// runsAlike reports whether both are run in the same way.
func (g *Gateway) runsAlike(o *Gateway) bool {
	return slices.Equal(g.Ports, o.Ports) && reflect.DeepEqual(g.Parameters, o.Parameters) && maps.Equal(g.Secrets, o.Secrets) && maps.Equal(g.ConfigMaps, o.ConfigMaps)
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
