package sim

import (
	"slices"
	"time"

	"turnout/controller/shard"
)

// Scheduler is a process with a Planner.
type Scheduler struct {
	world   *World
	Planner *shard.Planner
	ended   bool
	slow    shard.Slow
}

// Start starts a scheduler, which reads all objects first.
func (w *World) StartScheduler(rebalanced string) *Scheduler {
	config := w.options.Config
	s := &Scheduler{world: w, Planner: shard.New(config, w.clock())}
	s.slow, _ = config.Strategy.(shard.Slow)
	p := s.Planner
	for name, labels := range w.namespaces {
		p.SetNamespace(name, labels)
	}
	for _, r := range w.routes {
		if r.exists {
			p.SetRoute(r.spec, r.view(), r.admitted())
		}
	}
	w.schedulers = append(w.schedulers, s)
	if len(w.schedulers) > 1 {
		w.disturb()
	}
	for _, r := range w.routers {
		spec := r.spec
		for _, e := range r.replicas {
			spec.Replicas = append(spec.Replicas, w.replica(r, e))
		}
		p.SetRouter(spec, r.status)
	}
	for _, r := range w.routes {
		for _, b := range r.bindings {
			p.SetBinding(b.object())
		}
	}
	p.Synced(rebalanced)
	return s
}

// Kill ends a scheduler. Writes that it has begun are done or not.
func (s *Scheduler) Kill() {
	s.ended = true
	s.world.disturb()
	s.world.schedulers = slices.DeleteFunc(s.world.schedulers, func(e *Scheduler) bool { return e == s })
}

// tell has each scheduler see a change, in the order of changes.
func (w *World) tell(change func(*shard.Planner)) {
	for _, s := range w.schedulers {
		w.after(w.options.WatchLag, func() {
			if !s.ended {
				change(s.Planner)
			}
		})
	}
}

// Run lets time pass.
func (w *World) Run(d time.Duration) { w.RunUntil(d, func() bool { return false }) }

// RunUntil lets time pass until done or, at the latest, for d. It reports whether it is done.
func (w *World) RunUntil(d time.Duration, done func() bool) bool {
	end := w.now + d
	for w.now < end {
		for _, s := range w.schedulers {
			s.turn()
		}
		if done() {
			return true
		}
		next := end
		if len(w.events) > 0 {
			next = min(next, w.events[0].at)
		}
		for _, s := range w.schedulers {
			next = min(next, s.Planner.Wake().Sub(w.begun))
		}
		next = max(next, w.now+w.options.Tick)
		w.now = min(next, end)
		for _, s := range w.schedulers {
			s.Planner.Advance(w.clock())
		}
		for len(w.events) > 0 && w.events[0].at <= w.now {
			e := w.popEvent()
			e.do()
		}
	}
	return done()
}

// turn has a scheduler begin what it can.
func (s *Scheduler) turn() {
	w := s.world
	for _, a := range s.Planner.Next(0) {
		w.after(w.options.WriteTime, func() {
			if s.ended && w.rand.IntN(2) == 0 {
				return // it ended before the write was sent
			}
			result := w.apply(s, &a)
			if !s.ended {
				s.Planner.Done(a.ID, result)
			}
		})
	}
}

// apply does what an API server does with a write.
func (w *World) apply(s *Scheduler, a *shard.Action) shard.Result {
	switch a.Kind {
	case shard.Report:
		w.Events[a.Event.Reason]++
		return shard.Result{}
	case shard.Ask:
		chosen, err := s.slow.Schedule(a.Route, a.Routers)
		if err != nil {
			return shard.Result{Err: err}
		}
		return shard.Result{Router: chosen.Name}
	default:
	}
	if w.options.Fault != nil {
		if o := w.options.Fault(*a); o != shard.Written {
			return shard.Result{Outcome: o}
		}
	}
	o := w.write(a)
	if o != shard.Written {
		return shard.Result{Outcome: o}
	}
	w.Writes[a.Kind]++
	return shard.Result{Version: w.version}
}

func (w *World) write(a *shard.Action) shard.Outcome {
	b := w.routes[shard.Key{Namespace: a.Binding.Namespace, Name: a.Binding.Route}].find(a.Binding.Name)
	switch a.Kind {
	case shard.CreateBinding:
		if b != nil {
			return shard.Conflict
		}
		if w.options.Check {
			w.checkCreate(a)
		}
		w.createBinding(a.Binding, false)
		return shard.Written
	case shard.UpdateRoute:
		return w.writeRoute(a)
	case shard.UpdateRouter:
		r := w.routers[a.Router]
		if r == nil {
			return shard.NotFound
		}
		r.status = a.Status
		w.routerChanged(r)
		return shard.Written
	default:
	}
	switch {
	case b == nil:
		return shard.NotFound
	case b.version != a.Binding.Version:
		return shard.Conflict
	}
	switch a.Kind {
	case shard.MarkLeaving:
		if w.options.Check {
			w.checkLeaving(b)
		}
		w.leave(b)
		w.bindingChanged(b)
	case shard.DeleteBinding:
		if w.options.Check {
			w.checkDelete(b)
		}
		w.deleteBinding(b)
	case shard.UpdateBinding:
		b.phase = a.Phase
		b.served = b.served || a.Phase == shard.BindingServing
		w.recount(b.route)
		w.bindingChanged(b)
	default:
	}
	return shard.Written
}

func (w *World) writeRoute(a *shard.Action) shard.Outcome {
	r := w.routes[a.Key]
	switch {
	case r == nil || !r.exists:
		return shard.NotFound
	case r.spec.UID != a.RouteUID:
		return shard.Conflict
	}
	if w.options.Check && r.target != "" && r.target != a.View.Target && !r.excused {
		w.wrongf("the name of %s changes from %s to %q", a.Key, r.target, a.View.Target)
	}
	r.write(&a.View)
	for _, b := range r.bindings {
		w.label(b, slices.Contains(a.View.Bound, b.router))
	}
	w.routeChanged(r)
	return shard.Written
}

// label takes note of whether the route of a binding has the label by which its router watches routes.
func (w *World) label(b *bindingObject, labeled bool) {
	b.labeled = labeled
	if to := w.routers[b.router]; to != nil && labeled {
		delete(to.unlabeled, b)
	} else if to != nil {
		to.unlabeled[b] = struct{}{}
	}
}

// createBinding makes a binding, by a scheduler or by hand.
func (w *World) createBinding(o shard.Binding, hand bool) {
	key := shard.Key{Namespace: o.Namespace, Name: o.Route}
	r := w.routes[key]
	if r == nil {
		r = &routeObject{settled: true, spec: shard.Route{Namespace: o.Namespace, Name: o.Route}}
		w.routes[key] = r
	}
	target := share(o.Target, r.target)
	b := &bindingObject{
		route: r, router: o.Router, name: o.Name, uid: share(o.RouteUID, r.spec.UID), target: target, dns: share(o.DNS, target, r.spec.Host),
		leaving: o.Leaving, phase: o.Phase, hand: hand, version: w.nextVersion(), created: w.clock().Unix(),
	}
	if to := w.routers[o.Router]; to != nil {
		b.router = to.spec.Name
	}
	if o.Name == shard.BindingName(o.Route, o.Router) {
		b.name = ""
	}
	b.labeled = slices.Contains(split(r.bound), o.Router)
	w.join(b)
	w.bindingSeen(b)
}

func (w *World) bindingChanged(b *bindingObject) {
	b.version = w.nextVersion()
	w.bindingSeen(b)
}

func (w *World) bindingSeen(b *bindingObject) {
	object := b.object()
	w.tell(func(p *shard.Planner) { p.SetBinding(object) })
}

func (w *World) deleteBinding(b *bindingObject) {
	if !slices.Contains(b.route.bindings, b) {
		return
	}
	w.part(b)
	w.deleted = append(w.deleted, w.now)
	b.version = w.nextVersion()
	object := b.object()
	w.tell(func(p *shard.Planner) { p.DeleteBinding(object) })
}
