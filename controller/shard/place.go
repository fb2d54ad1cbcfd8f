package shard

import (
	"cmp"
	"slices"
	"strings"
)

// place returns the router that a route is to be bound to next. later: the strategy is asked, or cannot be asked now; the route is looked at again.
func (p *Planner) place(r *route, o *outlook) (to *router, err *Error, later bool) {
	if r.trouble != nil && p.clock < r.trouble.until {
		return nil, &Error{r.trouble.reason, r.trouble.message}, false
	}
	w := p.candidates.of(&r.Route, r.Host == "" && r.target == (dnsName{}))
	if to := p.besideSiblings(r, w); to != nil {
		return to, nil, false
	}
	open := w.routers()
	if slices.ContainsFunc(o.bad, func(b *binding) bool { return b.evict == byRebalance }) {
		if to := p.goalFor(r, open); to != nil {
			return to, nil, false
		}
	}
	multiple, _ := p.config.Strategy.(Multiple)
	if multiple == nil || len(o.bad)+len(o.leaving) > 0 {
		open = without(open, r.bindings)
	}
	if len(open) == 0 || multiple != nil && allHave(open, r.bindings) {
		return nil, w.why(), false
	}
	if s, ok := p.config.Strategy.(Slow); ok && r.answer == nil {
		return nil, nil, p.ask(r, s, open)
	}
	chosen, failure := p.choose(r, o, multiple, open)
	if failure != nil {
		return nil, &Error{ReasonStrategy, "the strategy found no router: " + failure.Error()}, false
	}
	if chosen != nil {
		to = p.routers[chosen.Name]
	}
	if to == nil || !to.open || r.on(to.Name) != nil || !slices.ContainsFunc(open, func(e *Router) bool { return e.Name == to.Name }) {
		name := "none"
		if chosen != nil {
			name = chosen.Name
		}
		return nil, &Error{ReasonStrategy, "the strategy chose router " + name + ", which may not have the route"}, false
	}
	return to, nil, false
}

// choose has the strategy choose.
func (p *Planner) choose(r *route, o *outlook, multiple Multiple, open []*Router) (*Router, error) {
	switch {
	case r.answer != nil:
		a := r.answer
		r.answer = nil
		if a.err != nil {
			return nil, a.err
		}
		return &Router{Name: a.router}, nil
	case multiple != nil && len(o.good) > 0:
		have := make([]*Router, 0, len(o.good))
		for _, b := range o.good {
			have = append(have, &b.router.Router)
		}
		return multiple.Another(&r.Route, have, open)
	}
	return p.config.Strategy.Schedule(&r.Route, open)
}

// without returns routers without those that a route has bindings to: the same slice if it has none.
func without(routers []*Router, bindings []*binding) []*Router {
	has := func(e *Router) bool {
		return slices.ContainsFunc(bindings, func(b *binding) bool { return b.router.Name == e.Name })
	}
	if len(bindings) == 0 || !slices.ContainsFunc(routers, has) {
		return routers
	}
	return slices.DeleteFunc(slices.Clone(routers), has)
}

func allHave(routers []*Router, bindings []*binding) bool {
	if len(routers) > len(bindings) {
		return false
	}
	return len(without(routers, bindings)) == 0
}

// besideSiblings returns a router that has other routes of the same host, nil if there is none: the host's name in DNS leads to one place.
// Room is made for them.
func (p *Planner) besideSiblings(r *route, w *crowd) *router {
	var found *router
	p.eachSibling(r, func(s *route) bool {
		for _, b := range s.bindings {
			to := b.router
			if !b.leaving && to.usable() && r.on(to.Name) == nil && slices.Contains(w.pools, to.pool) && p.why(b) == stays {
				found = to
				return false
			}
		}
		return true
	})
	return found
}

// eachSibling calls yield with other routes that have a part of the same host, the oldest first.
func (p *Planner) eachSibling(r *route, yield func(*route) bool) {
	if r.Host == "" {
		return
	}
	p.claims.Each(r.Host, func(key Key, admitted bool) bool {
		if !admitted || key == r.Key() {
			return true
		}
		s := p.route(key)
		return s == nil || yield(s)
	})
}

// groupServes reports whether a binding may leave as far as other routes of the same host are concerned: those that leave the same router do it
// together, when each of them is served elsewhere.
func (p *Planner) groupServes(b *binding) bool {
	all := true
	p.eachSibling(b.route, func(s *route) bool {
		if on := s.on(b.router.Name); on == nil || on.leaving || p.why(on) == stays {
			return true
		}
		all = slices.ContainsFunc(s.bindings, func(e *binding) bool {
			return !e.leaving && e.phase == BindingServing && p.why(e) == stays
		})
		return all
	})
	return all
}

// refusal says why a route may not have the host that it asks for, nil if it may.
func (p *Planner) refusal(r *route) *Error {
	if r.Host == "" {
		return nil
	}
	if v := p.checked(r); !v.Admitted {
		return &Error{ReasonInvalid, v.Message}
	}
	if v, _ := p.claims.Verdict(r.Key()); !v.Admitted {
		return &Error{ReasonHost, v.Message}
	}
	if owner := p.holderOf(r.Host); owner != nil && owner.Namespace != r.Namespace {
		return &Error{ReasonHost, "the host is the name that the system has given to a route in another namespace"}
	}
	return nil
}

// requested reports whether another route than r asks for a host and may have it.
func (p *Planner) requested(r *route, host string) bool {
	found := false
	p.claims.Each(host, func(key Key, admitted bool) bool {
		found = admitted && key != r.Key()
		return !found
	})
	return found
}

// settleClaims has the routes looked at whose right to their host has changed.
func (p *Planner) settleClaims() {
	for _, key := range p.claims.Settle() {
		if r := p.route(key); r != nil {
			p.renew(r)
			p.look(r)
		}
	}
}

// ask begins to ask a slow strategy. It reports whether the route is to be looked at later.
func (p *Planner) ask(r *route, s Slow, open []*Router) bool {
	if p.asking >= max(s.Concurrency(), 1) {
		name := calm
		if len(r.bindings) == 0 {
			name = fresh
		}
		p.enqueue(r, name)
		return true
	}
	copies, values := make([]*Router, len(open)), make([]Router, len(open))
	for i, e := range open {
		values[i] = *e
		copies[i] = &values[i]
	}
	route := r.Route
	p.asking++
	p.fly(r, flight{kind: Ask})
	p.asks = append(p.asks, p.stamp(Action{Kind: Ask, Key: r.Key(), Route: &route, Routers: copies}))
	return true
}

// cmpBindings compares by age.
func cmpBindings(a, b *binding) int {
	return cmp.Or(cmp.Compare(a.created, b.created), strings.Compare(a.router.Name, b.router.Name))
}
