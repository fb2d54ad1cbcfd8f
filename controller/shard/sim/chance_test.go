package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"turnout/controller/shard"
	"turnout/controller/shard/sim"
	"turnout/controller/shard/strategy"
)

// chance is a cluster to which anything may happen.
type chance struct {
	t       *testing.T
	rand    *rand.Rand
	w       *sim.World
	s       *sim.Scheduler
	routers int
	routes  int
	stopped map[int]bool
	gone    map[int]bool // routers
	hands   bool         // people have a hand in bindings
	kills   bool         // schedulers end, or are two
	slow    bool         // the strategy is: two schedulers would choose differently for a new route, and give it two names, which a lease prevents
	steps   []string
}

func (c *chance) notef(format string, args ...any) {
	c.steps = append(c.steps, fmt.Sprintf("%v: ", c.w.Now())+fmt.Sprintf(format, args...))
}

// down is how many routers do not report.
func (c *chance) down() int { return len(c.stopped) + len(c.gone) }

func (c *chance) route(i int) shard.Route {
	r := aRoute(i)
	if i%5 == 0 {
		// Of some hosts there are several routes, of one namespace, with paths of their own.
		r.Namespace, r.Host, r.Path = "ns0", fmt.Sprintf("host%d.example.org", i%15), fmt.Sprintf("/%d", i)
	}
	return r
}

// step does one thing.
func (c *chance) step() {
	i := c.rand.IntN(c.routers)
	key := c.pick()
	switch n := c.rand.IntN(16); {
	case n < 3:
		c.notef("route %d is new", c.routes)
		c.w.SetRoute(c.route(c.routes))
		c.routes++
	case n == 3:
		c.notef("route %v is deleted", key)
		c.w.DeleteRoute(key)
	case n == 4 && c.down() < c.routers/3 && !c.gone[i]:
		c.notef("r%d stops", i)
		c.w.Stop(aRouter(i).Name)
		c.stopped[i] = true
	case n == 5 && c.stopped[i]:
		c.notef("r%d starts", i)
		c.w.Start(aRouter(i).Name)
		delete(c.stopped, i)
	case n < 8 && !c.gone[i]:
		taints := [][]shard.Effect{nil, nil, {shard.NoSchedule}, {shard.Drain}}[c.rand.IntN(4)]
		c.notef("r%d has taints %v", i, taints)
		change(c.w, aRouter(i).Name, func(r *shard.Router) { r.Taints = taints })
	case n == 8 && !c.gone[i]:
		capacity := []int{0, 0, 5, 10, 40}[c.rand.IntN(5)]
		c.notef("r%d has capacity %d", i, capacity)
		change(c.w, aRouter(i).Name, func(r *shard.Router) { r.Capacity = capacity })
	case n == 9 && c.down() < c.routers/3 && !c.gone[i] && !c.stopped[i]:
		c.notef("r%d is deleted", i)
		c.w.DeleteRouter(aRouter(i).Name)
		c.gone[i] = true
	case n == 10 && c.gone[i]:
		c.notef("r%d is made again", i)
		c.w.SetRouter(aRouter(i))
		delete(c.gone, i)
	case n >= 12 && n < 14 && c.hands:
		c.hand(key)
	case n >= 14 && c.kills:
		c.notef("the scheduler ends, and begins anew")
		if c.rand.IntN(3) == 0 && !c.slow {
			// For a moment there are two.
			old := c.s
			c.s = c.w.StartScheduler("")
			c.w.Run(time.Duration(c.rand.IntN(2000)) * time.Millisecond)
			old.Kill()
			return
		}
		c.s.Kill()
		c.w.Run(time.Duration(c.rand.IntN(5)) * time.Second)
		c.s = c.w.StartScheduler("")
	}
}

func (c *chance) pick() shard.Key {
	r := c.route(c.rand.IntN(c.routes))
	return r.Key()
}

// hand does what people may do with bindings.
func (c *chance) hand(key shard.Key) {
	list := c.w.Bindings(key)
	n := c.rand.IntN(4)
	switch {
	case n == 0 && len(list) > 0:
		c.notef("a binding of %v is deleted by hand", key)
		c.w.Unbind(key, list[0].Router)
	case n == 1 && len(list) > 0:
		c.notef("a binding of %v leaves by hand", key)
		c.w.MakeLeave(key, list[0].Router)
	case n == 2:
		c.notef("a binding of %v is made by hand", key)
		router := aRouter(c.rand.IntN(c.routers)).Name
		c.w.Bind(shard.Binding{Namespace: key.Namespace, Name: shard.BindingName(key.Name, router), Route: key.Name, RouteUID: "other", Router: router, DNS: "x.example.net"})
	default:
		c.notef("a binding of nothing is made by hand")
		c.w.Bind(shard.Binding{Namespace: key.Namespace, Name: "odd", Route: key.Name, RouteUID: "other", Router: "nobody", DNS: "x.example.net"})
	}
}

// run has so many things happen, and ends well.
func (c *chance) run(steps int) {
	for range steps {
		c.step()
		c.w.Run(time.Duration(c.rand.ExpFloat64() * float64(5*time.Second)))
	}
	for i := range c.routers {
		c.w.SetRouter(aRouter(i))
		c.w.Start(aRouter(i).Name)
	}
	c.w.Run(time.Minute)
	if left := c.w.Settle(4 * time.Hour); left != "" {
		c.t.Errorf("at the end: %s", left)
	}
	if s := c.s.Planner.Summary(); s.Waiting != 0 || s.Moving != 0 || s.Held {
		c.t.Errorf("at the end: %+v", s)
	}
	for _, wrong := range c.w.Wrong {
		c.t.Error(wrong)
	}
	if c.t.Failed() {
		for _, s := range c.steps {
			c.t.Log(s)
		}
	}
}

func newChance(t *testing.T, seed uint64, s shard.Strategy, hands, kills bool) *chance {
	o := plain(s, seed)
	c := &chance{t: t, rand: rand.New(rand.NewPCG(seed, 7)), routers: 6, routes: 40, stopped: map[int]bool{}, gone: map[int]bool{}, hands: hands, kills: kills}
	if seed%3 == 0 {
		faults := rand.New(rand.NewPCG(seed, 8))
		o.Fault = func(shard.Action) shard.Outcome {
			if faults.IntN(10) == 0 {
				return []shard.Outcome{shard.Failed, shard.Refused, shard.Conflict}[faults.IntN(3)]
			}
			return shard.Written
		}
	}
	_, c.slow = s.(shard.Slow)
	c.w = sim.New(o)
	for i := range c.routers {
		c.w.SetRouter(aRouter(i))
	}
	for i := range c.routes {
		c.w.SetRoute(c.route(i))
	}
	c.w.Run(5 * time.Second)
	c.s = c.w.StartScheduler("")
	return c
}

// strategies are those that need nobody else.
func strategies(t *testing.T) map[string]func() shard.Strategy {
	t.Helper()
	return map[string]func() shard.Strategy{
		"round robin":     strategy.RoundRobin,
		"least routes":    strategy.LeastRoutes,
		"least requests":  strategy.LeastRequests,
		"consistent hash": strategy.ConsistentHash,
		"spread":          func() shard.Strategy { return strategy.Spread(2, "") },
		"expression":      func() shard.Strategy { return byExpression(t, "-router.routes") },
	}
}

// TestAnythingMayHappen: whatever happens to routers, routes and writes, a route that is served stays so, no more bindings than permitted are under
// way, and all is well at the end.
func TestAnythingMayHappen(t *testing.T) {
	for name, strategy := range strategies(t) {
		for seed := range uint64(seeds(t)) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				newChance(t, seed, strategy(), false, false).run(60)
			})
		}
	}
}

// TestHandsAndKills: the same while schedulers end, are two for a moment, and people edit bindings.
func TestHandsAndKills(t *testing.T) {
	for name, strategy := range strategies(t) {
		for seed := range uint64(seeds(t)) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				newChance(t, seed, strategy(), seed%2 == 0, true).run(60)
			})
		}
	}
}

func seeds(t *testing.T) int {
	t.Helper()
	if testing.Short() {
		return 4
	}
	return 40
}
