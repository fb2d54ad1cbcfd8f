package shard

import (
	"cmp"
	"slices"

	"turnout/controller/admit"
)

// SetNamespace gives the labels of a namespace. Routes of one that was not given have no namespace labels.
func (p *Planner) SetNamespace(name string, labels Labels) {
	p.relabel(p.namespace(name), labels, true)
}

// DeleteNamespace says that there is no such namespace any more. Its routes are deleted by themselves.
func (p *Planner) DeleteNamespace(name string) {
	if ns := p.namespaces[name]; ns != nil {
		p.relabel(ns, Labels{}, false)
		p.forgetNamespace(ns)
	}
}

func (p *Planner) relabel(ns *namespace, labels Labels, given bool) {
	ns.given = given
	if ns.labels == labels {
		return
	}
	ns.labels = labels
	for _, r := range ns.routes {
		r.NamespaceLabels = labels
		p.renew(r)
		p.look(r)
	}
}

func (p *Planner) namespace(name string) *namespace {
	ns := p.namespaces[name]
	if ns == nil {
		ns = &namespace{name: name, routes: make(map[string]*route)}
		p.namespaces[name] = ns
	}
	return ns
}

func (p *Planner) forgetNamespace(ns *namespace) {
	if len(ns.routes) == 0 && !ns.given {
		delete(p.namespaces, ns.name)
	}
}

func (p *Planner) route(key Key) *route {
	if ns := p.namespaces[key.Namespace]; ns != nil {
		return ns.routes[key.Name]
	}
	return nil
}

// SetRoute gives a route as it is now: seen is what the object says of what the scheduler wrote last, admitted the routers in whose
// entry of its status it is admitted.
func (p *Planner) SetRoute(given Route, seen View, admitted []string) {
	ns := p.namespace(given.Namespace)
	given.Namespace, given.NamespaceLabels = ns.name, ns.labels
	r := ns.routes[given.Name]
	if r == nil {
		r = &route{Route: given, timer: -1}
		ns.routes[given.Name] = r
		p.routes++
		p.claim(r)
	} else if r.Route != given {
		claimed := r.Host == given.Host && r.Path == given.Path && r.UID == given.UID && r.Created == given.Created &&
			r.Wildcard == given.Wildcard && r.TLS == given.TLS && r.Passthrough == given.Passthrough
		r.Route = given
		p.renew(r)
		if !claimed {
			p.claim(r)
		}
	}
	r.admitted = makeNames(admitted)
	if seen.Version >= r.version {
		r.version, r.seen = seen.Version, seen.hash()
	}
	if r.target == (dnsName{}) && seen.Target != "" {
		p.recall(r, seen.Target)
	}
	p.adoptOrphans(r)
	p.look(r)
}

// claim enters the host that a route asks for among the claims.
func (p *Planner) claim(r *route) {
	if r.Host == "" {
		p.claims.Remove(r.Key())
		return
	}
	if !p.checked(r).Admitted {
		p.claims.Remove(r.Key())
		return
	}
	p.claims.Set(admit.Claim{
		Key: r.Key(), UID: r.UID, Created: unix(r.Created), Host: r.Host, Path: r.Path,
		Wildcard: r.Wildcard, TLS: r.TLS, Passthrough: r.Passthrough,
	})
}

// checked judges the host that a route asks for by itself.
func (p *Planner) checked(r *route) admit.Verdict {
	policy := "None"
	if r.Wildcard {
		policy = "Subdomain"
	}
	return p.admission.Check(r.Host, policy)
}

// recall gives a route the name that an object says it has, if that can be and nobody else has it.
func (p *Planner) recall(r *route, target string) {
	n := parseTarget(&r.Route, target)
	if n == (dnsName{}) {
		return
	}
	label := n.label
	if label == "" {
		label = plainLabel(&r.Route)
	}
	if owner := p.holder(label, n.domain); owner == nil || owner == r {
		p.setTarget(r, n)
	}
}

// DeleteRoute says that there is no such route any more.
func (p *Planner) DeleteRoute(key Key) {
	r := p.route(key)
	if r == nil {
		return
	}
	ns := p.namespaces[key.Namespace]
	delete(ns.routes, key.Name)
	p.routes--
	p.claims.Remove(key)
	p.dropTarget(r)
	p.untime(r)
	p.settleTrouble(r)
	r.gone = true
	for _, b := range slices.Clone(r.bindings) {
		p.forget(b)
		if b.version != 0 {
			p.orphan(b.object(p))
		}
	}
	p.count(r)
	p.forgetNamespace(ns)
}

// SetBinding gives a binding as it is now. What is older than what is known is ignored.
func (p *Planner) SetBinding(b Binding) {
	r := p.route(Key{Namespace: b.Namespace, Name: b.Route})
	if r == nil || b.Name != BindingName(b.Route, b.Router) {
		p.orphan(b)
		return
	}
	p.adopt(r, b)
	p.look(r)
}

// adoptOrphans enters the bindings of a route that were known before it was. Those that the scheduler would have named otherwise stay orphans.
func (p *Planner) adoptOrphans(r *route) {
	list := p.orphans[r.Key()]
	if list == nil {
		return
	}
	var odd []orphan
	for _, o := range list {
		if o.Name == BindingName(o.Route, o.Router) {
			p.adopt(r, o.Binding)
		} else {
			odd = append(odd, o)
		}
	}
	if delete(p.orphans, r.Key()); odd != nil {
		p.orphans[r.Key()] = odd
	}
}

// adopt enters what an object says of a binding of a route.
func (p *Planner) adopt(r *route, o Binding) {
	b := r.on(o.Router)
	if b != nil && b.version > o.Version {
		return
	}
	if r.target == (dnsName{}) && o.Target != "" {
		p.recall(r, o.Target)
	}
	says := bindingSays(o.RouteUID, o.DNS, o.Target)
	if b == nil {
		b = &binding{route: r, router: p.router(o.Router), created: o.Created, since: p.clock, leaving: o.Leaving, version: o.Version, phase: o.Phase}
		p.enter(b)
		if !b.router.known {
			p.report(r.Key(), "", Event{Warning: true, Reason: "RouterMissing", Message: "a binding leads to router " + o.Router + ", which does not exist: it is of no use and will be deleted; make the router, or delete the binding"})
		}
	} else if o.Leaving && !b.leaving {
		p.setLeaving(b)
	}
	b.version, b.says, b.created, b.phase = o.Version, says, o.Created, o.Phase
	p.count(r)
	p.await(b)
}

// DeleteBinding says that there is no such binding any more; o is its last state. It is ignored if a newer one of the same name is known.
func (p *Planner) DeleteBinding(o Binding) {
	key := Key{Namespace: o.Namespace, Name: o.Route}
	p.orphans[key] = slices.DeleteFunc(p.orphans[key], func(e orphan) bool { return e.Name == o.Name })
	if len(p.orphans[key]) == 0 {
		delete(p.orphans, key)
	}
	r := p.route(key)
	if r == nil {
		return
	}
	b := r.on(o.Router)
	if b == nil || b.version > o.Version && o.Version != 0 || b.version == 0 || o.Name != BindingName(o.Route, o.Router) {
		return
	}
	p.forget(b)
	if !b.leaving {
		p.report(r.Key(), "", Event{Warning: true, Reason: "BindingDeleted", Message: "the binding to router " + o.Router + " was deleted by somebody else; the route is bound again"})
	}
	p.look(r)
}

// on returns the binding of a route to a router, nil if there is none.
func (r *route) on(router string) *binding {
	for _, b := range r.bindings {
		if b.router.Name == router {
			return b
		}
	}
	return nil
}

// enter adds a binding to its route and its router.
func (p *Planner) enter(b *binding) {
	b.route.bindings = append(b.route.bindings, b)
	b.router.addBinding(b)
	p.bindings++
	p.loadChanged(b.router)
	p.count(b.route)
}

// forget takes a binding from its route and its router.
func (p *Planner) forget(b *binding) {
	r := b.route
	p.unevict(b)
	p.setMove(b, false)
	r.bindings = slices.DeleteFunc(r.bindings, func(e *binding) bool { return e == b })
	b.router.dropBinding(b)
	p.bindings--
	p.loadChanged(b.router)
	p.count(r)
	p.forgetRouter(b.router)
}

// setLeaving enters that a binding leaves.
func (p *Planner) setLeaving(b *binding) {
	p.unevict(b)
	p.setMove(b, false)
	b.leaving, b.since = true, p.clock
	b.router.leavers++
	p.loadChanged(b.router)
	p.count(b.route)
}

// object is a binding as its object is.
func (b *binding) object(p *Planner) Binding {
	r := b.route
	target := r.target.text(&r.Route)
	return Binding{
		Namespace: r.Namespace, Name: BindingName(r.Name, b.router.Name), Route: r.Name, RouteUID: r.UID, Router: b.router.Name,
		DNS: cmp.Or(r.Host, target), Target: target, Leaving: b.leaving, Phase: b.phase, Version: b.version, Created: b.created,
	}
}

// right reports whether a binding says of its route what is so.
func (p *Planner) right(b *binding) bool {
	r := b.route
	target := r.target.text(&r.Route)
	return b.says == bindingSays(r.UID, cmp.Or(r.Host, target), target) || r.Host != "" && b.says == bindingSays(r.UID, r.Host, "")
}
