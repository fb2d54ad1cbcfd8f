package shard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"turnout/controller/admit"
)

// Reasons of the condition Valid of a router.
const (
	InvalidSelector = "InvalidSelector"
	InvalidDomain   = "InvalidDomain"
	DomainTaken     = "DomainTaken"
)

// longestDomain leaves room for a label and a dot in a name of DNS (RFC 1035 section 2.3.4).
const longestDomain = 253 - 1 - maxLabel

// router returns the record of a router, which may be no more than a name.
func (p *Planner) router(name string) *router {
	r := p.routers[name]
	if r == nil {
		r = &router{Router: Router{Name: name}, heard: p.clock, replicas: make(map[string]heard), lastCapacity: -1}
		p.routers[name] = r
	}
	return r
}

// forgetRouter forgets a router of which there is neither object nor binding.
func (p *Planner) forgetRouter(r *router) {
	if !r.known && len(r.bindings) == 0 {
		delete(p.routers, r.Name)
	}
}

// SetRouter gives a router and what its replicas report as it is now: seen is what the object says of what the scheduler wrote last.
func (p *Planner) SetRouter(given Router, seen RouterStatus) {
	r := p.router(given.Name)
	before := r.Router
	first := !r.known
	r.known = true
	given.Bound, given.RequestsPerSecond = r.active(), 0
	r.Router = given
	if seen.Version >= r.version {
		r.version, r.seen = seen.Version, seen.hash()
	}
	r.ever = r.ever || seen.Phase != "" && seen.Phase != RouterPending
	p.hear(r)
	p.setTaints(r)
	if first || before.Domain != given.Domain || before.Created != given.Created {
		p.setDomain(r, before.Domain, first)
	}
	if selectors := describeSelectors(&given); first || selectors != r.selectors {
		r.selectors = selectors
		p.setSelectors(r)
	}
	if given.Capacity != r.lastCapacity {
		r.lastCapacity = given.Capacity
		p.shrinks[r] = struct{}{}
	}
	if r.pool != nil && (before.Labels != given.Labels || before.Capacity != given.Capacity || before.RequestsCapacity != given.RequestsCapacity || before.Domain != given.Domain) {
		p.candidates.changed(r.pool) // strategies may have computed something of these
	}
	p.reopen(r)
	p.observePending(r)
	p.observe(r, false)
	p.touch(r)
}

// DeleteRouter says that there is no such router any more. Its routes are moved after the time after which a lost router's are.
func (p *Planner) DeleteRouter(name string) {
	r := p.routers[name]
	if r == nil || !r.known {
		return
	}
	p.candidates.leave(r)
	if r.Domain != "" {
		p.leaveDomain(r, r.Domain)
	}
	r.known, r.open, r.taint, r.drain, r.ready, r.selectorFault, r.domainFault = false, false, false, false, 0, fault{}, fault{}
	r.Router = Router{Name: name, Bound: r.active(), TTL: r.TTL} // resolvers know its names as long as before
	r.selectors = ""
	r.lastCapacity = -1
	r.heard = p.clock
	clear(r.replicas)
	p.observe(r, true)
	p.forgetRouter(r)
}

// describeSelectors is equal for equal selectors.
func describeSelectors(r *Router) string {
	text := func(s fmt.Stringer, nothing bool) string {
		if nothing {
			return "all"
		}
		return s.String()
	}
	return text(r.RouteSelector, r.RouteSelector == nil) + "\x00" + text(r.NamespaceSelector, r.NamespaceSelector == nil)
}

func (p *Planner) setSelectors(r *router) {
	p.candidates.leave(r)
	parsed, err := parsePool(r.RouteSelector, r.NamespaceSelector)
	if err != nil {
		p.judge(r, &r.selectorFault, fault{InvalidSelector, "routeSelector or namespaceSelector cannot be used: " + err.Error() + ": correct it; no further routes are bound until then, and those that are stay"})
		return
	}
	p.judge(r, &r.selectorFault, fault{})
	p.candidates.join(r, parsed)
	for _, b := range r.bindings {
		p.look(b.route)
	}
	p.wakeWaiting()
}

func (p *Planner) setTaints(r *router) {
	drain := slices.Contains(r.Taints, Drain)
	r.taint = len(r.Taints) > 0
	if r.drain == drain {
		return
	}
	r.drain = drain
	for _, b := range r.bindings {
		p.look(b.route)
	}
}

// judge takes note of what is wrong with a part of a router, which may have been wrong before, and of what its condition Valid is to say.
func (p *Planner) judge(r *router, part *fault, f fault) {
	if *part == f {
		return
	}
	if f.reason != "" {
		p.report(Key{}, r.Name, Event{Warning: true, Reason: f.reason, Message: f.message})
	}
	*part = f
	p.reopen(r)
	p.touch(r)
}

// setDomain enters the domain of a router among those of others: of two with one domain the older has it.
func (p *Planner) setDomain(r *router, before string, first bool) {
	if !first && before != "" && before != r.Domain {
		p.leaveDomain(r, before)
	}
	if r.Domain == "" || !r.known {
		p.judge(r, &r.domainFault, fault{})
		return
	}
	if v := admit.CheckHost(r.Domain); !v.Admitted || len(r.Domain) > longestDomain {
		p.judge(r, &r.domainFault, fault{InvalidDomain, fmt.Sprintf("spec.dns.domain %q is no lower-case DNS name of at most %d characters: correct it; no further routes are bound until then, and those that are stay", r.Domain, longestDomain)})
		return
	}
	if list := p.domains[r.Domain]; !slices.Contains(list, r) {
		p.domains[r.Domain] = append(list, r)
	}
	p.settleDomain(r.Domain)
}

func (p *Planner) leaveDomain(r *router, domain string) {
	p.domains[domain] = slices.DeleteFunc(p.domains[domain], func(e *router) bool { return e == r })
	if len(p.domains[domain]) == 0 {
		delete(p.domains, domain)
		return
	}
	p.settleDomain(domain)
}

func (p *Planner) settleDomain(domain string) {
	list := p.domains[domain]
	slices.SortFunc(list, func(a, b *router) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Name, b.Name))
	})
	for i, r := range list {
		f := fault{}
		if i > 0 {
			f = fault{DomainTaken, "router " + list[0].Name + " is older and has the domain " + domain + " too: give this one another; no further routes are bound until then, and those that are stay"}
		}
		p.judge(r, &r.domainFault, f)
	}
}

// hear takes note of what the replicas of a router report.
func (p *Planner) hear(r *router) {
	there := make(map[string]bool, len(r.Replicas))
	for i := range r.Replicas {
		e := &r.Replicas[i]
		there[e.Name] = true
		if last, ok := r.replicas[e.Name]; !ok || !last.renewed.Equal(e.Renewed) {
			r.replicas[e.Name] = heard{renewed: e.Renewed, at: p.clock}
			r.heard = p.clock
		}
	}
	maps.DeleteFunc(r.replicas, func(name string, _ heard) bool { return !there[name] })
	p.sum(r)
}

// alive reports whether a replica has said something within the grace time.
func (p *Planner) alive(r *router, e *Replica) bool {
	return p.clock-r.replicas[e.Name].at < int64(p.config.LostAfter)
}

// living is how many replicas have.
func (p *Planner) living(r *router) int {
	n := 0
	for i := range r.Replicas {
		if p.alive(r, &r.Replicas[i]) {
			n++
		}
	}
	return n
}

// sum makes one of what the replicas of a router report.
func (p *Planner) sum(r *router) {
	r.ready, r.observed, r.RequestsPerSecond, r.alive = 0, 0, 0, 0
	r.leaving, r.leavingMore = nil, false
	for i := range r.Replicas {
		e := &r.Replicas[i]
		if !p.alive(r, e) {
			continue
		}
		r.alive++
		r.RequestsPerSecond += e.RequestsPerSecond
		r.leavingMore = r.leavingMore || len(e.Leaving) >= MostLeaving
		for _, key := range e.Leaving {
			if r.leaving == nil {
				r.leaving = make(map[Key]struct{})
			}
			r.leaving[key] = struct{}{}
		}
		if !e.Ready {
			continue
		}
		if r.ready++; r.ready == 1 || e.Observed < r.observed {
			r.observed = e.Observed
		}
	}
	r.ever = r.ever || r.ready > 0
	if r.lost && r.known && p.clock-r.heard < int64(p.config.LostAfter) {
		p.setLost(r, false)
	}
}

// reopen decides whether a router may have further routes.
func (p *Planner) reopen(r *router) {
	open := r.usable() && !r.full()
	if open == r.open && (!open || r.pool == nil) {
		return
	}
	if open != r.open {
		r.open = open
		if r.pool != nil {
			p.candidates.changed(r.pool)
		}
		if open {
			p.wakeWaiting()
		}
	}
}

// loadChanged takes note of a binding that came to a router or went.
func (p *Planner) loadChanged(r *router) {
	r.Bound = r.active()
	p.reopen(r)
	p.observe(r, false)
	p.touchLoad(r)
}

func (p *Planner) observe(r *router, gone bool) {
	if o, ok := p.config.Strategy.(Observer); ok && (r.known || gone) {
		o.Observe(&r.Router, gone)
	}
}

// observePending looks which bindings a router serves by now.
func (p *Planner) observePending(r *router) {
	rest := r.pending[:0]
	for _, b := range r.pending {
		switch {
		case b.route.gone || b.leaving || b.ready || b.route.on(r.Name) != b:
		case p.served(b):
			b.ready = true
			p.lookAround(b.route)
		default:
			rest = append(rest, b)
		}
	}
	clear(r.pending[len(rest):])
	r.pending = rest
}

// served reports whether all ready replicas of a binding's router have it.
func (p *Planner) served(b *binding) bool {
	return b.version != 0 && b.router.ready > 0 && b.router.observed >= b.version
}

// await has a binding looked at when its router reports.
func (p *Planner) await(b *binding) {
	if b.ready || b.leaving {
		return
	}
	if b.phase == BindingServing || p.served(b) {
		b.ready = true
		return
	}
	b.router.pending = append(b.router.pending, b)
}

// review finds routers that have not been heard of for too long. It is called from time to time.
func (p *Planner) review() {
	if p.clock-p.reviewed < int64(time.Second) {
		return
	}
	p.reviewed = p.clock
	grace := int64(p.config.LostAfter)
	for _, r := range p.routers {
		if r.known && p.living(r) != r.alive {
			p.sum(r)
			p.reopen(r)
			p.observePending(r)
			p.touch(r)
		}
		if !r.lost && p.clock-r.heard >= grace && (r.ever || len(r.bindings) > 0) {
			p.setLost(r, true)
		}
	}
	p.settleHold()
	p.resume()
}

func (p *Planner) setLost(r *router, lost bool) {
	r.lost = lost
	p.reopen(r)
	p.touch(r)
	if r.known {
		e := Event{Warning: lost, Reason: "RouterLost", Message: "no replica has said anything for " + p.config.LostAfter.String() + ": its routes are moved to other routers"}
		if !lost {
			e = Event{Reason: "RouterFound", Message: "a replica has said something again"}
		}
		p.report(Key{}, r.Name, e)
	}
	for _, b := range r.bindings {
		p.look(b.route)
	}
}

// settleHold decides whether what is seen of routers can be believed.
func (p *Planner) settleHold() {
	all, silent := 0, 0
	for _, r := range p.routers {
		if r.ever || len(r.bindings) > 0 {
			all++
			// They do not report at the same moment: the others have been silent nearly as long when the first is lost.
			if r.lost || p.clock-r.heard >= int64(p.config.LostAfter)/4*3 {
				silent++
			}
		}
	}
	held := 2*silent > all
	if held == p.held {
		return
	}
	p.held = held
	if held {
		p.report(Key{}, "", Event{Warning: true, Reason: "Held", Message: heldMessage})
		return
	}
	for _, r := range p.routers {
		if r.lost || r.drain {
			for _, b := range r.bindings {
				p.look(b.route)
			}
		}
	}
}

const heldMessage = "more than half of the routers look lost: nothing is moved, because the API server, the network or the scheduler is more likely in trouble than they are"
