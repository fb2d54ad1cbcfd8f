// Package naming keeps names of DNS as Routers and RouteBindings have them while these change.
//
//	Feeder (package cluster) ─► Router, RouteBinding ─► Keeper ─► zones.Make, zones.Set ─► Config.Publish
//
// Changes are put together: what comes within a moment is one, and two sets of zones are at least a second apart, so that serials follow the
// clock. A report of a replica that changes no name costs next to nothing. While the API server is away, names stay as they are.
package naming

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"turnout/controller/shard/api"
	"turnout/controller/shard/zones"
	"turnout/controller/source"
	"turnout/internal/dns/zone"
)

// Config is what a Keeper needs. Publish is required; zero values of others are defaults.
type Config struct {
	Zones     zones.Config
	LostAfter time.Duration // without a word of a replica, after which it is not where clients go; DefaultLostAfter
	Last      zones.Last    // nil = nothing is known of earlier serials
	// Publish gets each change, one after the other. The error is one of ours: the Keeper ends with it.
	Publish func(*Change) error

	Quiet time.Duration    // without a change, after which what has come is one; DefaultQuiet
	Pause time.Duration    // between two changes, at least; DefaultPause
	Now   func() time.Time // nil = time.Now
}

// Defaults of Config.
const (
	DefaultLostAfter = 2 * time.Minute
	DefaultQuiet     = 50 * time.Millisecond
	DefaultPause     = time.Second
	mostQuiet        = 10 // times Quiet, for which a change waits at most
)

// Change is all names after a change.
type Change struct {
	Set     *zone.Set
	Shards  []zones.Shard
	LeftOut []zones.LeftOut
}

// Counts is what a Keeper has.
type Counts struct {
	Routers, Bindings int // Bindings that serve
	Changes           uint64
	LeftOut           int
}

// Keeper is a source.Sink that keeps names. It is made by New.
type Keeper struct {
	cfg  Config
	wake chan struct{} // holds one

	mu       sync.Mutex
	synced   bool
	dirty    bool // there may be other names
	routers  map[string]*router
	bindings map[source.Key]zones.Binding // that serve
	names    *zones.Names                 // made last; nil before
	counts   Counts
}

// router is a Router and what is heard of its replicas.
type router struct {
	object *api.Router
	heard  map[string]heard
	known  zones.Router // as names were made of it last
}

// heard is when a replica said something last.
type heard struct {
	renewed time.Time // by its own clock
	at      time.Time // by ours
}

// New returns a Keeper that knows nothing yet.
func New(cfg Config) (*Keeper, error) {
	if cfg.Publish == nil {
		return nil, errors.New("cannot keep names: nobody wants them")
	}
	if cfg.LostAfter <= 0 {
		cfg.LostAfter = DefaultLostAfter
	}
	if cfg.Quiet <= 0 {
		cfg.Quiet = DefaultQuiet
	}
	if cfg.Pause <= 0 {
		cfg.Pause = DefaultPause
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Keeper{cfg: cfg, wake: make(chan struct{}, 1), routers: map[string]*router{}, bindings: map[source.Key]zones.Binding{}}, nil
}

// Event implements source.Sink.
func (k *Keeper) Event(events ...source.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range events {
		switch e := &events[i]; e.Kind {
		case source.Router:
			o, _ := e.Object.(*api.Router)
			k.setRouter(e.Key.Name, o)
		case source.RouteBinding:
			o, _ := e.Object.(*api.RouteBinding)
			k.setBinding(e.Key, o)
		default: // nobody reads others
		}
	}
	k.rouse()
}

// Synced implements source.Sink.
func (k *Keeper) Synced() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.synced, k.dirty = true, true
	k.rouse()
}

// rouse wakes Run if there is something to do. k.mu is held.
func (k *Keeper) rouse() {
	if !k.synced || !k.dirty {
		return
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// setRouter takes note of a Router, nil if it is gone. k.mu is held.
func (k *Keeper) setRouter(name string, o *api.Router) {
	if o == nil {
		delete(k.routers, name)
		k.dirty = true
		return
	}
	r := k.routers[name]
	if r == nil {
		r = &router{heard: map[string]heard{}}
		k.routers[name] = r
	}
	now, there := k.cfg.Now(), make(map[string]bool, len(o.Status.Replicas))
	for i := range o.Status.Replicas {
		s := &o.Status.Replicas[i]
		there[s.Name] = true
		if last, ok := r.heard[s.Name]; !ok || !last.renewed.Equal(s.Renewed.Time) {
			r.heard[s.Name] = heard{renewed: s.Renewed.Time, at: now}
		}
	}
	maps.DeleteFunc(r.heard, func(name string, _ heard) bool { return !there[name] })
	r.object = o
	k.look(r, now)
}

// look compares what is to be known of a Router with what was. k.mu is held.
func (k *Keeper) look(r *router, now time.Time) {
	known := zones.RouterOf(r.object, func(replica string) bool { return now.Sub(r.heard[replica].at) >= k.cfg.LostAfter })
	if !known.Equal(&r.known) {
		r.known, k.dirty = known, true
	}
}

// setBinding takes note of a binding, nil if it is gone. k.mu is held.
func (k *Keeper) setBinding(key source.Key, o *api.RouteBinding) {
	var now zones.Binding
	if o != nil {
		now = zones.BindingOf(o)
	}
	before := k.bindings[key]
	if before == now || !before.Serving && !now.Serving {
		return
	}
	if now.Serving {
		k.bindings[key] = now
	} else {
		delete(k.bindings, key)
	}
	k.dirty = k.dirty || k.names == nil || k.names.Affects(before) || k.names.Affects(now)
}

// Counts returns what the Keeper has. Any goroutine may call it.
func (k *Keeper) Counts() Counts {
	k.mu.Lock()
	defer k.mu.Unlock()
	counts := k.counts
	counts.Routers, counts.Bindings = len(k.routers), len(k.bindings)
	return counts
}

// Run publishes names from Synced on, until ctx is done. It returns nil then. It is to be called once.
func (k *Keeper) Run(ctx context.Context) error {
	var set *zone.Set
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		if !k.await(ctx, pause.C) {
			return nil
		}
		change, err := k.change(set)
		if err != nil {
			return err
		}
		if change == nil {
			pause.Reset(0)
			continue
		}
		set = change.Set
		if err := k.cfg.Publish(change); err != nil {
			return err
		}
		pause.Reset(k.cfg.Pause)
	}
}

// await waits for a pause to end, for a change, and for what comes with it. False: ctx is done.
func (k *Keeper) await(ctx context.Context, pause <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-pause:
	}
	for woken := false; !woken; {
		timer := time.NewTimer(k.nextSilence())
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-k.wake:
			woken = true
		case <-timer.C:
			k.review()
		}
		timer.Stop()
	}
	return k.settle(ctx)
}

// settle waits until nothing has changed for a moment. False: ctx is done.
func (k *Keeper) settle(ctx context.Context) bool {
	limit := time.NewTimer(mostQuiet * k.cfg.Quiet)
	defer limit.Stop()
	for {
		quiet := time.NewTimer(k.cfg.Quiet)
		select {
		case <-ctx.Done():
			quiet.Stop()
			return false
		case <-limit.C:
			quiet.Stop()
			return true
		case <-quiet.C:
			return true
		case <-k.wake:
			quiet.Stop()
		}
	}
}

// nextSilence is how long it takes until a replica may have been silent for too long.
func (k *Keeper) nextSilence() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, next := k.cfg.Now(), k.cfg.LostAfter
	for _, r := range k.routers {
		for _, h := range r.heard {
			if left := k.cfg.LostAfter - now.Sub(h.at); left > 0 {
				next = min(next, left)
			}
		}
	}
	return next
}

// review looks at all Routers because time has passed.
func (k *Keeper) review() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.cfg.Now()
	for _, r := range k.routers {
		k.look(r, now)
	}
	k.rouse()
}

// change makes names as they are now, nil if nothing has changed.
func (k *Keeper) change(before *zone.Set) (*Change, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.dirty {
		return nil, nil
	}
	k.dirty = false
	routers := make([]zones.Router, 0, len(k.routers))
	for _, r := range k.routers {
		routers = append(routers, r.known)
	}
	k.names = zones.Make(k.cfg.Zones, routers, maps.Values(k.bindings))
	set, left, err := zones.Set(k.names.Shards, before, k.cfg.Last, k.cfg.Now())
	if err != nil {
		return nil, err
	}
	left = append(left, k.names.LeftOut...)
	k.counts.Changes++
	k.counts.LeftOut = len(left)
	return &Change{Set: set, Shards: k.names.Shards, LeftOut: left}, nil
}
