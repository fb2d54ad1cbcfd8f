package shard

import (
	"slices"
	"time"
)

// Done says what became of an action. What is not known is ignored.
func (p *Planner) Done(id uint64, result Result) {
	f, ok := p.flying[id]
	if !ok {
		return
	}
	delete(p.flying, id)
	p.stats.Results[result.Outcome]++
	if f.kind == Ask {
		p.asking--
	} else {
		switch result.Outcome {
		case Written:
			p.pace.written()
		case Failed:
			p.pace.failed()
		default:
		}
	}
	switch {
	case f.router != nil:
		p.doneRouter(f, result)
	case f.route == nil:
		p.doneOrphan(f, result)
	default:
		p.doneRoute(f, result)
	}
}

func (p *Planner) doneRouter(f flight, result Result) {
	r := f.router
	r.busy = false
	switch result.Outcome {
	case Written:
		r.failures = 0
		r.version = max(r.version, result.Version)
		r.seen = f.hash
	case NotFound:
	default:
		r.failures++
		r.at = p.clock + int64(p.pause(r.failures))
		r.urgentAt = r.at
	}
	p.touch(r)
}

func (p *Planner) doneOrphan(f flight, result Result) {
	list := p.orphans[f.owner]
	i := slices.IndexFunc(list, func(o orphan) bool { return o.Name == f.orphan.Name })
	if i < 0 {
		return
	}
	if result.Outcome == Written || result.Outcome == NotFound {
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(p.orphans, f.owner)
		} else {
			p.orphans[f.owner] = list
		}
		return
	}
	list[i].busy = false
	list[i].at = p.clock + int64(p.pause(4))
	p.homeless = append(p.homeless, f.owner)
}

func (p *Planner) doneRoute(f flight, result Result) {
	r := f.route
	r.busy = false
	if f.kind == Ask {
		r.answer = &answer{result.Router, result.Err}
		if !r.gone {
			p.enqueue(r, urgent) // before others are asked for, who choose by what is bound
		}
		return
	}
	if r.gone {
		if f.kind == CreateBinding && result.Outcome == Written {
			o := f.binding.object(p)
			o.Version = result.Version
			p.orphan(o)
		}
		return
	}
	switch result.Outcome {
	case Written:
		r.failures = 0
		p.written(f, result.Version)
		p.look(r)
	case NotFound:
		p.missing(f)
		p.look(r)
	default:
		p.uncreate(f)
		if f.counts && !f.binding.leaving && r.on(f.binding.router.Name) == f.binding {
			p.setMove(f.binding, false)
		}
		r.failures = min(r.failures+1, 100)
		if result.Outcome != Conflict {
			p.trouble(r, &Error{ReasonWrite, "the API did not take " + f.kind.String() + ": " + errorText(result.Err)})
		}
		p.blocked(r)
	}
}

// uncreate forgets a binding that was not created. One that was seen in between was, by somebody.
func (p *Planner) uncreate(f flight) {
	if f.kind == CreateBinding && f.binding.version == 0 && f.route.on(f.binding.router.Name) == f.binding {
		p.forget(f.binding)
	}
}

func errorText(err error) string {
	if err == nil {
		return "no reason given"
	}
	return err.Error()
}

// blocked has a route looked at after a pause, whatever happens before.
func (p *Planner) blocked(r *route) {
	wait := p.pause(int(r.failures))
	r.until = p.clock + int64(wait)
	p.time(r, wait)
}

// written takes note of a write that was done.
func (p *Planner) written(f flight, version uint64) {
	r, b := f.route, f.binding
	if b != nil && r.on(b.router.Name) != b {
		return // it was deleted in between
	}
	if r.trouble != nil && r.trouble.reason == ReasonWrite {
		p.settleTrouble(r)
	}
	switch f.kind {
	case CreateBinding:
		b.version = max(b.version, version)
		b.since = p.clock
		p.stats.Placed++
		p.count(r)
		p.await(b)
	case MarkLeaving:
		b.version = max(b.version, version)
		counted := b.move // by itself
		if !b.leaving {
			p.setLeaving(b)
		}
		if !counted {
			p.transfer(r)
		}
		p.stats.Moved++
	case DeleteBinding:
		p.forget(b)
		p.lookAround(r)
	case UpdateBinding:
		b.version = max(b.version, version)
		b.phase = f.phase
		p.lookAround(r)
	case UpdateRoute:
		r.version = max(r.version, version)
		r.seen = f.hash
	default:
	}
}

// missing takes note that there was no such object.
func (p *Planner) missing(f flight) {
	switch f.kind {
	case CreateBinding:
		p.uncreate(f) // its namespace or route is gone: that will be said
		p.blocked(f.route)
	case MarkLeaving, DeleteBinding, UpdateBinding:
		if f.route.on(f.binding.router.Name) == f.binding {
			p.forget(f.binding)
		}
	default:
		p.blocked(f.route)
	}
}

// transfer has a move counted by the binding that leaves, not any more by the one that took its place.
func (p *Planner) transfer(r *route) {
	for _, b := range r.bindings {
		if b.move && !b.leaving {
			p.setMove(b, false)
			return
		}
	}
}

// settleMoves has no bindings counted that take another's place: there is none to take.
func (p *Planner) settleMoves(r *route) {
	for _, b := range r.bindings {
		p.setMove(b, false)
	}
}

func (p *Planner) setMove(b *binding, move bool) {
	if b.move == move {
		return
	}
	b.move = move
	if move {
		b.router.moves++
	} else {
		b.router.moves--
	}
	p.touchLoad(b.router)
	p.count(b.route)
}

// count brings up to date what is counted of a route.
func (p *Planner) count(r *route) {
	under, done, bound := int8(0), int8(0), false
	for _, b := range r.bindings {
		switch {
		case b.settled:
			done++
		case b.leaving || b.move:
			under++
		}
		bound = bound || b.version != 0 && !b.leaving
	}
	p.underway += int(under) - int(r.under)
	p.settled += int(done) - int(r.done)
	r.under, r.done = under, done
	if bound != r.bound {
		r.bound = bound
		if bound {
			p.bound++
		} else {
			p.bound--
		}
	}
}

// fail takes note that a route cannot be bound, or moved, now. It is tried again after a pause, or when something changes.
func (p *Planner) fail(r *route, err *Error) (Action, bool) {
	if r.trouble == nil || p.clock >= r.trouble.until || r.trouble.reason != err.Reason {
		p.trouble(r, err)
		r.trouble.failures++
		wait := p.pause(r.trouble.failures)
		r.trouble.until = p.clock + int64(wait)
		p.time(r, wait)
	} else {
		p.time(r, time.Duration(r.trouble.until-p.clock))
	}
	p.waiting[r] = struct{}{}
	return p.write(r)
}

// trouble takes note of why a route is not where it should be.
func (p *Planner) trouble(r *route, err *Error) {
	switch {
	case r.trouble == nil:
		r.trouble = &trouble{}
	case r.trouble.reason == err.Reason:
		r.trouble.message = err.Message
		return
	default:
		p.troubles[r.trouble.reason]--
	}
	r.trouble.reason, r.trouble.message = err.Reason, err.Message
	p.troubles[err.Reason]++
	p.report(r.Key(), "", Event{Warning: true, Reason: string(err.Reason), Message: err.Message})
}

// settleTrouble takes note that a route is where it should be.
func (p *Planner) settleTrouble(r *route) {
	delete(p.waiting, r)
	if r.trouble == nil {
		return
	}
	if p.troubles[r.trouble.reason]--; p.troubles[r.trouble.reason] == 0 {
		delete(p.troubles, r.trouble.reason)
	}
	r.trouble = nil
}

// renew has a route tried without the pause that is left.
func (p *Planner) renew(r *route) {
	if r.trouble != nil {
		r.trouble.until = 0
	}
}

// wakeWaiting has the routes tried again that wait for a router.
func (p *Planner) wakeWaiting() { p.wake = true }

// rouse does so, at most once in callAgain.
func (p *Planner) rouse() {
	if !p.wake || p.woken != 0 && p.clock-p.woken < int64(callAgain) {
		return
	}
	p.wake, p.woken = false, p.clock
	for r := range p.waiting {
		p.renew(r)
		p.look(r)
	}
	clear(p.waiting)
}
