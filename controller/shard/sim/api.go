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
		p.SetRoute(r.spec, r.view, r.admitted)
	}
	w.schedulers = append(w.schedulers, s)
	if len(w.schedulers) > 1 {
		w.disturb()
	}
	for _, r := range w.routers {
		spec := r.spec
		for _, e := range r.replicas {
			spec.Replicas = append(spec.Replicas, shard.Replica{Name: e.name, Ready: e.ready, Observed: e.observed, Renewed: e.renewed})
		}
		p.SetRouter(spec, r.status)
	}
	for _, b := range w.bindings {
		p.SetBinding(b.Binding)
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
	key := a.Binding.Key()
	b := w.bindings[key]
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
	case b.Version != a.Binding.Version:
		return shard.Conflict
	}
	switch a.Kind {
	case shard.MarkLeaving:
		if w.options.Check {
			w.checkLeaving(b)
		}
		b.Leaving, b.left = true, w.now
		w.bindingChanged(b)
	case shard.DeleteBinding:
		if w.options.Check {
			w.checkDelete(b)
		}
		w.deleteBinding(b)
	case shard.UpdateBinding:
		b.Phase = a.Phase
		b.served = b.served || a.Phase == shard.BindingServing
		w.bindingChanged(b)
	default:
	}
	return shard.Written
}

func (w *World) writeRoute(a *shard.Action) shard.Outcome {
	r := w.routes[a.Key]
	switch {
	case r == nil:
		return shard.NotFound
	case r.spec.UID != a.RouteUID:
		return shard.Conflict
	}
	if w.options.Check && r.view.Target != "" && r.view.Target != a.View.Target && !r.excused {
		w.wrongf("the name of %s changes from %s to %q", a.Key, r.view.Target, a.View.Target)
	}
	r.view = a.View
	for router, b := range r.bindings {
		b.labeled = slices.Contains(r.view.Bound, router)
		if to := w.routers[router]; to != nil && b.labeled {
			delete(to.unlabeled, b.Key())
		} else if to != nil {
			to.unlabeled[b.Key()] = b
		}
	}
	w.routeChanged(r)
	return shard.Written
}

// createBinding makes a binding, by a scheduler or by hand.
func (w *World) createBinding(o shard.Binding, hand bool) {
	b := &bindingObject{Binding: o, hand: hand}
	b.Version = w.next()
	b.Created = w.clock().Unix()
	w.bindings[b.Key()] = b
	if r := w.routes[shard.Key{Namespace: o.Namespace, Name: o.Route}]; r != nil {
		r.bindings[o.Router] = b
		b.labeled = slices.Contains(r.view.Bound, o.Router)
	}
	if r := w.routers[o.Router]; r != nil {
		r.bound[b.Key()] = b
		if !b.labeled {
			r.unlabeled[b.Key()] = b
		}
	}
	object := b.Binding
	w.tell(func(p *shard.Planner) { p.SetBinding(object) })
}

func (w *World) bindingChanged(b *bindingObject) {
	b.Version = w.next()
	object := b.Binding
	w.tell(func(p *shard.Planner) { p.SetBinding(object) })
}

func (w *World) deleteBinding(b *bindingObject) {
	if w.bindings[b.Key()] != b {
		return
	}
	delete(w.bindings, b.Key())
	w.deleted = append(w.deleted, w.now)
	if r := w.routes[shard.Key{Namespace: b.Namespace, Name: b.Route}]; r != nil && r.bindings[b.Router] == b {
		delete(r.bindings, b.Router)
	}
	if r := w.routers[b.Router]; r != nil {
		delete(r.bound, b.Key())
		delete(r.unlabeled, b.Key())
	}
	b.Version = w.next()
	object := b.Binding
	w.tell(func(p *shard.Planner) { p.DeleteBinding(object) })
}
