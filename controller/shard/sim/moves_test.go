package sim_test

import (
	"strings"
	"testing"
	"time"

	"turnout/controller/shard"
	"turnout/controller/shard/sim"
	"turnout/controller/shard/strategy"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// targets are the names of all routes.
func targets(w *sim.World) map[shard.Key]string {
	all := make(map[shard.Key]string)
	for key, v := range w.Bound() {
		all[key] = v.Target
	}
	return all
}

// sameNames holds the names of routes to what they were.
func sameNames(t *testing.T, w *sim.World, before map[shard.Key]string) {
	t.Helper()
	for key, target := range targets(w) {
		if was, ok := before[key]; ok && was != target {
			t.Errorf("%s was named %s and is named %s", key, was, target)
		}
	}
}

func change(w *sim.World, name string, do func(*shard.Router)) {
	r, _ := w.Router(name)
	do(&r)
	w.SetRouter(r)
}

func TestDrainMovesAll(t *testing.T) {
	w, _ := cluster(plain(strategy.RoundRobin(), 1), 4, 80)
	settled(t, w, time.Minute)
	before := targets(w)
	change(w, "r1", func(r *shard.Router) { r.Taints = []shard.Effect{shard.Drain} })
	// 20 routes in batches of 8, each of which takes the TTL and the margin.
	settledWhen(t, w, 10*time.Minute, func() bool { return w.Loads()["r1"] == 0 })
	sameNames(t, w, before)
	change(w, "r1", func(r *shard.Router) { r.Taints = nil })
	settled(t, w, time.Minute)
	if n := w.Loads()["r1"]; n != 0 {
		t.Errorf("%d routes came back by themselves", n)
	}
}

// settledWhen lets time pass until done and settled.
func settledWhen(t *testing.T, w *sim.World, d time.Duration, done func() bool) {
	t.Helper()
	if !w.RunUntil(d, done) {
		t.Errorf("not done after %v: %v", d, w.Loads())
	}
	settled(t, w, d)
}

func TestNoScheduleKeepsWhatIsThere(t *testing.T) {
	w, _ := cluster(plain(strategy.RoundRobin(), 1), 3, 30)
	settled(t, w, time.Minute)
	change(w, "r1", func(r *shard.Router) { r.Taints = []shard.Effect{shard.NoSchedule} })
	w.Run(time.Second)
	for i := 30; i < 40; i++ {
		w.SetRoute(aRoute(i))
	}
	settled(t, w, 5*time.Minute)
	if l := w.Loads(); l["r1"] != 10 || l["r0"] != 15 || l["r2"] != 15 {
		t.Errorf("loads %v", l)
	}
}

func TestLostRouter(t *testing.T) {
	w, _ := cluster(plain(strategy.RoundRobin(), 1), 5, 100)
	settled(t, w, time.Minute)
	before := targets(w)
	w.Stop("r2")
	w.Run(100 * time.Second)
	if n := w.Loads()["r2"]; n != 20 {
		t.Errorf("%d routes after less than the grace time, want 20", n)
	}
	settledWhen(t, w, 5*time.Minute, func() bool { return w.Loads()["r2"] == 0 })
	sameNames(t, w, before)
	if w.Events["RouterLost"] != 1 {
		t.Errorf("events %v", w.Events)
	}
	w.Start("r2")
	w.Run(10 * time.Second)
	w.SetRoute(aRoute(100))
	settledWhen(t, w, 5*time.Minute, func() bool { return w.Loads()["r2"] == 1 })
}

func TestMoreThanHalfLostMovesNothing(t *testing.T) {
	w, s := cluster(plain(strategy.RoundRobin(), 1), 5, 50)
	settled(t, w, time.Minute)
	for _, name := range []string{"r0", "r1", "r2"} {
		w.Stop(name)
	}
	w.Run(10 * time.Minute)
	if sum := s.Planner.Summary(); !sum.Held || !strings.Contains(sum.Message, "half of the routers") {
		t.Errorf("summary %+v", sum)
	}
	for name, n := range w.Loads() {
		if n != 10 {
			t.Errorf("%s has %d routes, want 10", name, n)
		}
	}
	// With one of them back, the other two are believed to be lost.
	w.Start("r0")
	settledWhen(t, w, 10*time.Minute, func() bool { l := w.Loads(); return l["r1"]+l["r2"] == 0 })
	if sum := s.Planner.Summary(); sum.Held {
		t.Errorf("summary %+v", sum)
	}
}

func TestSilentSchedulerLosesNobody(t *testing.T) {
	w, s := cluster(plain(strategy.RoundRobin(), 1), 3, 30)
	settled(t, w, time.Minute)
	// The process was stopped for long: it has heard nobody, and nobody is to blame.
	s.Planner.Advance(time.Unix(1_700_000_000, 0).Add(w.Now() + time.Hour))
	for _, a := range s.Planner.Next(0) {
		if a.Kind != shard.UpdateRouter {
			t.Errorf("%v", a)
		}
	}
}

func TestDeletedRouter(t *testing.T) {
	w, _ := cluster(plain(strategy.RoundRobin(), 1), 4, 40)
	settled(t, w, time.Minute)
	before := targets(w)
	w.DeleteRouter("r3")
	settledWhen(t, w, 10*time.Minute, func() bool { return len(w.Loads()) == 3 })
	sameNames(t, w, before)
}

func TestRelabel(t *testing.T) {
	o := plain(strategy.Label(), 1)
	w := sim.New(o)
	for i, tier := range []string{"gold", "gold", "free"} {
		r := aRouter(i)
		r.RouteSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}
		w.SetRouter(r)
	}
	all := aRouter(3) // without a selector: Label does not choose it
	w.SetRouter(all)
	byNamespace := aRouter(4)
	byNamespace.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}}}
	w.SetRouter(byNamespace)
	w.SetNamespace("ns3", map[string]string{"team": "b"})
	gold, free := shard.MakeLabels(map[string]string{"tier": "gold"}), shard.MakeLabels(map[string]string{"tier": "free"})
	for i := range 21 {
		r := aRoute(i)
		if i%7 != 3 {
			r.Labels = gold
		}
		w.SetRoute(r)
	}
	none := aRoute(21)
	w.SetRoute(none)
	w.Run(5 * time.Second)
	s := w.StartScheduler("")
	settled(t, w, time.Minute)
	if l := w.Loads(); l["r0"] != 9 || l["r1"] != 9 || l["r2"] != 0 || l["r3"] != 0 || l["r4"] != 3 {
		t.Errorf("loads %v", l)
	}
	if trouble, ok := s.Planner.Trouble(none.Key()); !ok || trouble.Reason != shard.ReasonStrategy || !strings.Contains(trouble.Message, "selector") {
		t.Errorf("trouble %+v", trouble)
	}
	if m := w.Bound()[none.Key()].Message; !strings.Contains(m, "label the route") {
		t.Errorf("message %q", m)
	}
	moved := aRoute(0)
	moved.Labels = free
	w.SetRoute(moved)
	settledWhen(t, w, 5*time.Minute, func() bool { return w.Loads()["r2"] == 1 })
	// A namespace without the label: its routes have no tier, so no router selects them, and they stay where they are.
	w.SetNamespace("ns3", nil)
	settled(t, w, 5*time.Minute)
	if l := w.Loads(); l["r4"] != 3 {
		t.Errorf("loads %v", l)
	}
}

func TestCapacity(t *testing.T) {
	o := plain(strategy.LeastRoutes(), 1)
	w := sim.New(o)
	for i := range 3 {
		r := aRouter(i)
		r.Capacity = 10
		w.SetRouter(r)
	}
	for i := range 33 {
		w.SetRoute(aRoute(i))
	}
	w.Run(5 * time.Second)
	s := w.StartScheduler("")
	settled(t, w, time.Minute)
	if sum := s.Planner.Summary(); sum.Bound != 30 || sum.Waiting != 3 || s.Planner.Troubles()[shard.ReasonNoCapacity] != 3 {
		t.Errorf("summary %+v, troubles %v", sum, s.Planner.Troubles())
	}
	w.SetRouter(aRouter(3)) // without limit
	settledWhen(t, w, time.Minute, func() bool { return w.Loads()["r3"] == 3 })
	change(w, "r0", func(r *shard.Router) { r.Capacity = 4 })
	settledWhen(t, w, 20*time.Minute, func() bool { l := w.Loads(); return l["r0"] == 4 && l["r3"] == 9 })
}

func TestRebalance(t *testing.T) {
	o := plain(strategy.RoundRobin(), 1)
	w, s := cluster(o, 4, 400)
	settled(t, w, time.Minute)
	w.SetRouter(aRouter(4))
	w.Run(time.Minute)
	if n := w.Loads()["r4"]; n != 0 {
		t.Errorf("%d routes came by themselves", n)
	}
	before := w.Writes[shard.MarkLeaving]
	c := o.Config
	c.Rebalance = "today"
	s.Planner.Configure(c)
	settledWhen(t, w, 20*time.Minute, func() bool { return s.Planner.Summary().Rebalanced == "today" })
	for name, n := range w.Loads() {
		if n != 80 {
			t.Errorf("%s has %d routes, want 80", name, n)
		}
	}
	if moves := w.Writes[shard.MarkLeaving] - before; moves != 80 {
		t.Errorf("%d moves, want 80", moves)
	}
	w.Run(time.Minute)
	if moves := w.Writes[shard.MarkLeaving] - before; moves != 80 {
		t.Errorf("%d moves after it was done", moves)
	}
}

func TestSpread(t *testing.T) {
	o := plain(strategy.Spread(2, ""), 1)
	w := sim.New(o)
	for i := range 6 {
		r := aRouter(i)
		r.Labels = shard.MakeLabels(map[string]string{strategy.ZoneLabel: string(rune('a' + i%2))})
		w.SetRouter(r)
	}
	for i := range 60 {
		w.SetRoute(aRoute(i))
	}
	w.Run(5 * time.Second)
	w.StartScheduler("")
	settled(t, w, time.Minute)
	for key, v := range w.Bound() {
		if len(v.Routers) != 2 || (v.Routers[0][1]-v.Routers[1][1])%2 == 0 {
			t.Errorf("%s is on %v, which are in one zone", key, v.Routers)
		}
	}
	change(w, "r0", func(r *shard.Router) { r.Taints = []shard.Effect{shard.Drain} })
	settledWhen(t, w, 20*time.Minute, func() bool { return w.Loads()["r0"] == 0 })
	for key, v := range w.Bound() {
		if len(v.Routers) != 2 {
			t.Errorf("%s is on %v", key, v.Routers)
		}
	}
}
