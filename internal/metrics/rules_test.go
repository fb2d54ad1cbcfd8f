package metrics

import (
	"strings"
	"testing"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
	"turnout/routing"
)

// TestRulesOfAnObjectShareSeries checks that each series is there once, with the sum of the rules.
// The pool that two rules share counts once. A scrape with two series of one name would fail.
func TestRulesOfAnObjectShareSeries(t *testing.T) {
	rule := func(n int, uid, host string, term routing.Termination, c *routing.CertificateSpec, limit int) routing.RuleSpec {
		return routing.RuleSpec{
			RouteKey: routing.RouteKey{Namespace: "ns", Name: "object", UID: uid, Rule: n}, Host: host, Termination: term, Certificate: c,
			PoolKey: []string{"", "limited"}[limit],
			Pool:    balancer.PoolConfig{Limit: limit},
			Targets: []balancer.Target{{ID: "s", Addr: testaddr.Parse("10.0.0.1:8080"), Weight: 7, Pod: "pod", Service: "svc"}},
		}
	}
	table, rejected := routing.CompileRules(routing.Options{}, nil, []routing.RuleSpec{
		rule(2, "u", "c.test", routing.TermEdge, &routing.CertificateSpec{Certificate: "2", Leaf: expiring(2000)}, 1),
		rule(1, "u", "b.test", routing.TermEdge, &routing.CertificateSpec{Certificate: "1", Leaf: expiring(1000)}, 0),
		rule(0, "u", "a.test", routing.TermNone, nil, 0), rule(0, "v", "d.test", routing.TermEdge, nil, 1),
	})
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	routing.NewStore().Publish(table)
	for r := range table.Routes {
		stats := r.Stats()
		stats.Sessions.Begin(0)
		stats.Sessions.End()
		stats.Answers[2].Add(1)
		stats.CountBytes(10, 100)
		stats.Errors.Add(1)
		lease, ok := r.Pool().Pick(balancer.Pick{})
		if !ok {
			t.Fatal("no server")
		}
		lease.Release()
	}
	cfg := config(t)
	cfg.Table = func() *routing.Table { return table }
	got := scrape(t, cfg)
	object, server := "backend=http,namespace=ns,route=object", "namespace=ns,pod=pod,route=object,server=10.0.0.1:8080,service=svc"
	for series, want := range map[string]float64{
		"haproxy_backend_connections_total{" + object + "}": 4, "haproxy_backend_bytes_in_total{" + object + "}": 40, "haproxy_backend_bytes_out_total{" + object + "}": 400,
		"haproxy_backend_http_responses_total{backend=http,code=2xx,namespace=ns,route=object}": 4, "haproxy_backend_up{" + object + "}": 1,
		"haproxy_backend_current_sessions{" + object + "}": 0, "haproxy_backend_current_queue{" + object + "}": 0, "turnout_route_errors_total{namespace=ns,route=object}": 4,
		"turnout_certificate_expiry_timestamp_seconds{namespace=ns,route=object}": 1000,
		"haproxy_server_connections_total{" + server + "}":                        4, "haproxy_server_weight{" + server + "}": 7, "haproxy_server_up{" + server + "}": 1, "haproxy_server_current_queue{" + server + "}": 0,
		"turnout_routes{termination=http}": 1, "turnout_routes{termination=edge}": 0, "haproxy_exporter_server_threshold{type=current}": 3,
	} {
		if v, ok := got[series]; !ok || v != want {
			t.Errorf("%s is %v (%t), want %v", series, v, ok, want)
		}
	}
}

// TestServersOfAllBackendsAreListed: a rule whose requests are shared has the servers of each backend.
func TestServersOfAllBackendsAreListed(t *testing.T) {
	backend := func(key, addr string, weight int) routing.BackendSpec {
		return routing.BackendSpec{Key: key, Weight: weight, Pool: balancer.PoolConfig{Limit: 1}, Targets: []balancer.Target{{ID: key, Addr: testaddr.Parse(addr), Weight: 2, Pod: key, Service: key}}}
	}
	spec := routing.RuleSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "object", UID: "u"}, Host: "a.test",
		Backends: []routing.BackendSpec{{Key: "gone", Weight: 1, Status: 500}, backend("v1", "10.0.0.1:80", 70), backend("v2", "10.0.0.2:80", 30)},
	}
	table, rejected := routing.CompileRules(routing.Options{}, nil, []routing.RuleSpec{spec})
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	routing.NewStore().Publish(table)
	for b := range table.Route(spec.RouteKey).Backends {
		if b.Key() != "v2" {
			continue
		}
		lease, ok := b.Pool().Pick(balancer.Pick{})
		if !ok {
			t.Fatal("no server")
		}
		lease.Release()
		var waits balancer.Waiter
		held, _ := b.Pool().Pick(balancer.Pick{})
		if _, ok := b.Pool().Wait(balancer.Pick{}, &waits, 0); ok || held.Server() == nil {
			t.Fatal("nobody waits")
		}
	}
	cfg := config(t)
	cfg.Table = func() *routing.Table { return table }
	got := scrape(t, cfg)
	for series, want := range map[string]float64{
		"haproxy_server_connections_total{namespace=ns,pod=v1,route=object,server=10.0.0.1:80,service=v1}": 0,
		"haproxy_server_connections_total{namespace=ns,pod=v2,route=object,server=10.0.0.2:80,service=v2}": 2,
		"haproxy_backend_up{backend=http,namespace=ns,route=object}":                                       1,
		"haproxy_backend_current_queue{backend=http,namespace=ns,route=object}":                            1,
		"haproxy_backend_weight{backend=http,namespace=ns,route=object}":                                   4,
		"haproxy_exporter_server_threshold{type=current}":                                                  2,
	} {
		if v, ok := got[series]; !ok || v != want {
			t.Errorf("%s is %v (%t), want %v", series, v, ok, want)
		}
	}
}

// TestRoutesOfGateways: routes of the Gateway API have series of their own if that is asked for, of all or of one; OpenShift Routes always do, and servers of others do not
// count against the threshold.
func TestRoutesOfGateways(t *testing.T) {
	rule := func(name, listener string) routing.RuleSpec {
		return routing.RuleSpec{
			RouteKey: routing.RouteKey{Namespace: "ns", Name: name, UID: name}, Host: name + ".test", Listener: listener,
			Targets: []balancer.Target{{ID: name, Addr: testaddr.Parse("10.0.0.1:8080"), Weight: 1}},
		}
	}
	table, rejected := routing.CompileRules(routing.Options{}, nil, []routing.RuleSpec{rule("route", ""), rule("one", "gw"), rule("two", "gw")})
	table, refused := table.ApplyListeners([]routing.ListenerSpec{{Name: "gw", Port: "gw:80"}}, nil)
	if len(rejected)+len(refused) > 0 {
		t.Fatal(rejected, refused)
	}
	routing.NewStore().Publish(table)
	for _, c := range []struct {
		name string
		all  bool
		some []string
		want int
	}{{"Routes alone", false, nil, 1}, {"one that is named", false, []string{"ns/two"}, 2}, {"all", true, nil, 3}} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config(t)
			cfg.Table, cfg.GatewayRoutes, cfg.Routes = func() *routing.Table { return table }, c.all, c.some
			series := scrape(t, cfg)
			backends, servers := 0, 0
			for name := range series {
				if strings.HasPrefix(name, "haproxy_backend_up{") {
					backends++
				}
				if strings.HasPrefix(name, "haproxy_server_up{") {
					servers++
				}
			}
			if backends != c.want || servers != c.want || series["haproxy_exporter_server_threshold{type=current}"] != float64(c.want) {
				t.Errorf("%d routes, %d servers, %v against the threshold, want %d", backends, servers, series["haproxy_exporter_server_threshold{type=current}"], c.want)
			}
			if got := series["turnout_routes{termination=http}"]; got != 3 {
				t.Errorf("%v routes in all, want 3", got)
			}
		})
	}
}
