package main

import (
	"math"
	"slices"
	"testing"
)

// TestShort simulates each strategy with 10,000 routes on 20 routers: all are placed, none is moved without need, the API gets no more writes than configured, and never is
// more than a tenth of all bindings under way.
func TestShort(t *testing.T) {
	list := cases()
	if testing.Short() {
		list = slices.DeleteFunc(list, func(c strategyCase) bool { return c.name != "RoundRobin" && c.name != "ConsistentHash" })
	}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			c.size = size{Routes: 10_000, Routers: 20, Lost: 2, Added: 4, Writes: 1000}
			c.groups = min(c.groups, 2)
			if c.name == "Webhook" {
				c.size.Routes = 1000
			}
			r, err := simulate(c)
			if err != nil {
				t.Fatal(err)
			}
			copies := 1
			if c.name == "Spread" {
				copies = 2
			}
			placed, lost, added := r.Phases[0], r.Phases[1], r.Phases[2]
			if placed.Moves != copies*c.size.Routes {
				t.Errorf("%d bindings were made for %d routes", placed.Moves, c.size.Routes)
			}
			for _, p := range []Phase{lost, added} {
				if p.Least < c.size.Routes/20 || p.Moves < p.Least || float64(p.Moves) > 1.05*float64(p.Least) {
					t.Errorf("%s: %d moves, %d at least", p.Name, p.Moves, p.Least)
				}
			}
			for _, p := range r.Phases {
				// What may be written at once after a pause is that of a tenth of a second.
				if most := float64(c.size.Writes) * (60*p.Minutes + 0.1); float64(p.Writes) > most {
					t.Errorf("%s: %d writes in %.1f minutes, at most %.0f", p.Name, p.Writes, p.Minutes, most)
				}
			}
			if most := float64(c.size.Writes) * 1.01; r.MostWrites > most || r.MostWrites < 10 {
				t.Errorf("%.0f writes a second, at most %.0f", r.MostWrites, most)
			}
			if r.UnderWay > 0.1 || r.UnderWay == 0 {
				t.Errorf("%.3f of all bindings were under way", r.UnderWay)
			}
			// All routers that run have as many routes as each other in the end, but for what does not divide.
			if s := added.Spread; s[1] > 1.1 || s[2] > 0.01 {
				t.Errorf("spread at the end: %v", s)
			}
			if len(r.Samples) < 10 || r.Heap <= 0 || r.Planner <= 0 || r.Planner > r.Heap {
				t.Errorf("%d samples, heap %.0f MiB, of these the scheduler's %.0f", len(r.Samples), r.Heap, r.Planner)
			}
		})
	}
}

func TestSpreadOfLoads(t *testing.T) {
	for _, c := range []struct {
		loads      []float64
		peak, gini float64
	}{
		{[]float64{5, 5, 5, 5}, 1, 0},
		{[]float64{0, 0, 0, 8}, 4, 0.75},
		{[]float64{1, 3}, 1.5, 0.25},
		{[]float64{0, 0}, 1, 0},
		{nil, 1, 0},
	} {
		if p, g := peak(c.loads), gini(c.loads); math.Abs(p-c.peak) > 1e-9 || math.Abs(g-c.gini) > 1e-9 {
			t.Errorf("%v: max/mean %v, Gini %v", c.loads, p, g)
		}
	}
}

// TestRequestsAreUnequal: the distribution is what the page says.
func TestRequestsAreUnequal(t *testing.T) {
	c := cases()[0]
	const n = 100_000
	sum, above := 0.0, 0
	for i := range n {
		r := c.aRoute(i, "project")
		v := requests(&r)
		sum += v
		if v > 30 {
			above++
		}
	}
	if mean := sum / n; mean < 0.9 || mean > 1.1 || above < n/1500 || above > n/600 {
		t.Errorf("mean %.3f, %d of %d above 30", mean, above, n)
	}
}
