package gateway

import (
	"hash/fnv"
	"slices"
	"strings"

	"turnout/controller/gateway/translate"
	"turnout/routing"
)

// expander makes the rules of one route.
type expander struct {
	*Judge
	route    *route
	compiled *compiled
	backends map[backendsOf][]routing.BackendSpec
	slots    map[int]struct{}
	classes  map[class]int
	rules    ruleSet
}

// backendsOf names the backends of a rule for a Gateway: they may differ by the certificate that it shows, and by whether TLS ends here.
type backendsOf struct {
	gateway *gateway
	rule    int
	sealed  bool
}

// class holds the properties of a listener that its rules depend on, besides its name. Rules at
// places of one class differ in host name and listener only.
type class struct {
	gateway *gateway
	kind    PortKind
	port    int32 // 0 = matters for rulePlace.port only
	sealed  bool
	streams bool
}

// expand makes the rules of a route on the listeners that it attaches to.
func (j *Judge) expand(r *route, c *compiled, at []attachment) ruleSet {
	e := &expander{Judge: j, route: r, compiled: c, backends: make(map[backendsOf][]routing.BackendSpec), slots: make(map[int]struct{}), classes: make(map[class]int)}
	at = slices.Clone(at)
	slices.SortFunc(at, func(a, b attachment) int { return strings.Compare(a.name, b.name) })
	at = slices.CompactFunc(at, func(a, b attachment) bool { return a.listener == b.listener })
	for i := range at {
		if !at[i].serves() {
			continue
		}
		for _, host := range at[i].hosts {
			e.rules.places = append(e.rules.places, rulePlace{listener: at[i].name, host: host, slot: e.slot(at[i].name, host), port: at[i].spec.Port, class: e.class(&at[i])})
		}
	}
	return e.rules
}

// What a RouteKey.Rule is made of: the number of the rule, that of the match, and a slot per listener and host name. It is the order of
// the rules of a route, and stays while listeners and host names come and go.
const (
	slotBits  = 20
	matchBits = 8
)

// slot returns a number for a listener and a host name of a route, the same as long as it has them.
func (e *expander) slot(listener, host string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(listener + " " + host))
	for n := int(hash.Sum32()); ; n++ {
		n &= 1<<slotBits - 1
		if _, taken := e.slots[n]; !taken {
			e.slots[n] = struct{}{}
			return n
		}
	}
}

// class returns the number of the class of a listener. The first call for a class makes its rules.
func (e *expander) class(at *attachment) int {
	of := class{gateway: at.gateway, kind: at.kind, sealed: at.passthrough(), streams: at.streams()}
	if slices.ContainsFunc(e.compiled.rules, func(c compiledRule) bool { return c.filters.redirect != nil }) {
		of.port = at.spec.Port // redirects contain it
	}
	n, ok := e.classes[of]
	if ok {
		return n
	}
	var rules []routing.RuleSpec
	for i := range e.compiled.rules {
		c := &e.compiled.rules[i]
		for _, m := range c.matches {
			rules = append(rules, e.rule(at, c, m))
		}
	}
	n = len(e.rules.classes)
	e.rules.classes = append(e.rules.classes, rules)
	e.classes[of] = n
	return n
}

// rule makes the rule of a match for a class of listeners, without its place.
func (e *expander) rule(at *attachment, c *compiledRule, m compiledMatch) routing.RuleSpec {
	key := e.route.key((c.number<<matchBits | m.number) << slotBits)
	spec := routing.RuleSpec{RouteKey: key, Match: m.is, Created: e.route.created(), Policy: c.policy, Pool: e.pool(e.route)}
	switch {
	case at.passthrough():
		spec.Termination = routing.TermPassthrough
	case at.streams():
		spec.Termination = routing.TermStream
	case at.kind == PortTLS:
		spec.Termination = routing.TermEdge
	}
	e.treat(at, &spec, c, m)
	return spec
}

// treat says what becomes of the requests of a rule.
func (e *expander) treat(at *attachment, spec *routing.RuleSpec, c *compiledRule, m compiledMatch) {
	spec.Backends = e.backendsFor(at, c)
	if c.failing {
		return
	}
	view := translate.View{Path: m.is.Path, Port: int(at.spec.Port), Secure: at.kind == PortTLS}
	spec.Policy.RequestActions, spec.Policy.ResponseActions, spec.Policy.CORS = c.filters.request, c.filters.answer, c.filters.cors
	if f := c.filters.rewrite; f != nil {
		spec.Policy.Rewrite, _ = e.compiler.Rewrite(f, view)
	}
	if f := c.filters.redirect; f != nil {
		spec.Policy.Redirect, _ = e.compiler.Redirect(f, view)
	}
	key := e.route.key(c.number)
	spec.CookieName, _ = translate.Session(&spec.Policy, c.session, key.String(), view.Secure) // compileRule has looked at it
	for _, mirror := range c.mirrors {
		to := e.backendSpec(e.route, at.gateway, mirror.backend, false)
		if to.Status != 0 {
			continue
		}
		spec.Mirrors = append(spec.Mirrors, routing.MirrorSpec{Key: to.Key, Numerator: mirror.numerator, Denominator: mirror.denominator, Pool: to.Pool, Targets: to.Targets})
	}
}

// noBackend is the key of the backend of a rule that has none.
const noBackend = "none"

// backendsFor returns the backends of a rule.
func (e *expander) backendsFor(to *attachment, c *compiledRule) []routing.BackendSpec {
	at := backendsOf{to.gateway, c.number, to.passthrough()}
	if made, ok := e.backends[at]; ok {
		return made
	}
	var list []routing.BackendSpec
	if !c.failing {
		for _, b := range c.backends {
			list = append(list, e.backendSpec(e.route, to.gateway, b, at.sealed))
		}
	}
	if len(list) == 0 {
		list = append(list, routing.BackendSpec{Key: noBackend, Weight: 1, Status: statusUnusable, Pool: e.pool(e.route)})
	}
	e.backends[at] = list
	return list
}
