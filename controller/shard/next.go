package shard

import (
	"slices"
	"time"
)

// eventsPerSecond is how many events are reported. More are dropped: the state of each object says the same.
const eventsPerSecond = 20

// maxReports is how many events wait at most.
const maxReports = 1000

// gracious is how long the garbage collector has to delete bindings whose route is gone.
const gracious = 30 * time.Second

// statusPause is how often the status of a router is written at most, but for what matters at once, within a second.
const statusPause = 10 * time.Second

// Next returns up to limit actions that may begin now, in their order. limit 0 is no limit but those of Config.
func (p *Planner) Next(limit int) []Action {
	if !p.synced {
		return nil
	}
	p.settleClaims()
	p.settleCapacity()
	p.settleRebalance()
	var list []Action
	list = append(list, p.reports...)
	p.reports = nil
	for (limit == 0 || len(list) < limit) && len(p.flying) < p.config.Flying && p.pace.wait() == 0 {
		a, ok := p.nextAction()
		list = append(list, p.asks...)
		p.asks = p.asks[:0]
		if !ok {
			break
		}
		p.pace.spend()
		list = append(list, p.stamp(a))
	}
	for _, a := range list {
		p.stats.Actions[a.Kind]++
	}
	return list
}

// stamp gives an action the number of the flight that was entered last.
func (p *Planner) stamp(a Action) Action {
	a.ID = p.lastID
	return a
}

// fly enters an action that is going to be returned by Next.
func (p *Planner) fly(r *route, f flight) {
	f.route = r
	p.lastID++
	p.flying[p.lastID] = f
	if r != nil {
		r.busy = true
	}
	if f.router != nil {
		f.router.busy = true
	}
}

// nextAction returns the next action. The bool is false if there is none now.
func (p *Planner) nextAction() (Action, bool) {
	// One in eight is about a router or a binding without a route, if there is any.
	p.turn++
	if p.turn%8 == 0 {
		if a, ok := p.nextOther(); ok {
			return a, true
		}
	}
	for _, name := range p.order() {
		for {
			r := p.dequeue(name)
			if r == nil {
				break
			}
			if r.busy {
				continue // it is looked at when the action comes back
			}
			if p.clock < r.until {
				p.time(r, time.Duration(r.until-p.clock))
				continue
			}
			if a, ok := p.step(r); ok {
				return a, true
			}
			if !p.allowed(name) || len(p.flying) >= p.config.Flying {
				break
			}
		}
	}
	return p.nextOther()
}

// order is in which order queues are served: what is under way first, then what nobody serves, and of the others sometimes this, sometimes that.
func (p *Planner) order() []queueName {
	list := make([]queueName, 0, queues)
	for _, name := range []queueName{urgent, rescue, fresh, calm} {
		if p.allowed(name) {
			list = append(list, name)
		}
	}
	if n := len(list); p.turn%4 == 0 && n > 1 && list[n-1] == calm && list[n-2] == fresh {
		list[n-1], list[n-2] = fresh, calm
	}
	return list
}

// allowed reports whether a queue is served at present.
func (p *Planner) allowed(name queueName) bool {
	if p.queues[name].len() == 0 {
		return false
	}
	if s, ok := p.config.Strategy.(Slow); ok && name != urgent && p.asking >= max(s.Concurrency(), 1) {
		return false
	}
	return name == urgent || name == fresh || p.mayMove()
}

// mayMove reports whether another binding may be under way. Those that are do not count as bindings, because they are more than there will be. One
// that only waits for the last clients is not under way any more: both routers serve the route, and DNS names the new one.
func (p *Planner) mayMove() bool {
	return !p.held && p.underway < max(1, (p.bindings-p.underway-p.settled)/UnderWay)
}

// nextOther returns the next action that is not about a route that is known.
func (p *Planner) nextOther() (Action, bool) {
	if a, ok := p.nextOrphan(); ok {
		return a, true
	}
	return p.nextStatus()
}

// nextStatus writes the status of a router.
func (p *Planner) nextStatus() (Action, bool) {
	for len(p.statuses) > 0 {
		r := p.statuses[0]
		p.statuses = p.statuses[1:]
		r.queued = false
		switch {
		case !r.known || r.busy:
			continue
		case p.clock < r.at && p.clock < r.urgentAt:
			p.postpone(r, true)
			continue
		}
		s := p.status(r)
		hash := s.hash()
		switch {
		case hash == r.seen:
			continue
		case p.clock < r.at && vital(&s) == r.vital:
			p.postpone(r, false)
			continue
		}
		p.fly(nil, flight{kind: UpdateRouter, router: r, hash: hash})
		r.at, r.urgentAt, r.vital = p.clock+int64(statusPause), p.clock+int64(time.Second), vital(&s)
		return Action{Kind: UpdateRouter, Router: r.Name, RouterUID: r.UID, Status: s}, true
	}
	return Action{}, false
}

// touch has the status of a router looked at.
func (p *Planner) touch(r *router) {
	if !r.queued && r.known {
		r.queued = true
		p.statuses = append(p.statuses, r)
	}
}

// touchLoad has the status of a router looked at of which only numbers have changed: that is not urgent.
func (p *Planner) touchLoad(r *router) {
	if p.clock < r.at {
		p.postpone(r, false)
		return
	}
	p.touch(r)
}

// postpone has the status of a router looked at when it may be written. urgent: something may have changed that is to be said at once.
func (p *Planner) postpone(r *router, urgent bool) {
	r.urgent = r.urgent || urgent
	if !r.later {
		r.later = true
		p.later = append(p.later, r)
	}
}

// resume has those looked at that were postponed and may be written now.
func (p *Planner) resume() {
	rest := p.later[:0]
	for _, r := range p.later {
		if p.clock < r.at && (!r.urgent || p.clock < r.urgentAt) {
			rest = append(rest, r)
			continue
		}
		r.later, r.urgent = false, false
		p.touch(r)
	}
	clear(p.later[len(rest):])
	p.later = rest
}

// vital is a hash of what is to be said at once.
func vital(s *RouterStatus) uint64 {
	v := *s
	v.RoutesBound, v.Moving = 0, 0
	return v.hash()
}

// orphan takes note of a binding of a route that is not known.
func (p *Planner) orphan(o Binding) {
	key := Key{Namespace: o.Namespace, Name: o.Route}
	list := p.orphans[key]
	i := slices.IndexFunc(list, func(e orphan) bool { return e.Name == o.Name })
	switch {
	case i < 0:
		list = append(list, orphan{Binding: o, at: p.clock + int64(gracious)})
	case list[i].Version <= o.Version:
		list[i].Binding = o
	}
	p.orphans[key] = list
	if p.synced {
		p.homeless = append(p.homeless, key)
	}
}

// nextOrphan deletes a binding whose route is gone, or whose name is none that the scheduler gives.
func (p *Planner) nextOrphan() (Action, bool) {
	for range len(p.homeless) {
		key := p.homeless[0]
		p.homeless = p.homeless[1:]
		list := p.orphans[key]
		later := false
		for i := range list {
			o := &list[i]
			if o.busy {
				continue
			}
			if p.clock < o.at {
				later = true
				continue
			}
			o.busy = true
			p.homeless = append(p.homeless, key)
			p.fly(nil, flight{kind: DeleteBinding, orphan: o.Key(), owner: key})
			return Action{Kind: DeleteBinding, Key: key, Router: o.Router, Binding: o.Binding}, true
		}
		if later {
			p.homeless = append(p.homeless, key)
		}
	}
	return Action{}, false
}

// report has an event recorded. Of too many some are dropped: the state of each object says the same.
func (p *Planner) report(key Key, router string, e Event) {
	if !p.synced {
		return
	}
	if p.events.wait() > 0 || len(p.reports) >= maxReports {
		p.stats.Dropped++
		return
	}
	p.events.spend()
	p.lastID++
	p.reports = append(p.reports, Action{ID: p.lastID, Kind: Report, Key: key, Router: router, Event: e})
}

// Wake returns when Advance and Next are to be called again at the latest, though nothing has happened.
func (p *Planner) Wake() time.Time {
	wait := callAgain
	if len(p.flying) < p.config.Flying && p.synced {
		if p.busy() {
			wait = min(wait, p.pace.wait())
		}
	}
	if len(p.timers) > 0 {
		wait = min(wait, time.Duration(max(p.timers[0].at-p.clock, 0)))
	}
	return p.now.Add(wait)
}

// busy reports whether a queue has something for now.
func (p *Planner) busy() bool {
	for name := urgent; name < queues; name++ {
		if p.allowed(name) {
			return true
		}
	}
	return len(p.reports) > 0
}
