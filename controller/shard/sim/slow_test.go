package sim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/controller/shard"
	"turnout/controller/shard/sim"
	"turnout/controller/shard/strategy/expression"
)

// byExpression is strategy CEL.
func byExpression(t *testing.T, text string) shard.Slow {
	t.Helper()
	s, err := expression.New(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSlowStrategyIsAsked: routes are bound where the expression says, those that it has none for wait and say why, and moves go by it too.
func TestSlowStrategyIsAsked(t *testing.T) {
	o := plain(byExpression(t, `router.labels.zone == route.namespace ? -router.routes : -1000`), 1)
	w := sim.New(o)
	for i := range 6 {
		r := aRouter(i)
		r.Labels = shard.MakeLabels(map[string]string{"zone": fmt.Sprintf("ns%d", i/2)})
		w.SetRouter(r)
	}
	for i := range 140 {
		w.SetRoute(aRoute(i))
	}
	w.Run(5 * time.Second)
	s := w.StartScheduler("")
	settled(t, w, time.Minute)
	for key, v := range w.Bound() {
		if i := strings.Index("ns0 ns1 ns2", key.Namespace); i >= 0 && (v.Routers[0] != fmt.Sprintf("r%d", i/2) && v.Routers[0] != fmt.Sprintf("r%d", i/2+1)) {
			t.Errorf("%s is on %v", key, v.Routers)
		}
	}
	if n := s.Planner.Stats().Actions[shard.Ask]; n != 140 {
		t.Errorf("%d questions for 140 routes", n)
	}
	change(w, "r0", func(r *shard.Router) { r.Taints = []shard.Effect{shard.Drain} })
	settledWhen(t, w, 20*time.Minute, func() bool { return w.Loads()["r0"] == 0 })
	for key, v := range w.Bound() {
		if key.Namespace == "ns0" && v.Routers[0] != "r1" {
			t.Errorf("%s is on %v", key, v.Routers)
		}
	}
}

// TestSlowStrategySeesWhatIsBound: each answer is followed before many more are asked for, so that a strategy that goes by load spreads it.
func TestSlowStrategySeesWhatIsBound(t *testing.T) {
	w, _ := cluster(plain(byExpression(t, `-router.routes`), 1), 5, 500)
	settled(t, w, time.Minute)
	for name, n := range w.Loads() {
		if n < 100-expression.Concurrency || n > 100+expression.Concurrency {
			t.Errorf("%s has %d routes of 500", name, n)
		}
	}
}

// failing is a strategy that waits for something that is not there for a while.
type failing struct {
	until  func() bool
	asked  int
	choose int
}

func (f *failing) Schedule(_ *shard.Route, routers []*shard.Router) (*shard.Router, error) {
	f.asked++
	if !f.until() {
		return nil, errors.New("the chooser is away")
	}
	f.choose++
	return routers[f.choose%len(routers)], nil
}

func (f *failing) Concurrency() int { return 3 }

// TestFailingStrategy: while a strategy fails, routes wait with growing pauses and what is bound is left alone; then all is made up for.
func TestFailingStrategy(t *testing.T) {
	var w *sim.World
	f := &failing{until: func() bool { return w.Now() < 30*time.Second || w.Now() > 30*time.Minute }}
	w, s := cluster(plain(f, 1), 4, 40)
	settledWhen(t, w, time.Minute, func() bool { return s.Planner.Summary().Bound == 40 })
	w.RunUntil(time.Minute, func() bool { return w.Now() > 31*time.Second })
	f.asked = 0
	for i := 40; i < 60; i++ {
		w.SetRoute(aRoute(i))
	}
	change(w, "r1", func(r *shard.Router) { r.Taints = []shard.Effect{shard.Drain} })
	w.Run(20 * time.Minute)
	fresh := aRoute(45)
	trouble, ok := s.Planner.Trouble(fresh.Key())
	if !ok || trouble.Reason != shard.ReasonStrategy || trouble.Message != "the strategy found no router: the chooser is away" || trouble.Failures < 5 {
		t.Errorf("trouble %+v", trouble)
	}
	// 30 routes, each some ten times: pauses grow from 1 s to 5 min.
	if sum := s.Planner.Summary(); sum.Bound != 40 || sum.Waiting != 20 || f.asked > 30*15 {
		t.Errorf("summary %+v, asked %d times", sum, f.asked)
	}
	if n := w.Loads()["r1"]; n != 10 {
		t.Errorf("r1 has %d routes: they are to stay until there is another place", n)
	}
	settledWhen(t, w, time.Hour, func() bool {
		return w.Now() > 31*time.Minute && w.Loads()["r1"] == 0 && s.Planner.Summary().Bound == 60
	})
}

// TestSlowStrategyIsAskedAtOnce: as many questions at once as it permits, and no more.
func TestSlowStrategyIsAskedAtOnce(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	p := shard.New(shard.Config{Strategy: &failing{}, WritesPerSecond: 10_000}, now)
	r := aRouter(0)
	r.Replicas = []shard.Replica{{Name: "r0-0", Ready: true, Renewed: now}}
	p.SetRouter(r, shard.RouterStatus{})
	for i := range 10 {
		p.SetRoute(aRoute(i), shard.View{}, nil)
	}
	p.Synced("")
	asks := func() (ids []uint64) {
		for _, a := range p.Next(0) {
			if a.Kind == shard.Ask {
				ids = append(ids, a.ID)
			}
		}
		return ids
	}
	first := asks()
	if len(first) != 3 {
		t.Fatalf("%d questions at once, want 3", len(first))
	}
	if more := asks(); len(more) != 0 {
		t.Errorf("%d more", len(more))
	}
	p.Done(first[1], shard.Result{Err: errors.New("away")})
	p.Advance(now.Add(time.Second))
	if more := asks(); len(more) != 1 {
		t.Errorf("%d more after one came back, want 1", len(more))
	}
}
