package gateway

import (
	"hash/fnv"
	"slices"
	"strings"

	"turnout/controller/gateway/translate"
	"turnout/routing"
)

// expansion makes the rules of one route.
type expansion struct {
	*Judge
	route    *route
	backends map[backendsOf][]routing.BackendSpec
	slots    map[int]struct{}
	rules    []routing.RuleSpec
}

// backendsOf names the backends of a rule for a Gateway: they may differ by the certificate that it shows, and by whether TLS ends here.
type backendsOf struct {
	gateway *gateway
	rule    int
	sealed  bool
}

// expand makes the rules of a route on the listeners that it attaches to.
func (j *Judge) expand(r *route, c *compiled, at []attachment) []routing.RuleSpec {
	e := &expansion{Judge: j, route: r, backends: make(map[backendsOf][]routing.BackendSpec), slots: make(map[int]struct{})}
	at = slices.Clone(at)
	slices.SortFunc(at, func(a, b attachment) int { return strings.Compare(a.name, b.name) })
	at = slices.CompactFunc(at, func(a, b attachment) bool { return a.listener == b.listener })
	for i := range at {
		if !at[i].serves() {
			continue
		}
		for _, host := range at[i].hosts {
			slot := e.slot(at[i].name, host)
			for n := range c.rules {
				e.rule(&at[i], host, slot, &c.rules[n])
			}
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
func (e *expansion) slot(listener, host string) int {
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

// rule makes the rules of a listener and a host name for one of the route.
func (e *expansion) rule(at *attachment, host string, slot int, c *compiledRule) {
	for _, m := range c.matches {
		key := e.route.key((c.number<<matchBits|m.number)<<slotBits | slot)
		spec := routing.RuleSpec{RouteKey: key, Host: host, Listener: at.name, Match: m.is, Created: e.route.created(), Policy: c.policy, Pool: e.pool(e.route)}
		spec.Wildcard = strings.HasPrefix(host, "*")
		spec.Labels = spec.Wildcard
		switch {
		case at.passthrough():
			spec.Termination = routing.TermPassthrough
		case at.streams():
			spec.Termination = routing.TermStream
		case at.kind == PortTLS:
			spec.Termination = routing.TermEdge
		}
		e.treat(at, &spec, c, m)
		e.rules = append(e.rules, spec)
	}
}

// treat says what becomes of the requests of a rule.
func (e *expansion) treat(at *attachment, spec *routing.RuleSpec, c *compiledRule, m compiledMatch) {
	spec.Backends = e.backendsFor(at, c)
	if c.failing {
		return
	}
	view := translate.View{Path: m.is.Path, Port: int(at.spec.Port), Secure: at.kind == PortTLS}
	spec.Policy.ForwardedPort = uint16(at.spec.Port) //nolint:gosec // the API has ports from 1 to 65535
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
func (e *expansion) backendsFor(to *attachment, c *compiledRule) []routing.BackendSpec {
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
