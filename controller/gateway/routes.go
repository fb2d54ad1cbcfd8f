package gateway

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/condition"
	"turnout/controller/source"
)

// judged is a route, and what came of it.
type judged struct {
	*route
	parents  []*parent // those that are ours
	compiled *compiled
	source   int          // bytes of the object as JSON, see expansion.Source
	refused  string       // the limit of one object that it exceeds, "" = none
	services []source.Key // that it names, each once
	counted  []*listener  // that count it
}

// judgeRoutes judges the routes that are dirty, and those that others are in the way of, or no longer.
func (j *Judge) judgeRoutes(o *Objects) {
	for news := true; news; {
		news = false
		j.waiting.Take(&j.budget, func(ref Ref) int { return j.costOf(o, ref) }, func(ref Ref, _ uint64) {
			news, j.dirty[ref] = true, struct{}{}
			before := j.routes[ref]
			j.forget(ref)
			if r := o.route(ref); r != nil {
				j.attach(o, r, before)
			}
		})
		for _, ref := range j.ledger.Settle() {
			if _, ok := j.dirty[ref]; !ok {
				j.waiting.Add(ref, j.stamp)
			}
		}
	}
	for ref := range j.dirty {
		if r := j.routes[ref]; r != nil && len(r.parents) > 0 {
			j.learn(o, r)
		}
	}
	for l := range j.contests {
		j.contest(l)
	}
	for ref := range j.dirty {
		j.decide(o, ref)
	}
}

// forget takes a route out of all that has to do with it.
func (j *Judge) forget(ref Ref) {
	r := j.routes[ref]
	if r == nil {
		return
	}
	delete(j.routes, ref)
	j.ledger.Remove(ref)
	j.withdraw(r)
	for i := range r.route.parents {
		j.byParent.remove(r.parentKey(&r.route.parents[i]), ref)
	}
	for _, key := range r.services {
		j.byService.remove(key, ref)
	}
	for _, p := range r.parents {
		for _, a := range p.at {
			delete(j.at[a.listener], ref)
			j.contests[a.listener] = struct{}{}
		}
	}
}

// withdraw takes a route out of what counts it.
func (j *Judge) withdraw(r *judged) {
	for _, l := range r.counted {
		l.attached--
		j.counted[l.owner] = struct{}{}
	}
	r.counted = nil
	j.affected = j.affected || slices.ContainsFunc(r.services, j.policies.services.has)
}

// learn compiles a route within its limits, and records its references and the listeners that it
// would attach to.
func (j *Judge) learn(o *Objects, out *judged) {
	r := out.route
	j.compileJudged(o, out)
	for _, b := range out.compiled.names {
		if key := b.target.service; !slices.Contains(out.services, key) {
			out.services = append(out.services, key)
			j.byService.add(key, r.ref)
		}
	}
	for _, p := range out.parents {
		for _, a := range p.at {
			if j.at[a.listener] == nil {
				j.at[a.listener] = make(map[Ref]*judged)
			}
			j.at[a.listener][r.ref] = out
			j.contests[a.listener] = struct{}{}
		}
	}
}

// contest settles which routes of a listener are in the way of others. Of HTTPRoutes and GRPCRoutes that have a host name in common the older ones
// stay; of TCPRoutes and UDPRoutes all are attached, but the oldest has the traffic.
func (j *Judge) contest(l *listener) {
	routes := j.at[l]
	if len(routes) == 0 {
		delete(j.at, l)
		l.winner = Ref{}
		return
	}
	if l.kind == PortTCP || l.kind == PortUDP {
		j.contestPort(l, routes)
		return
	}
	owner := make(map[string]string)
	if mixed(routes) {
		for _, r := range byAge(routes) {
			j.contestHosts(l, r, owner)
		}
		l.mixed = true
		return
	}
	if l.mixed {
		l.mixed = false
		for _, r := range routes {
			j.lose(l, r, false)
		}
	}
}

// mixed reports whether routes are of several kinds.
func mixed(routes map[Ref]*judged) bool {
	kind := ""
	for ref := range routes {
		if kind != "" && ref.Kind != kind {
			return true
		}
		kind = ref.Kind
	}
	return false
}

// byAge are routes, the oldest first; those that nothing else tells apart in the order of their kinds.
func byAge(routes map[Ref]*judged) []*judged {
	return slices.SortedFunc(maps.Values(routes), func(a, b *judged) int {
		return cmp.Or(older(a.object, b.object), -strings.Compare(a.ref.Kind, b.ref.Kind))
	})
}

// contestPort gives a listener to the oldest of its routes.
func (j *Judge) contestPort(l *listener, routes map[Ref]*judged) {
	var winner Ref
	for _, r := range byAge(routes) {
		if r.compiled.reason == "" {
			winner = r.ref
			break
		}
	}
	if winner == l.winner {
		return
	}
	for _, ref := range []Ref{l.winner, winner} {
		if ref.Kind != "" {
			j.dirty[ref] = struct{}{}
		}
	}
	l.winner = winner
}

// contestHosts gives a route the host names that it has at a listener, unless routes of another kind that were asked before have one of them.
func (j *Judge) contestHosts(l *listener, r *judged, owner map[string]string) {
	if r.compiled.reason != "" {
		return
	}
	var hosts []string
	for _, p := range r.parents {
		for _, a := range p.at {
			if a.listener == l {
				hosts = append(hosts, a.hosts...)
			}
		}
	}
	lost := slices.ContainsFunc(hosts, func(host string) bool { return owner[host] != "" && owner[host] != r.ref.Kind })
	j.lose(l, r, lost)
	if lost {
		return
	}
	for _, host := range hosts {
		owner[host] = r.ref.Kind
	}
}

// lose notes whether another route keeps a route from a listener.
func (j *Judge) lose(l *listener, r *judged, lost bool) {
	for _, p := range r.parents {
		if _, before := p.lost[l]; before == lost || !slices.ContainsFunc(p.at, func(a attachment) bool { return a.listener == l }) {
			continue
		}
		j.dirty[r.ref] = struct{}{}
		if !lost {
			delete(p.lost, l)
			continue
		}
		if p.lost == nil {
			p.lost = make(map[*listener]struct{})
		}
		p.lost[l] = struct{}{}
	}
}

// decide makes the rules and the status of a route that is known, and notes what of it is new.
func (j *Judge) decide(o *Objects, ref Ref) {
	r := j.routes[ref]
	if r == nil || len(r.parents) == 0 {
		j.replaceRoute(ref, nil)
		return
	}
	var rules ruleSet
	if r.compiled.dropped {
		j.compileJudged(o, r) // the earlier result was dropped
	}
	if !j.guard(ref, func() { rules = j.expand(r.route, r.compiled, j.attached(r)) }) {
		r.compiled = brokenRoute()
		j.attached(r)
	}
	r.compiled.dropRules()
	j.replaceRoute(ref, &Route{rules: rules, Status: j.routeStatus(r)})
}

// attached counts a route at the listeners that it is attached to, and returns those that serve it.
func (j *Judge) attached(r *judged) []attachment {
	j.withdraw(r)
	var at []attachment
	if r.compiled.reason == "" {
		for _, p := range r.parents {
			for a := range p.attached {
				if !slices.Contains(r.counted, a.listener) {
					r.counted = append(r.counted, a.listener)
					a.attached++
					j.counted[a.owner] = struct{}{}
				}
				if a.kind != PortTCP && a.kind != PortUDP || a.winner == r.ref {
					at = append(at, a)
				}
			}
		}
	}
	return at
}

// routeStatus is what the status of a route is to be.
func (j *Judge) routeStatus(r *judged) *gatewayv1.RouteStatus {
	status := &gatewayv1.RouteStatus{}
	accepted, resolved := string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs)
	for _, p := range r.parents {
		list := condition.List{Generation: r.object.GetGeneration()}
		reason, message := p.why()
		switch {
		case reason != "":
			list.False(accepted, string(reason), message)
		case r.compiled.reason != "":
			list.False(accepted, string(r.compiled.reason), r.compiled.message)
		default:
			list.True(accepted, string(gatewayv1.RouteReasonAccepted), "The route is attached")
			if r.compiled.partly != "" {
				list.True(string(gatewayv1.RouteConditionPartiallyInvalid), string(gatewayv1.RouteReasonUnsupportedValue), r.compiled.partly)
			}
		}
		if r.compiled.refs != "" {
			list.False(resolved, string(r.compiled.refs), r.compiled.refMessage)
		} else {
			list.True(resolved, string(gatewayv1.RouteReasonResolvedRefs), "All references are resolved")
		}
		status.Parents = append(status.Parents, gatewayv1.RouteParentStatus{ParentRef: p.ref, ControllerName: j.cfg.Controller, Conditions: list.Conditions})
	}
	return status
}

// reached are the Gateways that a port of a Service, "" for any, matters to because a route there names it.
func (j *Judge) reached(at policyTarget, found map[source.Key]*gateway) {
	for ref := range j.byService[at.service] {
		r := j.routes[ref]
		if r.compiled.reason != "" || r.ref.Kind == kindTCPRoute || r.ref.Kind == kindUDPRoute || !r.compiled.reaches(at) {
			continue
		}
		for _, p := range r.parents {
			for range p.attached {
				found[p.gateway.key] = p.gateway
				break
			}
		}
	}
}

// reaches reports whether a route names a port of a Service, or any of it if the port is "".
func (c *compiled) reaches(at policyTarget) bool {
	for _, b := range c.names {
		if b.target.service == at.service && b.reason != gatewayv1.RouteReasonRefNotPermitted && (at.port == "" || b.port != nil && b.port.Name == at.port) {
			return true
		}
	}
	return false
}
