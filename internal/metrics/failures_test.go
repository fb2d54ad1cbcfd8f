package metrics

import (
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/health"
	"turnout/internal/testkit/testaddr"
	"turnout/routing"
)

// noTime is a clock on which ejections do not end.
type noTime struct{}

func (noTime) Now() time.Time                  { return time.Unix(1000, 0) }
func (noTime) AfterFunc(time.Duration, func()) {}

// TestFailuresOfRoutes: ejections and failed checks are there by route and reason, for routes that had some.
func TestFailuresOfRoutes(t *testing.T) {
	if health.Outcome(balancer.FailureReasons-1) != health.L7STS {
		t.Errorf("the last of %d outcomes is not L7STS", balancer.FailureReasons)
	}
	registry := balancer.NewRegistry()
	registry.SetClock(noTime{})
	spec := func(name string) routing.RouteSpec {
		return routing.RouteSpec{RouteKey: routing.RouteKey{Namespace: "ns", Name: name, UID: name}, Host: name + ".test", Check: time.Second, Targets: []balancer.Target{
			{ID: name + "a", Addr: testaddr.Parse("10.0.0.1:80"), Weight: 1}, {ID: name + "b", Addr: testaddr.Parse("10.0.0.2:80"), Weight: 1},
		}}
	}
	table, _ := routing.Compile(routing.Options{Registry: registry}, nil, []routing.RouteSpec{spec("bad"), spec("good")})
	routing.NewStore().Publish(table)
	for r := range table.Routes {
		if s := r.Pool().Servers()[0]; r.Name() == "bad" {
			for range 3 {
				s.CountFailure()
			}
			registry.CountFailure(s.Check(), int(health.L4CON))
		}
	}
	cfg := config(t)
	cfg.Table = func() *routing.Table { return table }
	got := scrape(t, cfg)
	for name, want := range map[string]float64{
		"turnout_route_ejections_total{namespace=ns,reason=connect,route=bad}":   1,
		"turnout_route_ejections_total{namespace=ns,reason=status,route=bad}":    0,
		"turnout_route_checks_failed_total{namespace=ns,reason=L4CON,route=bad}": 1,
		"turnout_route_checks_failed_total{namespace=ns,reason=L7STS,route=bad}": 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%t), want %v", name, v, ok, want)
		}
	}
	if _, ok := got["turnout_route_ejections_total{namespace=ns,reason=connect,route=good}"]; ok {
		t.Error("a route without ejections has series of them")
	}
}
