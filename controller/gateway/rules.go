package gateway

import (
	"reflect"
	"slices"
	"strings"

	"turnout/routing"
)

// ruleSet stores the rules of a route once for each class of listeners, and the places where they
// are served. A rule is not repeated for each host name.
type ruleSet struct {
	classes [][]routing.RuleSpec // without Host, Listener and the fields derived from them
	places  []rulePlace
}

// rulePlace is a host name of a listener.
type rulePlace struct {
	listener, host string
	slot           int   // of the keys of the rules
	port           int32 // of the listener
	class          int
}

// at returns a rule of a class at a place.
func (p *rulePlace) at(rule *routing.RuleSpec) routing.RuleSpec {
	spec := *rule
	spec.Rule |= p.slot
	spec.Host, spec.Listener = p.host, p.listener
	spec.Wildcard = strings.HasPrefix(p.host, "*")
	spec.Labels = spec.Wildcard
	spec.Policy.ForwardedPort = uint16(p.port) //nolint:gosec // the API has ports from 1 to 65535
	return spec
}

// len returns the number of rules.
func (s *ruleSet) len() (n int) {
	for i := range s.places {
		n += len(s.classes[s.places[i].class])
	}
	return n
}

// all returns the rules one by one.
func (s *ruleSet) all() []routing.RuleSpec {
	list := make([]routing.RuleSpec, 0, s.len())
	for i := range s.places {
		p := &s.places[i]
		for r := range s.classes[p.class] {
			list = append(list, p.at(&s.classes[p.class][r]))
		}
	}
	return list
}

// rules records the differences between two sets of rules, and reports whether there are any.
func (c *Changes) rules(before, next *ruleSet) bool {
	if reflect.DeepEqual(before, next) {
		return false
	}
	type where struct {
		listener, host string
		slot           int
	}
	old := make(map[where]*rulePlace, len(before.places))
	for i := range before.places {
		p := &before.places[i]
		old[where{p.listener, p.host, p.slot}] = p
	}
	known := make(map[[2]int]classChange)
	for i := range next.places {
		p := &next.places[i]
		was := old[where{p.listener, p.host, p.slot}]
		if was == nil {
			c.add(p, next.classes[p.class])
			continue
		}
		delete(old, where{p.listener, p.host, p.slot})
		pair := [2]int{was.class, p.class}
		change, ok := known[pair]
		if !ok {
			change = changeOf(before.classes[was.class], next.classes[p.class])
			known[pair] = change
		}
		c.remove(p, change.deleted)
		if was.port != p.port {
			change.rules = next.classes[p.class]
		}
		c.add(p, change.rules)
	}
	for _, p := range old {
		c.remove(p, before.classes[p.class])
	}
	return true
}

// add records rules that are new or changed at a place.
func (c *Changes) add(p *rulePlace, rules []routing.RuleSpec) {
	c.Rules = slices.Grow(c.Rules, len(rules))
	for i := range rules {
		c.Rules = append(c.Rules, p.at(&rules[i]))
	}
}

// remove records rules that are deleted from a place.
func (c *Changes) remove(p *rulePlace, rules []routing.RuleSpec) {
	for i := range rules {
		key := rules[i].RouteKey
		key.Rule |= p.slot
		c.DeletedRules = append(c.DeletedRules, key)
	}
}

// classChange is the difference between the rules of two classes.
type classChange struct{ rules, deleted []routing.RuleSpec }

// changeOf returns the difference between before and next.
func changeOf(before, next []routing.RuleSpec) (out classChange) {
	old := make(map[routing.RouteKey]*routing.RuleSpec, len(before))
	for i := range before {
		old[before[i].RouteKey] = &before[i]
	}
	for i := range next {
		if was := old[next[i].RouteKey]; was == nil || !reflect.DeepEqual(was, &next[i]) {
			out.rules = append(out.rules, next[i])
		}
		delete(old, next[i].RouteKey)
	}
	for _, was := range old {
		out.deleted = append(out.deleted, *was)
	}
	return out
}
