package scheduler

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
	"turnout/controller/shard/fleet"
	"turnout/controller/source"
	"turnout/controller/source/cluster"
)

// leader is one time that this process leads. Its fields belong to the goroutine of run.
type leader struct {
	*Scheduler
	planner *shard.Planner
	inbox   *inbox
	config  shard.Config
	synced  bool

	scheduler *api.RouteScheduler // nil: there is none
	spec      *api.RouteSchedulerSpec
	invalid   string // why the spec cannot be used, which then is that of before
	said      api.RouteSchedulerStatus
	saidAt    time.Time
	shownAt   time.Time

	bound    map[shard.Key][]string        // labels that Routes have
	bindings map[shard.Key]shard.Binding   // as last seen
	routers  map[string]*api.Router        // as last seen
	silence  map[string]map[string]*silent // of replicas, by router and name

	rested  time.Time                     // questions of people are answered from then on
	fleet   atomic.Pointer[[]*api.Router] // routers, for keepPods
	writing sync.WaitGroup
}

// lead schedules until ctx is done.
func (s *Scheduler) lead(ctx context.Context) error {
	feeder, err := cluster.New(s.cfg.Cluster)
	if err != nil {
		return err
	}
	l := &leader{
		Scheduler: s, inbox: newInbox(), bound: make(map[shard.Key][]string), bindings: make(map[shard.Key]shard.Binding),
		routers: make(map[string]*api.Router), silence: make(map[string]map[string]*silent), spec: new(api.RouteSchedulerSpec),
	}
	if l.config, err = l.configOf(l.spec); err != nil {
		return err
	}
	l.planner = shard.New(l.config, time.Now())
	reading, stop := context.WithCancel(ctx)
	fed := make(chan error, 1)
	go func() { fed <- feeder.Run(reading, l.inbox) }()
	if s.cfg.KeepPods {
		l.writing.Go(func() { l.keepPods(reading) })
	}
	l.run(ctx)
	stop()
	l.writing.Wait()
	return <-fed
}

// run is the goroutine that owns the Planner.
func (l *leader) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		asked := l.asked
		if time.Now().Before(l.rested) {
			asked = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-l.inbox.wake:
		case <-timer.C:
		case q := <-asked:
			l.answer(q, time.Now())
		}
		l.turn(ctx, time.Now())
		l.show(ctx, time.Now())
		pause := max(time.Until(l.planner.Wake()), time.Millisecond)
		timer.Reset(min(pause, showPause))
	}
}

// turn hands what has happened to the Planner and begins what it wants.
func (l *leader) turn(ctx context.Context, now time.Time) {
	l.planner.Advance(now)
	events, results, synced := l.inbox.takeAll()
	for i := range events {
		l.event(&events[i], now)
	}
	for _, r := range results {
		l.planner.Done(r.id, r.Result)
	}
	if synced && !l.synced {
		l.synced = true
		rebalanced := ""
		if l.scheduler != nil {
			rebalanced = l.scheduler.Status.Rebalanced
		}
		l.planner.Synced(rebalanced)
		l.log.Info("objects have been read", zap.Int("routers", len(l.routers)), zap.Int("bindings", len(l.bindings)))
	}
	for _, a := range l.planner.Next(0) {
		do := l.prepare(&a)
		l.writing.Go(func() { l.inbox.done(result{a.ID, do(ctx)}) })
	}
}

// event hands a change of an object to the Planner.
func (l *leader) event(e *source.Event, now time.Time) {
	switch o := e.Object.(type) {
	case *routev1.Route:
		r, seen, admitted := routeOf(o)
		l.planner.SetRoute(r, seen, admitted)
		if len(seen.Bound) > 0 {
			l.bound[e.Key] = seen.Bound
		} else {
			delete(l.bound, e.Key)
		}
	case *corev1.Namespace:
		l.planner.SetNamespace(o.Name, shard.MakeLabels(o.Labels))
	case *api.RouteBinding:
		b := bindingOf(o)
		l.bindings[e.Key] = b
		l.planner.SetBinding(b)
	case *api.Router:
		l.routers[o.Name] = o
		l.listen(o, now)
		r, seen := routerOf(o)
		l.planner.SetRouter(r, seen)
	case *api.RouteScheduler:
		l.follow(o)
	default:
		l.gone(e)
	}
}

// gone hands the end of an object to the Planner.
func (l *leader) gone(e *source.Event) {
	switch e.Kind {
	case source.Route:
		delete(l.bound, e.Key)
		l.planner.DeleteRoute(e.Key)
	case source.Namespace:
		l.planner.DeleteNamespace(e.Key.Name)
	case source.RouteBinding:
		last := l.bindings[e.Key]
		delete(l.bindings, e.Key)
		l.planner.DeleteBinding(last)
	case source.Router:
		delete(l.routers, e.Key.Name)
		delete(l.silence, e.Key.Name)
		l.planner.DeleteRouter(e.Key.Name)
	case source.RouteScheduler:
		l.follow(nil)
	default:
	}
}

// follow schedules as a RouteScheduler says; nil: as without one. A spec that cannot be used changes nothing.
func (l *leader) follow(o *api.RouteScheduler) {
	l.scheduler = o
	spec := new(api.RouteSchedulerSpec)
	if o != nil {
		spec = &o.Spec
	}
	if reflect.DeepEqual(spec, l.spec) && l.invalid == "" {
		return
	}
	config, err := l.configOf(spec)
	if err != nil {
		if l.invalid != err.Error() {
			l.log.Error("the RouteScheduler cannot be used; routes are bound as before", zap.Error(err))
		}
		l.invalid = err.Error()
		return
	}
	l.invalid, l.spec, l.config = "", spec, config
	l.planner.Configure(config)
}

// configOf is how routes are bound by a spec. A strategy that stays the same is kept, with what it knows.
func (l *leader) configOf(spec *api.RouteSchedulerSpec) (shard.Config, error) {
	config := shard.Config{
		Strategy: l.config.Strategy, WritesPerSecond: int(spec.WritesPerSecond), LostAfter: time.Duration(spec.LostAfterSeconds) * time.Second,
		AllowWildcard: l.cfg.AllowWildcard, AllowSharedHosts: spec.AllowSharedHosts, Rebalance: spec.Rebalance, Seed: uint64(time.Now().UnixNano()),
	}
	if config.Strategy != nil && spec.Strategy == l.spec.Strategy && spec.Routers == l.spec.Routers &&
		reflect.DeepEqual(spec.CEL, l.spec.CEL) && reflect.DeepEqual(spec.Webhook, l.spec.Webhook) {
		return config, nil
	}
	var err error
	config.Strategy, err = l.strategyOf(spec)
	return config, err
}

// podsPause is between two looks at the pods of Routers.
const podsPause = 10 * time.Second

// keepPods keeps the pods of Routers until ctx is done.
func (l *leader) keepPods(ctx context.Context) {
	keeper := fleet.New(fleet.Config{
		API: l.clients.core, Shards: l.clients.shards, Namespace: l.cfg.Namespace, Default: l.cfg.PodTemplate, Log: l.log,
	})
	known := make(map[string]bool)
	for ctx.Err() == nil {
		there := make(map[string]bool)
		if all := l.fleet.Load(); all != nil {
			for _, r := range *all {
				there[r.Name] = true
				keeper.Keep(ctx, r)
			}
		}
		for name := range known {
			if !there[name] {
				keeper.Forget(name)
			}
		}
		known = there
		select {
		case <-ctx.Done():
		case <-time.After(podsPause):
		}
	}
}

// showPause is between two times that what the scheduler does is published.
const showPause = 200 * time.Millisecond

// show publishes what the scheduler does.
func (l *leader) show(ctx context.Context, now time.Time) {
	if now.Sub(l.shownAt) < showPause {
		return
	}
	l.shownAt = now
	phases := make(map[shard.RouterPhase]int)
	for _, r := range l.routers {
		phases[shard.RouterPhase(r.Status.Phase)]++
	}
	s := &Stats{Leading: true, Synced: l.synced, Summary: l.planner.Summary(), Counts: l.planner.Stats(), Troubles: maps.Clone(l.planner.Troubles()), Routers: phases}
	l.shown.Store(s)
	all := slices.Collect(maps.Values(l.routers))
	l.fleet.Store(&all)
	if l.synced {
		l.sweep(ctx, now)
		l.report(ctx, now, &s.Summary)
	}
}

// errNotAsked is what becomes of questions to a strategy that does not wait for others.
var errNotAsked = errors.New("BUG: the strategy cannot be asked beside the planner")

// ask calls a strategy that waits for others.
func ask(strategy shard.Strategy, a *shard.Action) shard.Result {
	slow, ok := strategy.(shard.Slow)
	if !ok {
		return shard.Result{Err: errNotAsked}
	}
	chosen, err := slow.Schedule(a.Route, a.Routers)
	if err != nil {
		return shard.Result{Err: err}
	}
	if !slices.Contains(a.Routers, chosen) {
		return shard.Result{Err: errors.New("BUG: the strategy has chosen a router that it was not given")}
	}
	return shard.Result{Router: chosen.Name}
}
