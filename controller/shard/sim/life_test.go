package sim_test

import (
	"fmt"
	"testing"
	"time"

	"turnout/controller/shard"
	"turnout/controller/shard/sim"
	"turnout/controller/shard/strategy"
)

// plain is a cluster as they are: writes take 5 ms, watches lag by 20 ms, replicas report each 2 s.
func plain(s shard.Strategy, seed uint64) sim.Options {
	return sim.Options{
		Config:    shard.Config{Strategy: s, WritesPerSecond: 1000, Seed: seed},
		Replicas:  2,
		WriteTime: 5 * time.Millisecond, WatchLag: 20 * time.Millisecond, ReportEvery: 2 * time.Second,
		Admit: true, Seed: seed, Check: true,
	}
}

func aRouter(i int) shard.Router {
	return shard.Router{Name: fmt.Sprintf("r%d", i), UID: fmt.Sprintf("router-%d", i), Created: int64(i), Domain: fmt.Sprintf("r%d.apps.example.com", i), TTL: 30 * time.Second}
}

func aRoute(i int) shard.Route {
	return shard.Route{Namespace: fmt.Sprintf("ns%d", i%7), Name: fmt.Sprintf("web%d", i), UID: fmt.Sprintf("uid-%d", i), Created: int64(1000 + i)}
}

// cluster has so many routers and routes, and a scheduler.
func cluster(o sim.Options, routers, routes int) (*sim.World, *sim.Scheduler) {
	w := sim.New(o)
	for i := range routers {
		w.SetRouter(aRouter(i))
	}
	for i := range routes {
		w.SetRoute(aRoute(i))
	}
	w.Run(5 * time.Second)
	return w, w.StartScheduler("")
}

func settled(t *testing.T, w *sim.World, d time.Duration) {
	t.Helper()
	if left := w.Settle(d); left != "" {
		t.Errorf("after %v: %s", d, left)
	}
	for _, s := range w.Wrong {
		t.Error(s)
	}
}

func TestNewRoutesAreBound(t *testing.T) {
	w, s := cluster(plain(strategy.RoundRobin(), 1), 3, 30)
	settled(t, w, time.Minute)
	for name, n := range w.Loads() {
		if n != 10 {
			t.Errorf("%s has %d routes, want 10", name, n)
		}
	}
	if sum := s.Planner.Summary(); sum.Bound != 30 || sum.Waiting != 0 || sum.Moving != 0 {
		t.Errorf("summary %+v", sum)
	}
	// A route costs three writes: the binding, what the route says, and that the binding is served.
	for kind, want := range map[shard.Kind]int{shard.CreateBinding: 30, shard.UpdateRoute: 30, shard.UpdateBinding: 30} {
		if w.Writes[kind] != want {
			t.Errorf("%d of %v, want %d", w.Writes[kind], kind, want)
		}
	}
	v := w.Bound()[shard.Key{Namespace: "ns1", Name: "web1"}]
	if want := "ns1-web1." + v.Routers[0] + ".apps.example.com"; v.DNS != want || v.Target != want || v.Phase != shard.RouteScheduled {
		t.Errorf("view %+v, want %s", v, want)
	}
}
