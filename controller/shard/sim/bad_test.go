package sim_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"turnout/controller/shard"
	"turnout/controller/shard/sim"
	"turnout/controller/shard/strategy"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// valid is the condition Valid of a router.
func valid(w *sim.World, name string) shard.Condition {
	s, _ := w.Status(name)
	for _, c := range s.Conditions {
		if c.Type == "Valid" {
			return c
		}
	}
	return shard.Condition{}
}

func selector(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

// TestRoutersThatCannotBeUsed: a router whose spec is wrong says so and what to do, keeps what it has and gets no more; others go on as before. Once
// it is corrected it can be used.
func TestRoutersThatCannotBeUsed(t *testing.T) {
	other := aRouter(1)
	for name, c := range map[string]struct {
		change func(*shard.Router)
		reason string
		says   []string
	}{
		"a selector with an operator that there is not": {
			func(r *shard.Router) { r.RouteSelector = selector("tier", "Near", "x") },
			shard.InvalidSelector, []string{"routeSelector or namespaceSelector", `"Near"`, "correct it"},
		},
		"In without values": {
			func(r *shard.Router) { r.NamespaceSelector = selector("tier", metav1.LabelSelectorOpIn) },
			shard.InvalidSelector, []string{"for 'in', 'notin' operators, values set can't be empty", "correct it"},
		},
		"Exists with values": {
			func(r *shard.Router) { r.RouteSelector = selector("tier", metav1.LabelSelectorOpExists, "x") },
			shard.InvalidSelector, []string{"values set must be empty", "correct it"},
		},
		"a key that is none": {
			func(r *shard.Router) { r.RouteSelector = selector("a b", metav1.LabelSelectorOpExists) },
			shard.InvalidSelector, []string{`key: Invalid value: "a b"`, "correct it"},
		},
		"a value that is none": {
			func(r *shard.Router) {
				r.RouteSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": strings.Repeat("x", 64)}}
			},
			shard.InvalidSelector, []string{"must be no more than 63", "correct it"},
		},
		"a domain in capital letters": {
			func(r *shard.Router) { r.Domain = "Apps.Example.com" },
			shard.InvalidDomain, []string{`spec.dns.domain "Apps.Example.com" is no lower-case DNS name`, "correct it"},
		},
		"a domain with an empty label": {
			func(r *shard.Router) { r.Domain = "apps..example.com" },
			shard.InvalidDomain, []string{"correct it"},
		},
		"a domain without room for a label": {
			func(r *shard.Router) { r.Domain = strings.Repeat("abcdefgh.", 22) + "com" },
			shard.InvalidDomain, []string{"of at most 189 characters", "correct it"},
		},
		"the domain of an older router": {
			func(r *shard.Router) { r.Domain = other.Domain },
			shard.DomainTaken, []string{"router r1 is older and has the domain r1.apps.example.com too", "give this one another"},
		},
		"a selector and a domain": {
			func(r *shard.Router) { r.RouteSelector, r.Domain = selector("tier", "Near"), "-" },
			shard.InvalidSelector, []string{"correct it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := cluster(plain(strategy.RoundRobin(), 1), 4, 40)
			settled(t, w, time.Minute)
			before, bound := targets(w), w.Bound()
			change(w, "r2", c.change)
			w.Run(30 * time.Second)
			got := valid(w, "r2")
			if got.True || got.Reason != c.reason {
				t.Errorf("condition %+v, want %s", got, c.reason)
			}
			for _, text := range append(c.says, "no further routes are bound until then, and those that are stay") {
				if !strings.Contains(got.Message, text) {
					t.Errorf("%q does not say %q", got.Message, text)
				}
			}
			if w.Events[c.reason] != 1 {
				t.Errorf("events %v", w.Events)
			}
			for i := 40; i < 70; i++ {
				w.SetRoute(aRoute(i))
			}
			settledWhen(t, w, 5*time.Minute, func() bool { return total(w) == 70 })
			if l := w.Loads(); l["r2"] != 10 || l["r0"] != 20 || l["r1"] != 20 || l["r3"] != 20 {
				t.Errorf("loads %v", l)
			}
			for key, v := range w.Bound() {
				if was, ok := bound[key]; ok && was.Routers[0] != v.Routers[0] {
					t.Errorf("%s moved from %s to %s", key, was.Routers[0], v.Routers[0])
				}
			}
			for _, name := range []string{"r0", "r1", "r3"} {
				if got := valid(w, name); !got.True {
					t.Errorf("%s: %+v", name, got)
				}
			}
			sameNames(t, w, before)
			w.SetRouter(aRouter(2))
			for i := 70; i < 80; i++ {
				w.SetRoute(aRoute(i))
			}
			settledWhen(t, w, 5*time.Minute, func() bool { return total(w) == 80 })
			if got := valid(w, "r2"); !got.True || w.Loads()["r2"] < 12 {
				t.Errorf("after it was corrected: %+v, %v", got, w.Loads())
			}
		})
	}
}

// total is how many routes are served.
func total(w *sim.World) int {
	n := 0
	for _, load := range w.Loads() {
		n += load
	}
	return n
}

// TestFaultsOneByOne: of two things that are wrong the second is said when the first is corrected.
func TestFaultsOneByOne(t *testing.T) {
	w, _ := cluster(plain(strategy.RoundRobin(), 1), 3, 9)
	settled(t, w, time.Minute)
	for _, c := range []struct {
		change func(*shard.Router)
		reason string
	}{
		{func(r *shard.Router) { r.RouteSelector, r.Domain = selector("tier", "Near"), aRouter(0).Domain }, shard.InvalidSelector},
		{func(r *shard.Router) { r.RouteSelector = nil }, shard.DomainTaken},
		{func(r *shard.Router) { r.RouteSelector, r.Domain = selector("tier", "Near"), "-" }, shard.InvalidSelector},
		{func(r *shard.Router) { r.RouteSelector = nil }, shard.InvalidDomain},
		{func(r *shard.Router) { r.Domain = "" }, "Valid"},
	} {
		change(w, "r2", c.change)
		w.Run(30 * time.Second)
		if got := valid(w, "r2"); got.Reason != c.reason {
			t.Errorf("%+v, want %s", got, c.reason)
		}
	}
}

// TestDomainIsFreed: of three routers with one domain the next has it when the oldest is gone, and the last says who has it.
func TestDomainIsFreed(t *testing.T) {
	w, _ := cluster(plain(strategy.RoundRobin(), 1), 4, 40)
	settled(t, w, time.Minute)
	for _, name := range []string{"r1", "r2"} {
		change(w, name, func(r *shard.Router) { r.Domain = aRouter(0).Domain })
	}
	w.Run(30 * time.Second)
	if a, b := valid(w, "r1"), valid(w, "r2"); !strings.Contains(a.Message, "router r0 is older") || !strings.Contains(b.Message, "router r0 is older") {
		t.Errorf("%+v, %+v", a, b)
	}
	w.DeleteRouter("r0")
	w.Run(30 * time.Second)
	if a, b := valid(w, "r1"), valid(w, "r2"); !a.True || !strings.Contains(b.Message, "router r1 is older") {
		t.Errorf("%+v, %+v", a, b)
	}
	settledWhen(t, w, 20*time.Minute, func() bool { return w.Loads()["r1"]+w.Loads()["r2"]+w.Loads()["r3"] == 40 })
}

// TestBindingsByHand: bindings that the scheduler would not have made are deleted or left as they are; what they are not about stays as it is.
func TestBindingsByHand(t *testing.T) {
	key := aRoute(0)
	made := func(route, router string) shard.Binding {
		return shard.Binding{Namespace: "ns0", Name: shard.BindingName(route, router), Route: route, RouteUID: "uid-0", Router: router, DNS: "ns0-web0.r0.apps.example.com", Target: "ns0-web0.r0.apps.example.com"}
	}
	events := map[string]string{
		"a binding to a router that does not exist":     "RouterMissing",
		"a binding of a route that had the name before": "BindingReplaced",
		"a binding with the name of another route":      "BindingReplaced",
		"a binding that is edited":                      "BindingReplaced",
		"the only binding is deleted":                   "BindingDeleted",
	}
	for name, do := range map[string]func(*sim.World){
		"a binding to a router that does not exist": func(w *sim.World) { w.Bind(made("web0", "nobody")) },
		"a second binding, to another router":       func(w *sim.World) { w.Bind(made("web0", "r1")) },
		"a binding of a route that does not exist":  func(w *sim.World) { w.Bind(made("nothing", "r1")) },
		"a binding of nothing to nobody":            func(w *sim.World) { w.Bind(made("", "")) },
		"a binding of another name": func(w *sim.World) {
			b := made("web0", "r1")
			b.Name = "mine"
			w.Bind(b)
		},
		"a binding in a namespace without routes": func(w *sim.World) {
			b := made("web0", "r1")
			b.Namespace = "nowhere"
			w.Bind(b)
		},
		"a binding of a route that had the name before": func(w *sim.World) {
			b := made("web0", "r1")
			b.RouteUID = "earlier"
			w.Bind(b)
		},
		"a binding with the name of another route": func(w *sim.World) {
			b := made("web0", "r1")
			b.DNS, b.Target = "ns1-web1.r1.apps.example.com", "ns1-web1.r1.apps.example.com"
			w.Bind(b)
		},
		"a binding that leaves from the start": func(w *sim.World) {
			b := made("web0", "r1")
			b.Leaving = true
			w.Bind(b)
		},
		"a binding that is edited": func(w *sim.World) {
			w.Edit(key.Key(), w.Bindings(key.Key())[0].Router, func(b *shard.Binding) { b.DNS, b.RouteUID = "www.example.org", "other" })
		},
		"a phase that is edited": func(w *sim.World) {
			w.Edit(key.Key(), w.Bindings(key.Key())[0].Router, func(b *shard.Binding) { b.Phase = shard.BindingPending })
		},
		"the only binding is deleted":       func(w *sim.World) { w.Unbind(key.Key(), w.Bindings(key.Key())[0].Router) },
		"the only binding is made to leave": func(w *sim.World) { w.MakeLeave(key.Key(), w.Bindings(key.Key())[0].Router) },
	} {
		t.Run(name, func(t *testing.T) {
			w, s := cluster(plain(strategy.RoundRobin(), 1), 4, 40)
			settled(t, w, time.Minute)
			before, bound := targets(w), w.Bound()
			writes := maps.Clone(w.Writes)
			do(w)
			settledWhen(t, w, 10*time.Minute, func() bool { return w.Now() > 5*time.Minute })
			if n := total(w); n != 40 {
				t.Errorf("%d bindings", n)
			}
			if reason := events[name]; reason != "" && w.Events[reason] != 1 || reason == "" && len(w.Events) != 0 {
				t.Errorf("events %v, want %q", w.Events, reason)
			}
			sameNames(t, w, before)
			for k, v := range w.Bound() {
				if k != key.Key() && v.Routers[0] != bound[k].Routers[0] {
					t.Errorf("%s moved from %v to %v", k, bound[k].Routers, v.Routers)
				}
			}
			for kind, most := range map[shard.Kind]int{shard.CreateBinding: 1, shard.DeleteBinding: 2, shard.MarkLeaving: 1, shard.UpdateRoute: 4, shard.UpdateBinding: 4} {
				if n := w.Writes[kind] - writes[kind]; n > most {
					t.Errorf("%d of %v, at most %d", n, kind, most)
				}
			}
			if sum := s.Planner.Summary(); sum.Bound != 40 || sum.Moving != 0 || sum.Held {
				t.Errorf("summary %+v", sum)
			}
		})
	}
}

// TestClocksApart: when a replica says that it is, by its own clock, does not matter, as long as its clock goes on.
func TestClocksApart(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"a century ahead": 876_000 * time.Hour, "a century behind": -876_000 * time.Hour, "an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			w, _ := cluster(plain(strategy.RoundRobin(), 1), 5, 50)
			settled(t, w, time.Minute)
			w.Skew("r2", ahead)
			w.Run(20 * time.Minute)
			settled(t, w, time.Minute)
			if n := w.Loads()["r2"]; n != 10 || w.Events["RouterLost"] != 0 {
				t.Errorf("%d routes, events %v", n, w.Events)
			}
			w.Skew("r2", 0) // it is set right
			w.Run(5 * time.Minute)
			if w.Events["RouterLost"] != 0 {
				t.Errorf("events %v", w.Events)
			}
			// It is lost after the grace time all the same when it says nothing more.
			w.Skew("r2", ahead)
			w.Run(10 * time.Second)
			w.Stop("r2")
			w.Run(100 * time.Second)
			if n := w.Loads()["r2"]; n != 10 {
				t.Errorf("%d routes before the grace time has passed", n)
			}
			settledWhen(t, w, 10*time.Minute, func() bool { return w.Loads()["r2"] == 0 })
		})
	}
}

// TestEventsAreBounded: of what happens to many routes at once not all is reported, but each route says it.
func TestEventsAreBounded(t *testing.T) {
	w := sim.New(plain(strategy.Label(), 1))
	w.SetRouter(aRouter(0)) // without a selector: Label does not choose it
	for i := range 1000 {
		w.SetRoute(aRoute(i))
	}
	w.Run(5 * time.Second)
	s := w.StartScheduler("")
	w.Run(10 * time.Second)
	reported := 0
	for _, n := range w.Events {
		reported += n
	}
	if dropped := s.Planner.Stats().Dropped; reported > 10*20+20 || reported < 20 || dropped < 700 {
		t.Errorf("%d events in 10 s, %d dropped", reported, dropped)
	}
	for key, v := range w.Bound() {
		if !strings.Contains(v.Message, "label the route") {
			t.Fatalf("%s says %q", key, v.Message)
		}
	}
}

// TestClockThatStandsStill: a replica that repeats the same time is not heard.
func TestClockThatStandsStill(t *testing.T) {
	w, _ := cluster(plain(strategy.RoundRobin(), 1), 5, 50)
	settled(t, w, time.Minute)
	w.HoldClock("r2")
	settledWhen(t, w, 10*time.Minute, func() bool { return w.Loads()["r2"] == 0 })
	if w.Events["RouterLost"] != 1 {
		t.Errorf("events %v", w.Events)
	}
}
